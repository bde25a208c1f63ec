"""slurmdbd's first process, with the shell that the pod has and a slurmdbd that says what the real one says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from slinky_operator.cluster.parts.accounting.slurmdbd import ATTEMPTS, CAUSES, FOLLOWED
from slinky_operator.slurm import naming

AWAY = "mysql_real_connect failed: 2002 Can't connect to server on 'slurm-database' (115)"
DENIED = "mysql_real_connect failed: 1045 Access denied for user 'slurm'@'10.244.0.9' (using password: YES)"
AGAIN = "The database must be up when starting the MYSQL plugin.  Trying again in 5 seconds."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path


def run(folder: Path, cause: str, attempts: int = 10 * ATTEMPTS) -> tuple[int, str]:
    """Run slurmdbd until it ends; returns the exit code, and what the kubelet finds in the log.

    Parameters
    ----------
    attempts
        After which this slurmdbd reaches its database, and is stopped by its pod's deletion.
    """
    slurmdbd = folder / "slurmdbd"
    lines = "".join(f'echo "[2026-11-23T00:00:00.000] error: {words}"\n' for words in (cause, AGAIN))
    slurmdbd.write_text(
        f"#!/bin/sh\nfor _ in $(seq {attempts}); do\n{lines}sleep 0.01\ndone\necho 'slurmdbd started'\n"
    )
    slurmdbd.chmod(0o755)
    script = FOLLOWED.replace(f"{naming.RUN_FOLDER}/", f"{folder}/run/")
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stderr


def test_it_ends_once_so_that_its_words_are_shown_and_then_waits(folder: Path) -> None:
    code, said = run(folder, AWAY)
    assert code != 0
    assert AWAY in said
    assert said.count(AGAIN) >= ATTEMPTS
    assert "slurmdbd started" not in said
    code, said = run(folder, AWAY)
    assert code == 0
    assert "slurmdbd started" in said


def test_another_cause_is_shown_too(folder: Path) -> None:
    assert run(folder, AWAY)[0] != 0
    code, said = run(folder, DENIED)
    assert code != 0
    assert DENIED in said
    assert run(folder, DENIED)[0] == 0


def test_a_database_that_comes_soon_ends_nothing(folder: Path) -> None:
    code, said = run(folder, AWAY, ATTEMPTS - 1)
    assert code == 0
    assert "slurmdbd started" in said


def test_words_that_differ_each_time_do_not_restart_it_for_ever(folder: Path) -> None:
    codes = [run(folder, f"{AWAY} {number}")[0] for number in range(CAUSES + 2)]
    assert [code != 0 for code in codes] == [True] * CAUSES + [False] * 2


def test_what_the_database_says_is_no_command(folder: Path) -> None:
    code, said = run(folder, "failed: %s %n -n '\\''*'\\'' ;")
    assert code != 0
    assert "failed: %s %n -n" in said
    assert run(folder, "failed: %s %n -n '\\''*'\\'' ;")[0] == 0
