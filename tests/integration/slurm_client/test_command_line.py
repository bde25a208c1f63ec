"""slurm-rest on real daemons: a job is submitted, seen, held back and cancelled, and a node drained."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from slurm_client.cli import main

if TYPE_CHECKING:
    from tests.support.slurm_host import SlurmHost


@pytest.fixture(params=["24.11", "26.05"])
def host(request: pytest.FixtureRequest) -> SlurmHost:
    found: SlurmHost = request.getfixturevalue(f"slurm_{request.param.replace('.', '_')}")
    return found


def test_a_day_with_slurm_rest(
    host: SlurmHost, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURMRESTD_URL", host.url)
    monkeypatch.setenv("SLURM_JWT", host.token("root"))

    def run(*arguments: str) -> str:
        assert main(arguments) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    assert "UP" in run("ping")
    assert "w-0" in run("nodes", "w-[0-1]")
    assert "w-[0-1]" in run("partitions")
    assert "jobs now" in run("diag")
    number = run(
        "submit", "--wrap", "sleep 600", "-J", "by-hand", "-t", "5", "-D", "/", "-o", "/dev/null", "--hold"
    ).strip()
    (job,) = json.loads(run("jobs", number, "--json"))
    assert (job["name"], job["time_limit"], job["hold"]) == ("by-hand", 300, True)
    assert "JobHeldUser: held by its user" in run("jobs", "--state", "PENDING")
    assert run("cancel", "--name", "by-hand", "--user", "root") == f"{number} cancelled\n"
    host.wait_for(lambda: host.job_state(int(number)) == "CANCELLED", "the job is cancelled")
    assert run("drain", "w-0", "--reason", "fans").startswith("w-0 drained")
    assert "fans (root" in run("nodes", "--state", "DRAIN")
    assert run("undrain", "w-0") == "w-0 no longer drained\n"
    assert main(["cancel", "999999"]) == 1
    assert main(["jobs", "999999"]) == 5
    monkeypatch.setenv("SLURM_JWT", host.token("nobody"))
    assert main(["drain", "w-0", "--reason", "x"]) == 4
