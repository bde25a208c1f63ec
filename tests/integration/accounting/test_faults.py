"""Slurm 24.11 loses no record of a job when slurmdbd or slurmctld is killed; 26.05 is tested end to end.

Jobs are submitted before, while and after a daemon is away. slurmctld keeps what it has to tell slurmdbd, and slurmdbd
what it has not written; a slurmctld that is killed has what it had on disk, which is younger than five seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from hack.images.rootfs import ensure, ensure_mariadb
from slinky_operator.nodeset.drain import forgotten_ends
from slinky_operator.nodeset.execute.queries import slurm_queries
from slinky_operator.nodeset.slurm_nodes.recorded_ends import RecordedEnds
from slurm_client import MintedToken, SlurmClient
from tests.support.accounting_host import AccountingHost
from tests.support.daemons import DaemonError
from tests.support.mariadb_host import MariadbHost

pytestmark = pytest.mark.timeout(900)

PATIENCE = 240.0
JOBS = 5
CPUS = 2


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariadbHost]:
    with MariadbHost(ensure_mariadb()) as host:
        yield host


@pytest.fixture(scope="module")
def slurm(mariadb: MariadbHost) -> Iterator[AccountingHost]:
    with AccountingHost(ensure("24.11"), database=mariadb.database("acct"), extra_conf="MinJobAge=3600") as host:
        host.add_node("w-0", cpus=CPUS)
        yield host


def submit(slurm: AccountingHost) -> list[int]:
    """Jobs with two ends: exit codes are part of what must not be lost."""
    return [slurm.sbatch(f"exit {number % 2}") for number in range(JOBS)]


def recorded(slurm: AccountingHost, jobs: list[int]) -> dict[int, tuple[str, str]]:
    """State and exit code in slurmdbd; empty while it is away."""
    words = ("sacct", "-n", "-P", "-X", "-o", "jobid,state,exitcode", f"--jobs={','.join(map(str, jobs))}")
    lines = slurm.run(*words, check=False).stdout.splitlines()
    return {int(line.split("|")[0]): (line.split("|")[1], line.split("|")[2]) for line in lines if line}


def wait_recorded(slurm: AccountingHost, jobs: list[int]) -> None:
    ends = [("COMPLETED", "0:0"), ("FAILED", "1:0")]
    wanted = {job: ends[number % JOBS % 2] for number, job in enumerate(jobs)}
    found: dict[int, tuple[str, str]] = {}

    def there() -> bool:
        found.clear()
        found.update(recorded(slurm, jobs))
        return found == wanted

    try:
        slurm.wait_for(there, "slurmdbd has all jobs as they ended", PATIENCE)
    except DaemonError:
        assert found == wanted
        raise


def under_load(slurm: AccountingHost, kill: Callable[[], None], start: Callable[[], None]) -> None:
    jobs = submit(slurm)
    kill()
    jobs += submit(slurm)
    start()
    jobs += submit(slurm)
    wait_recorded(slurm, jobs)


def test_no_record_is_lost_when_slurmdbd_is_killed(slurm: AccountingHost) -> None:
    under_load(slurm, lambda: slurm.stop("slurmdbd", kill=True), slurm.start_slurmdbd)


def test_no_record_is_lost_when_slurmctld_is_killed(slurm: AccountingHost) -> None:
    go = slurm.shared / "go"
    # A job that slurmctld has started and not yet saved would be started again, which slurmd refuses: none starts now.
    holds = [slurm.sbatch("until [ -e /var/spool/go ]; do sleep 0.1; done") for _ in range(CPUS)]
    slurm.wait_for(lambda: all(slurm.job_state(job) == "RUNNING" for job in holds), "the node is full", PATIENCE)
    jobs = submit(slurm)
    slurm.wait_saved(jobs[-1])
    slurm.stop("slurmctld", kill=True)
    slurm.start_slurmctld()
    slurm.wait_for(lambda: slurm.node_is_up("w-0"), "the node is back", PATIENCE)
    jobs += submit(slurm)
    go.touch()
    wait_recorded(slurm, jobs)
    ended = dict.fromkeys(holds, ("COMPLETED", "0:0"))
    slurm.wait_for(lambda: recorded(slurm, holds) == ended, "slurmdbd has the jobs that ran meanwhile", PATIENCE)


async def test_the_end_of_a_job_is_recognized_by_its_very_run(slurm: AccountingHost) -> None:
    """What slurmctld shows of a running job and what slurmdbd records of its end agree on user and start."""
    go = slurm.shared / "go-on"
    number = slurm.sbatch("until [ -e /var/spool/go-on ]; do sleep 0.1; done")
    await asyncio.to_thread(slurm.wait_for, lambda: slurm.job_state(number) == "RUNNING", "the job runs", PATIENCE)
    async with SlurmClient(slurm.url, MintedToken(slurm.jwt_key, "slurm")) as client:
        (shown,) = [job for job in await client.jobs() if job.id == number]
        running: Any = SimpleNamespace(client=client)
        before = await slurm_queries.recorded_ends(running, [shown], RecordedEnds(), datetime.now(UTC))
        assert before.ends == {}
        go.touch()
        await asyncio.to_thread(wait_ended, slurm, number)
        now = datetime.now(UTC)
        after = await slurm_queries.recorded_ends(running, [shown], RecordedEnds(), now)
    # As a slurmctld shows it that has forgotten the end.
    assert forgotten_ends.forgotten([shown], after, now + 2 * forgotten_ends.SETTLED).keys() == {number}
    assert forgotten_ends.forgotten([shown], after, now) == {}


def wait_ended(slurm: AccountingHost, number: int) -> None:
    ended = {number: ("COMPLETED", "0:0")}
    slurm.wait_for(lambda: recorded(slurm, [number]) == ended, "slurmdbd has its end", PATIENCE)
