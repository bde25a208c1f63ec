"""The program of the chart's `helm test` with real daemons: a job that ends well, and one that Slurm never takes."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hack.packaging.render import ROOT, SLURM_CHART

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.slurm_host import SlurmHost

PROGRAM = SLURM_CHART / "files" / "first_job.py"


@pytest.fixture(params=["24.11", "26.05"])
def host(request: pytest.FixtureRequest) -> SlurmHost:
    found: SlurmHost = request.getfixturevalue(f"slurm_{request.param.replace('.', '_')}")
    return found


def run(host: SlurmHost, token: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    token.write_text(host.token("daemon"))
    where = {"SLURMRESTD_URL": host.url, "TOKEN_FILE": str(token), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.read_text(encoding="utf-8")],
        capture_output=True,
        text=True,
        check=False,
        env=where | {"TIMEOUT": "60", "PARTITION": "", "ACCOUNT": ""} | environment,
    )


def test_a_job_of_a_user_ends_well(host: SlurmHost, tmp_path: Path) -> None:
    done = run(host, tmp_path / "token")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"was submitted to {host.url}" in done.stdout
    assert "ended: COMPLETED, exit code 0" in done.stdout


def test_what_slurm_refuses_is_said(host: SlurmHost, tmp_path: Path) -> None:
    refused = run(host, tmp_path / "token", PARTITION="no-such", TIMEOUT="1")
    assert refused.returncode == 1, refused.stdout + refused.stderr
    assert "no job yet, trying again: " in refused.stdout
    assert "invalid partition" in refused.stdout.lower()
    assert f"no job could be submitted to {host.url} within 1 s" in refused.stdout
