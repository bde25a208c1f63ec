"""A program is built once, whoever asks for it at the same time, and whatever became of those who asked before.

The compiler is a script: what real ones do is seen wherever a program of the local Kubernetes runs.
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
from hack.localkube.programs.build import HELM, binary, ensure, tool

ROOT = Path(__file__).resolve().parents[4]


class Compiler:
    """What ``go`` is during a test: a script with `GOBIN` for where the program goes."""

    def __init__(self, folder: Path) -> None:
        self.calls = folder / "calls"
        self._script = folder / "go"
        self.does('printf whole > "$GOBIN/helm"')

    def does(self, script: str) -> None:
        # Another file each time: a shell reads on in the one that it has begun.
        self._script.unlink(missing_ok=True)
        self._script.write_text(f"#!/bin/sh\necho $$ >> {self.calls}\n{script}\n")
        self._script.chmod(0o755)

    def times(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0


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
    late = f'exec 2>/dev/null; printf half > "$GOBIN/helm"; read line < {go_on}; printf late > "$GOBIN/helm"'
    late = f"{late}; echo > {ended}"
    compiler.does(late)
    asking = "from hack.localkube.programs import build; build.BUILD_NEEDS_MIB = 0; build.ensure(build.HELM)"
    killed = subprocess.Popen([sys.executable, "-c", asking], cwd=ROOT, stderr=subprocess.DEVNULL)
    # Opening waits until the compiler reads, that is until half of the program is there.
    with go_on.open("w"):
        killed.kill()
        killed.wait()
        # The first one ends while the second is at work.
        compiler.does(f'printf whole > "$GOBIN/helm"; echo > {go_on}; read line < {ended}')
        ensure(HELM)
    assert tool("helm").read_text() == "whole"
    assert list(binary(HELM).parent.iterdir()) == [binary(HELM)]


def test_a_failed_build_tells_what_the_compiler_said_and_leaves_no_program(compiler: Compiler) -> None:
    compiler.does('printf half > "$GOBIN/helm"; echo "main.go:3: undefined: x"; exit 1')
    with pytest.raises(BuildFailed, match="undefined: x"):
        ensure(HELM)
    assert not binary(HELM).exists()
    compiler.does('printf whole > "$GOBIN/helm"')
    ensure(HELM)
    assert tool("helm").read_text() == "whole"


def test_a_full_disk_is_said_before_anything_is_built(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "BUILD_NEEDS_MIB", 2**40)
    with pytest.raises(NoSpace):
        ensure(HELM)
    assert compiler.times() == 0
