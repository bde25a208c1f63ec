"""GPUs, time limits and the fair-share tree, on real Slurm of both releases and on the fake."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from typing_extensions import override

from hack.images.rootfs import ensure
from hack.machine import ports
from slurm_client import MintedToken, SlurmClient, errors
from slurm_client.models import AccountSpec, AssociationSpec, JobSpec
from slurm_client.notation.tres import Tres
from slurm_client.testing import FakeSlurmrestd
from tests.integration.slurm_client.targets import until
from tests.support.accounting_host import CLUSTER, AccountingHost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.support.mariadb_host import MariadbHost

EXTRA = """\
MinJobAge=3600
GresTypes=gpu
AccountingStorageTRES=gres/gpu,gres/gpu:h100
PriorityType=priority/multifactor
PriorityCalcPeriod=1
"""
GRES = """\
NodeName=g-0 Name=gpu Type=h100 File=/dev/null
NodeName=g-0 Name=gpu Type=h100 File=/dev/zero
"""
"""Two files that are no GPUs, but files that there are: slurmd wants no more."""

TREE = (
    AssociationSpec(account="physics", cluster=CLUSTER, shares=3),
    AssociationSpec(account="physics", cluster=CLUSTER, user="ada", shares=2),
    AssociationSpec(account="physics", cluster=CLUSTER, user="bob", shares=6),
    AssociationSpec(account="biology", cluster=CLUSTER, shares=4),
    AssociationSpec(account="biology", cluster=CLUSTER, user="cai", shares=1),
)
SCRIPT = "#!/bin/sh\ntrap 'exit 0' TERM\nsleep 600 &\nwait\n"
"""Runs until it gets a signal to end, and then exits with success."""


class Site(ABC):
    """A cluster with one node, ``g-0``, that has four CPUs and two GPUs."""

    url: str
    key: bytes
    timed_out: int | None = None
    """The job whose time is over: slurmctld looks for such each 30 s, so that one serves all data parsers."""

    def client(self, version: str) -> SlurmClient:
        """Return a client that speaks one data parser."""
        return SlurmClient(self.url, MintedToken(self.key, "root"), api_version=version)

    @abstractmethod
    async def end_time_of(self, job_id: int) -> None:
        """Let the time of a job be over."""

    @abstractmethod
    async def plant(self) -> None:
        """Make the accounts and users of `TREE`, once."""


class RealSite(Site):
    """MariaDB and the daemons of one Slurm release."""

    def __init__(self, host: AccountingHost) -> None:
        self.host, self.url, self.key = host, host.url, host.jwt_key
        self._planted = False

    @override
    async def end_time_of(self, job_id: int) -> None:
        await asyncio.to_thread(self.host.end_now, job_id)

    @override
    async def plant(self) -> None:
        if not self._planted:
            async with SlurmClient(self.url, MintedToken(self.key, "root")) as slurm:
                for spec in TREE:
                    if not spec.user:
                        await slurm.db.create_account(AccountSpec(name=spec.account))
                    await slurm.db.create_association(spec)
            self._planted = True


class FakeSite(Site):
    """The fake, pretending to be that release."""

    def __init__(self, fake: FakeSlurmrestd) -> None:
        assert fake.key is not None
        self.fake, self.url, self.key = fake, fake.url, fake.key

    @override
    async def end_time_of(self, job_id: int) -> None:
        self.fake.world.time_out(job_id)

    @override
    async def plant(self) -> None:
        # slurmdbd gives root a user of its own, and slurmctld shows it.
        self.fake.world.share_tree.add("root", user=True)
        for spec in TREE:
            above = spec.account if spec.user else "root"
            self.fake.world.share_tree.add(
                spec.user or spec.account, above, user=bool(spec.user), shares=spec.shares or 1
            )


def _site(series: str, mariadb: MariadbHost) -> Iterator[RealSite]:
    database = mariadb.database(f"resources_{series.replace('.', '_')}")
    host = AccountingHost(ensure(series), database=database, extra_conf=EXTRA)
    host.write_file("gres.conf", GRES, 0o444)
    with host:
        (port,) = ports.hold(1)
        conf = f"Port={port} CPUs=4 RealMemory=256 Features=all Gres=gpu:h100:2"
        host.start_slurmd("g-0", ["slurmd", "-D", "-Z", "-N", "g-0", "-f", "/etc/slurm/slurm.conf", "--conf", conf])
        yield RealSite(host)


@pytest.fixture(scope="module")
def site_24_11(mariadb: MariadbHost) -> Iterator[RealSite]:
    yield from _site("24.11", mariadb)


@pytest.fixture(scope="module")
def site_26_05(mariadb: MariadbHost) -> Iterator[RealSite]:
    yield from _site("26.05", mariadb)


@pytest_asyncio.fixture
async def site(case: tuple[str, str, str], request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    kind, series, _ = case
    if kind == "real":
        yield request.getfixturevalue(f"site_{series.replace('.', '_')}")
        return
    async with FakeSlurmrestd(release=f"{series}.5", key=b"k" * 32) as fake:
        fake.add_node("g-0", cpus=4, memory=256, gres="gpu:h100:2")
        yield FakeSite(fake)


@pytest_asyncio.fixture
async def slurm(site: Site, version: str) -> AsyncIterator[SlurmClient]:
    async with site.client(version) as client:
        yield client
        for job in await client.jobs():
            if not job.is_finished:
                await client.cancel_job(job)

        async def idle() -> bool:
            return all(job.is_finished and "COMPLETING" not in job.state.flags for job in await client.jobs())

        await until(idle)


async def submitted(slurm: SlurmClient, **wishes: Any) -> int:
    wishes = {"standard_output": "/dev/null", "working_directory": "/tmp", "tasks": 1, **wishes}
    return (await slurm.submit_job(JobSpec(script=SCRIPT, **wishes))).id


async def until_running(slurm: SlurmClient, job_id: int) -> None:
    async def running() -> bool:
        return (await slurm.job(job_id)).is_running

    await until(running)


async def test_gpus_are_given_to_jobs_and_shown(slurm: SlurmClient) -> None:
    assert (await slurm.node("g-0")).gres == "gpu:h100:2"
    one = await submitted(slurm, tres_per_node="gres/gpu:h100:1")
    await until_running(slurm, one)
    job, node = await slurm.job(one), await slurm.node("g-0")
    assert (job.tres_per_node, job.gres_detail) == ("gres/gpu:h100:1", ("gpu:h100:1(IDX:0)",))
    for counted in (Tres.parse(job.tres_requested), Tres.parse(job.tres_allocated)):
        assert (counted.gpus, counted["gres/gpu:h100"]) == (1, 1)
    assert node.gres_used == "gpu:h100:1(IDX:0)"
    assert Tres.parse(node.tres).gpus == 2
    both = await submitted(slurm, tres_per_node="gres/gpu:2")
    waiting = await slurm.job(both)
    assert (waiting.state.base, waiting.gres_detail) == ("PENDING", ())

    async def says_why() -> bool:
        return (await slurm.job(both)).state_reason == "Resources"

    await until(says_why)
    await slurm.cancel_job(one)
    await until_running(slurm, both)
    assert (await slurm.job(both)).gres_detail == ("gpu:h100:2(IDX:0-1)",)
    assert (await slurm.node("g-0")).gres_used == "gpu:h100:2(IDX:0-1)"


@pytest.mark.parametrize("wish", ["gres/nosuch:1", "gres/gpu:h100:x", "gres/gpu:3"])
async def test_gpus_that_there_are_not_are_refused(slurm: SlurmClient, wish: str) -> None:
    with pytest.raises(errors.InvalidRequest):
        await submitted(slurm, tres_per_node=wish)


async def test_a_job_that_ran_out_of_time_has_failed_whatever_its_script_says(slurm: SlurmClient, site: Site) -> None:
    if (job_id := site.timed_out) is None:
        job_id = await submitted(slurm)
        await until_running(slurm, job_id)
        await site.end_time_of(job_id)
        site.timed_out = job_id
    finished = await slurm.wait_job(job_id, first_pause=0.1, longest_pause=0.5)
    (end,) = finished.ends
    assert end.state.base == "TIMEOUT"
    assert end.exit_code is not None
    assert (end.exit_code.return_code, end.exit_code.signal) == (0, None)
    assert (finished.succeeded, finished.exit_status) == (False, 1)
    job = await slurm.job(job_id)
    assert (job.state.base, job.state_reason, job.succeeded) == ("TIMEOUT", "TimeLimit", False)


async def test_the_fair_share_tree(slurm: SlurmClient, site: Site) -> None:
    await site.plant()

    async def there() -> bool:
        return {"ada", "bob", "cai"} <= {each.name for each in await slurm.shares()}

    await until(there)
    found = {(each.parent, each.name): each for each in await slurm.shares() if each.name != "root"}
    shown = {key: (each.kind, each.shares, round(each.shares_normalized or 0, 6)) for key, each in found.items()}
    # Shares are compared among siblings; root has a share of its own.
    assert shown == {
        ("root", "physics"): (("ASSOCIATION",), 3, 0.375),
        ("physics", "ada"): (("USER",), 2, 0.25),
        ("physics", "bob"): (("USER",), 6, 0.75),
        ("root", "biology"): (("ASSOCIATION",), 4, 0.5),
        ("biology", "cai"): (("USER",), 1, 1.0),
    }
    assert {each.usage for each in found.values()} == {0}
    assert {each.name for each in await slurm.shares(users=["ada"]) if each.kind == ("USER",)} == {"ada"}
