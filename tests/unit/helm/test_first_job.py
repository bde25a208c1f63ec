"""The program of the chart's `helm test` submits one job, whatever is lost on the way, and leaves none behind."""

from __future__ import annotations

import runpy
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hack.packaging.render import SLURM_CHART
from slurm_client.testing import FakeSlurmrestd

SUBMIT = r"^POST \S+/job/submit"


async def run(
    fake: FakeSlurmrestd, folder: Path, monkeypatch: pytest.MonkeyPatch, patience: str, clock: Callable[[], float]
) -> int:
    """Run the program against a slurmrestd in which no job ends by itself."""
    (folder / "token").write_text("token")
    environment = {"SLURMRESTD_URL": fake.url, "TOKEN_FILE": str(folder / "token"), "TIMEOUT": patience}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    program: dict[str, Any] = runpy.run_path(str(SLURM_CHART / "files" / "first_job.py"))
    main = program["main"]
    main.__globals__["PAUSE"] = 0.01
    main.__globals__["time"] = SimpleNamespace(monotonic=clock)
    ended: int = await main()
    return ended


async def test_a_job_whose_submission_was_not_answered_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with FakeSlurmrestd() as fake:
        fake.add_node("w-0", cpus=2)
        fake.faults.add(SUBMIT, disconnect=True, late=True)
        # No time passes until the job is found, however busy the machine is.
        assert await run(fake, tmp_path, monkeypatch, patience="0.2", clock=lambda: 0.0) == 1
        (job,) = fake.jobs.values()
        said = capsys.readouterr().out
        assert "no job yet, trying again" in said
        assert f"job {job.id} was submitted" in said
        assert len(fake.calls("post_job_submit")) == 1
        # It did not end in time.
        assert f"job {job.id} was cancelled" in said
        assert fake.jobs[job.id].state.base == "CANCELLED"


async def test_a_job_that_was_never_confirmed_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with FakeSlurmrestd() as fake:
        fake.add_node("w-0", cpus=2)
        fake.faults.add(SUBMIT, disconnect=True, late=True)
        assert await run(fake, tmp_path, monkeypatch, patience="0", clock=time.monotonic) == 1
        assert len(fake.calls("post_job_submit")) == 1
        assert [job.state.base for job in fake.jobs.values()] == ["CANCELLED"]
    assert "was cancelled" in capsys.readouterr().out
