"""What a job object shows, from the answers of real Slurm about real jobs.

No job here waits for a minute to pass, as one that runs out of time would have to, and there are no cgroups that would
end one for its memory: those words are in the unit tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from hack.images.rootfs import ensure
from slinky_operator.jobs.phases import Phase, Reason, Shown, shown
from slurm_client import MintedToken
from slurm_client.sync import SyncSlurmClient
from tests.support.slurm_host import SlurmHost

PATIENCE = 240
LONG = "sleep 600"
CONF = """\
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=low Nodes=ALL State=UP PriorityTier=1
PartitionName=high Nodes=ALL State=UP PriorityTier=10 PreemptMode=OFF"""


class Jobs:
    """Jobs of one cluster, and what is shown of them."""

    def __init__(self, host: SlurmHost, slurm: SyncSlurmClient) -> None:
        self.host = host
        self.slurm = slurm

    def shown(self, job: int) -> Shown:
        found = self.slurm.job(job)
        return shown(
            found.state,
            exit_code=found.exit_code,
            slurms_reason=found.state_reason,
            hold=found.hold,
            restarts=found.restarts,
        )

    def until(self, job: int, condition: Callable[[Shown], bool]) -> Shown:
        self.host.wait_for(lambda: condition(self.shown(job)), f"job {job} is as wanted", PATIENCE)
        return self.shown(job)

    def end(self, job: int) -> Shown:
        return self.until(job, lambda found: found.is_finished)

    def running(self, script: str, *options: str) -> int:
        job = self.host.sbatch(script, *options)
        self.until(job, lambda found: found.reason is Reason.RUNNING)
        return job


@pytest.fixture(scope="module", params=["24.11", "26.05"])
def jobs(request: pytest.FixtureRequest) -> Iterator[Jobs]:
    """A cluster of three nodes in which jobs of one partition make room for those of another."""
    series: str = request.param
    with SlurmHost(ensure(series), extra_conf=CONF) as host:
        for name in ("w-0", "w-1", "w-2"):
            host.add_node(name, cpus=4)
        with SyncSlurmClient(host.url, MintedToken(host.jwt_key, "root")) as slurm:
            yield Jobs(host, slurm)


@pytest.mark.parametrize(
    ("script", "phase", "reason", "exit_code", "signal"),
    [
        ("true", Phase.SUCCEEDED, Reason.COMPLETED, 0, None),
        ("exit 3", Phase.FAILED, Reason.EXIT_CODE, 3, None),
        ("kill -9 $$", Phase.FAILED, Reason.SIGNALED, None, 9),
    ],
)
def test_a_script_that_ends(
    jobs: Jobs, script: str, phase: Phase, reason: Reason, exit_code: int | None, signal: int | None
) -> None:
    end = jobs.end(jobs.host.sbatch(script))
    assert (end.phase, end.reason, end.signal) == (phase, reason, signal)
    assert signal or end.exit_code == exit_code


def test_a_cancelled_job(jobs: Jobs) -> None:
    running, waiting = jobs.running(LONG), jobs.host.sbatch(LONG, "--hold")
    for job in (running, waiting):
        jobs.host.run("scancel", str(job))
        end = jobs.end(job)
        assert (end.phase, end.reason) == (Phase.FAILED, Reason.CANCELLED)


def test_a_held_job(jobs: Jobs) -> None:
    job = jobs.host.sbatch("true", "--hold")
    held = jobs.shown(job)
    assert (held.phase, held.reason) == (Phase.PENDING, Reason.HELD)
    assert held.message.startswith("the job is held by ")
    jobs.host.run("scontrol", "release", str(job))
    assert jobs.end(job).phase is Phase.SUCCEEDED


def test_a_dependency_that_is_never_satisfied(jobs: Jobs) -> None:
    failed = jobs.host.sbatch("false")
    jobs.end(failed)
    job = jobs.host.sbatch("true", f"--dependency=afterok:{failed}", "--kill-on-invalid-dep=no")
    found = jobs.until(job, lambda found: found.reason is Reason.DEPENDENCY_NEVER_SATISFIED)
    assert found.phase is Phase.PENDING


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["requeuehold"], Reason.REQUEUED_AND_HELD),
        (["requeuehold", "state=SpecialExit"], Reason.SPECIAL_EXIT),
        (["requeue"], Reason.REQUEUED),
    ],
)
def test_a_job_that_is_to_run_again(jobs: Jobs, command: list[str], reason: Reason) -> None:
    job = jobs.running(LONG, "--requeue")
    jobs.host.run("scontrol", *command, str(job))
    found = jobs.until(job, lambda found: found.reason is reason)
    assert found.phase is Phase.PENDING
    jobs.host.run("scancel", str(job))


def test_a_suspended_job(jobs: Jobs) -> None:
    job = jobs.running(LONG)
    jobs.host.run("scontrol", "suspend", str(job))
    found = jobs.until(job, lambda found: found.phase is Phase.SUSPENDED)
    assert found.reason is Reason.SUSPENDED
    jobs.host.run("scancel", str(job))
    assert jobs.end(job).reason is Reason.CANCELLED


def test_a_job_that_makes_room(jobs: Jobs) -> None:
    job = jobs.running(LONG, "-p", "low", "-w", "w-1", "--exclusive", "--no-requeue")
    other = jobs.host.sbatch("true", "-p", "high", "-w", "w-1", "--exclusive")
    end = jobs.end(job)
    assert (end.phase, end.reason) == (Phase.FAILED, Reason.PREEMPTED)
    assert jobs.end(other).phase is Phase.SUCCEEDED


def test_a_job_whose_node_fails(jobs: Jobs) -> None:
    job = jobs.running(LONG, "-w", "w-2", "--no-requeue")
    jobs.host.run("scontrol", "update", "nodename=w-2", "state=down", "reason=test")
    end = jobs.end(job)
    assert (end.phase, end.reason) == (Phase.FAILED, Reason.NODE_FAIL)
