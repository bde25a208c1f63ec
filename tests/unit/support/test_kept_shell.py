"""A kept shell returns the output of each command, and is restarted when its container is another one."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.localkube.kubectl import Kubectl, KubectlFailed
from hack.localkube.programs import build
from tests.support.kept_shell import KeptShell


@pytest.fixture
def starts(tmp_path: Path) -> Path:
    """A file with the process ids of the shells, one a line."""
    return tmp_path / "starts"


@pytest.fixture
def shell(tmp_path: Path, starts: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeptShell]:
    """A shell whose kubectl starts one here."""
    program = tmp_path / "kubectl"
    program.write_text(f"#!/bin/sh\necho $$ >> {starts}\nexec sh\n")
    program.chmod(0o700)
    monkeypatch.setattr(build, "tool", lambda _: program)
    instance = KeptShell(Kubectl(tmp_path / "kubeconfig"), "here", "pod-0", "slurmctld")
    yield instance
    instance.close()


def pids(starts: Path) -> list[int]:
    return [int(line) for line in starts.read_text().split()]


def test_commands_share_one_shell_and_each_gives_its_own_output(shell: KeptShell, starts: Path) -> None:
    assert shell.run("echo", "one") == "one\n"
    assert shell.run("printf", "%s", "no line's end") == "no line's end"
    assert shell.run("true") == ""
    assert shell.run("echo", "a b", "$HOME", "c\nd") == "a b $HOME c\nd\n"
    assert len(shell.run("head", "-c", "300000", "/dev/zero")) == 300_000
    assert len(pids(starts)) == 1


def test_a_command_that_reads_does_not_read_the_next_one(shell: KeptShell) -> None:
    assert shell.run("cat") == ""
    assert shell.run("echo", "next") == "next\n"


def test_a_command_that_fails_is_told_with_its_words_and_the_shell_stays(shell: KeptShell, starts: Path) -> None:
    with pytest.raises(KubectlFailed, match=r"exec --namespace=here pod-0 .*: out of luck\s+command .* exit code 7"):
        shell.run("sh", "-c", "echo nothing; echo out of luck >&2; exit 7")
    assert shell.run("echo", "on") == "on\n"
    assert len(pids(starts)) == 1


def test_a_command_is_asked_again_where_its_shell_has_ended_meanwhile(shell: KeptShell, starts: Path) -> None:
    shell.run("true")
    os.kill(pids(starts)[0], signal.SIGKILL)
    assert shell.run("echo", "again") == "again\n"
    assert len(pids(starts)) == 2


def test_a_container_that_cannot_be_reached_is_told(shell: KeptShell, tmp_path: Path) -> None:
    (tmp_path / "kubectl").write_text("#!/bin/sh\necho 'pods \"pod-0\" not found' >&2\nexit 1\n")
    with pytest.raises(KubectlFailed, match='pods "pod-0" not found'):
        shell.run("true")


def test_a_command_that_does_not_end_costs_its_shell_only(shell: KeptShell, starts: Path) -> None:
    shell.run("true")
    with pytest.raises(KubectlFailed, match="no answer in 0 s"):
        shell.run("tail", "--follow", f"--pid={pids(starts)[0]}", "/dev/null", timeout=0.01)
    assert shell.run("echo", "on") == "on\n"
    assert len(pids(starts)) == 2
