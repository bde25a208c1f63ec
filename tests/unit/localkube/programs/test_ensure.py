"""A program is built once, however many callers request it at the same time, and whatever happened to earlier ones.

The compiler is a script: real ones are tested wherever a program of the local Kubernetes runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hack.localkube.errors import BuildFailed, NoSpace
from hack.localkube.programs import build
from hack.localkube.programs.build import HELM, KUBERNETES, PROVISIONER, binary, ensure, tool

ROOT = Path(__file__).resolve().parents[4]


WHOLE = 'for package; do printf whole > "$to/${package##*/}"; done'
"""Writes every program that is asked for, and is done."""


class Compiler:
    """What ``go`` is during a test: a script that fetches nothing, with `$to` for where programs go."""

    def __init__(self, folder: Path) -> None:
        self.calls = folder / "calls"
        self._script = folder / "go"
        self.does(WHOLE)

    def does(self, script: str, *, fetches: str = "exit 0") -> None:
        # Another file each time: a shell reads on in the one that it has begun.
        self._script.unlink(missing_ok=True)
        self._script.write_text(
            "#!/bin/sh\n"
            f'if [ "$1" = list ]; then\n{fetches}\nfi\n'
            'while [ "$1" != -o ]; do shift; done\nto="$2"; shift 2\n'
            f'echo "$@" >> {self.calls}\n{script}\n'
        )
        self._script.chmod(0o755)

    def compiled(self) -> list[list[str]]:
        """The packages of each call that compiles."""
        return [line.split() for line in self.calls.read_text().splitlines()] if self.calls.exists() else []

    def times(self) -> int:
        return len(self.compiled())


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(build, "BUILD_NEEDS_MIB", 0)
    return Compiler(tmp_path)


def test_a_program_is_built_once_and_found_by_its_name(compiler: Compiler) -> None:
    for _ in range(2):
        ensure(HELM)
    assert compiler.times() == 1
    assert tool("helm").read_text() == "whole"
    assert list(binary(HELM).parent.iterdir()) == [binary(HELM)]


def test_what_is_asked_for_together_is_compiled_by_one_call_but_for_what_go_refuses_there(compiler: Compiler) -> None:
    ensure(PROVISIONER, HELM, KUBERNETES)
    assert compiler.compiled() == [[HELM.package, KUBERNETES.package], [PROVISIONER.package]]
    for name in ("helm", "kubectl", "coredns", "local-path-provisioner"):
        assert tool(name).read_text() == "whole"


def test_only_what_is_missing_is_compiled(compiler: Compiler) -> None:
    ensure(HELM)
    ensure(HELM, KUBERNETES)
    assert compiler.compiled() == [[HELM.package], [KUBERNETES.package]]


def test_nothing_is_compiled_without_its_modules(compiler: Compiler) -> None:
    compiler.does(WHOLE, fetches='echo "example.com/x@v1: checksum mismatch"; exit 1')
    with pytest.raises(BuildFailed, match="checksum mismatch"):
        ensure(HELM)
    assert compiler.times() == 0


def test_those_who_want_the_same_programs_in_another_order_do_not_wait_for_each_other(compiler: Compiler) -> None:
    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(ensure, *order) for order in [(HELM, KUBERNETES), (KUBERNETES, HELM)] * 2]:
            future.result()
    assert sorted(package for call in compiler.compiled() for package in call) == [KUBERNETES.package, HELM.package]


def test_who_asks_meanwhile_waits_for_it(compiler: Compiler) -> None:
    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(ensure, HELM) for _ in range(4)]:
            future.result()
    assert compiler.times() == 1
    assert tool("helm").read_text() == "whole"


def test_a_compiler_that_outlives_its_killed_process_spoils_nothing(compiler: Compiler, tmp_path: Path) -> None:
    go_on, ended = tmp_path / "go-on", tmp_path / "ended"
    for fifo in (go_on, ended):
        os.mkfifo(fifo)
    # Nobody reads what it says any more: a word would end it.
    late = f'exec 2>/dev/null; printf half > "$to/helm"; read line < {go_on}; printf late > "$to/helm"'
    late = f"{late}; echo > {ended}"
    compiler.does(late)
    asking = "from hack.localkube.programs import build; build.BUILD_NEEDS_MIB = 0; build.ensure(build.HELM)"
    killed = subprocess.Popen([sys.executable, "-c", asking], cwd=ROOT, stderr=subprocess.DEVNULL)
    # Opening waits until the compiler reads, that is until half of the program is there.
    with go_on.open("w"):
        killed.kill()
        killed.wait()
        # The first one ends while the second is at work.
        compiler.does(f'printf whole > "$to/helm"; echo > {go_on}; read line < {ended}')
        ensure(HELM)
    assert tool("helm").read_text() == "whole"
    assert list(binary(HELM).parent.iterdir()) == [binary(HELM)]


def test_what_begins_beside_pip_needs_no_package_of_python(compiler: Compiler, tmp_path: Path) -> None:
    program = "from hack.localkube.programs import __main__ as it; it.build.BUILD_NEEDS_MIB = 0; quit_with = it.main()"
    program = f"import sys; {program}; sys.exit(quit_with)"
    # Without `site` there are no packages.
    command, environment = [sys.executable, "-S", "-c", program], {**os.environ, "PYTHONPATH": str(ROOT)}
    begun = subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
    assert (begun.returncode, compiler.compiled()) == (0, [[HELM.package, KUBERNETES.package]]), begun.stderr
    compiler.does("exit 1")
    binary(HELM).unlink()
    failed = subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
    assert failed.returncode == 1
    assert "programs: " in failed.stderr


def test_pip_has_programs_built_beside_it_for_what_needs_them(tmp_path: Path) -> None:
    for target, is_begun in (("test", True), ("demo", True), ("lint", False)):
        command = ["make", "--dry-run", target, f"VENV={tmp_path}"]
        shown = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        assert ("-m hack.localkube.programs &" in shown) == is_begun, target


def test_a_failed_build_tells_what_the_compiler_said_and_leaves_no_program(compiler: Compiler) -> None:
    compiler.does('printf half > "$to/helm"; echo "main.go:3: undefined: x"; exit 1')
    with pytest.raises(BuildFailed, match="undefined: x"):
        ensure(HELM)
    assert not binary(HELM).exists()
    compiler.does(WHOLE)
    ensure(HELM)
    assert tool("helm").read_text() == "whole"


def test_a_full_disk_is_said_before_anything_is_built(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "BUILD_NEEDS_MIB", 2**40)
    with pytest.raises(NoSpace):
        ensure(HELM)
    assert compiler.times() == 0
