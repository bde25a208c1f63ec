"""The examples that run jobs, on real daemons; the others ask the fake in tests/unit/slurm_client/examples."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.examples import example_running, run_example

if TYPE_CHECKING:
    from tests.support.slurm_host import SlurmHost


@pytest.fixture
def folder(slurm_26_05: SlurmHost) -> str:
    """A folder that jobs may write to, by the name that they know it by."""
    path = slurm_26_05.shared / "examples"
    path.mkdir(exist_ok=True)
    path.chmod(0o777)
    return "/var/spool/examples"


def test_submit_and_wait(slurm_26_05: SlurmHost, folder: str, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(
        f"#!/bin/sh\n#SBATCH --job-name=example -t 1 -D {folder}\n#SBATCH -o {folder}/out\nhostname\nexit 7\n"
    )
    done = run_example("submit_and_wait.py", slurm_26_05.url, slurm_26_05.token("root"), str(script))
    assert done.returncode == 7, done.stdout + done.stderr
    assert re.match(r"submitted \d+\n", done.stdout)
    assert done.stdout.endswith(" FAILED\n")


def test_array_then_merge(slurm_26_05: SlurmHost, folder: str) -> None:
    done = run_example("array_then_merge.py", slurm_26_05.url, slurm_26_05.token("root"), folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (slurm_26_05.shared / "examples" / "sum").read_text() == "14\n"
    assert len(re.findall(r"^\d+_[123] COMPLETED$", done.stdout, re.MULTILINE)) == 3


def test_cancel_all_of_user(slurm_26_05: SlurmHost) -> None:
    running = slurm_26_05.sbatch("sleep 600", "-w", "w-1")
    slurm_26_05.wait_for(lambda: slurm_26_05.job_state(running) == "RUNNING", "the job runs")
    held = slurm_26_05.sbatch("sleep 600", "--hold")
    with example_running("cancel_all_of_user.py", slurm_26_05.url, slurm_26_05.token("root"), "root") as process:
        assert process.stdout is not None
        said = process.stdout.read()
    assert said == f"2 jobs of root have ended: {running}, {held}\n"
    assert {slurm_26_05.job_state(job) for job in (running, held)} == {"CANCELLED"}
