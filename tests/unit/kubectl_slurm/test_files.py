"""Files that cannot be read, and programs that cannot be run, are reported in one line and never by a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_slurm import cli, errors
from tests.unit.kubectl_slurm.conftest import Run
from tests.unit.kubectl_slurm.kubernetes_world import KubernetesWorld


@pytest.mark.parametrize("command", [("submit", "--as=alice"), ("preflight", "-f")])
def test_a_file_that_is_none(run: Run, world: KubernetesWorld, tmp_path: Path, command: tuple[str, ...]) -> None:
    assert "nosuch" in run(*command, str(tmp_path / "nosuch"), code=errors.USAGE)
    assert "is a directory" in run(*command, str(tmp_path), code=errors.USAGE)
    file = tmp_path / "latin"
    file.write_bytes(b"caf\xe9")
    shown = run(*command, str(file), code=errors.FAILED)
    assert shown == f"kubectl-slurm: {file} is not in UTF-8: byte 4 is no text\n"
    assert world.asked == []


def test_a_file_that_is_too_large(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(b"#" * (4 << 20) + b"#")
    assert "is larger than 4 MiB" in run("preflight", "-f", str(file), code=errors.FAILED)


def test_a_kubectl_that_cannot_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "kubectl"
    program.write_text("")
    monkeypatch.setenv("KUBECTL", str(program))
    assert cli.main(["status", "--namespace=slurm"]) == errors.UNREACHABLE
    assert capsys.readouterr().err == f"kubectl-slurm: cannot run {program}: Permission denied\n"


def test_other_errors_of_the_system_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TMPDIR", "/no/such")
    monkeypatch.setattr("tempfile.tempdir", "/no/such")
    assert cli.main(["status", "--namespace=slurm", "--kubectl=true"]) == errors.FAILED
    shown = capsys.readouterr().err
    assert shown.startswith("kubectl-slurm: /no/such")
    assert shown.endswith(": No such file or directory\n")
