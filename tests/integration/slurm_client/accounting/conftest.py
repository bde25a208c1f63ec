"""Real clusters with accounting of both Slurm releases, each started once, with one MariaDB for both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from hack.images.rootfs import ensure, ensure_mariadb
from slurm_client.testing import FakeSlurmrestd
from tests.integration.slurm_client.accounting.clusters import (
    AccountingCluster,
    FakeCluster,
    RealCluster,
    start_jobs,
)
from tests.integration.slurm_client.conftest import cases
from tests.support.accounting_host import AccountingHost
from tests.support.mariadb_host import MariadbHost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbHost]:
    """The database server of both slurmdbds."""
    with MariadbHost(ensure_mariadb()) as host:
        yield host


def _cluster(series: str, mariadb: MariadbHost) -> Iterator[RealCluster]:
    with AccountingHost(ensure(series), database=mariadb.database(f"slurm_{series.replace('.', '_')}")) as host:
        host.add_node("w-0", cpus=2)
        host.add_node("w-1", cpus=4)
        yield RealCluster(host, f"{series}.5", start_jobs(host))


@pytest.fixture(scope="session")
def accounting_24_11(mariadb: MariadbHost) -> Iterator[RealCluster]:
    """A cluster of Slurm 24.11."""
    yield from _cluster("24.11", mariadb)


@pytest.fixture(scope="session")
def accounting_26_05(mariadb: MariadbHost) -> Iterator[RealCluster]:
    """A cluster of Slurm 26.05."""
    yield from _cluster("26.05", mariadb)


@pytest.fixture(params=cases("real", "fake", oldest=False))
def case(request: pytest.FixtureRequest) -> tuple[str, str, str]:
    """Kind of target, release and data parser."""
    chosen: tuple[str, str, str] = request.param
    return chosen


@pytest_asyncio.fixture
async def fake(case: tuple[str, str, str]) -> AsyncIterator[FakeCluster]:
    """The fake that pretends to be the release of the case."""
    async with FakeSlurmrestd(release=f"{case[1]}.5", key=b"k" * 32) as server:
        server.add_node("w-0", cpus=2, memory=256)
        server.add_node("w-1", cpus=4, memory=256)
        yield FakeCluster(server)


@pytest.fixture
def accounting(case: tuple[str, str, str], request: pytest.FixtureRequest) -> AccountingCluster:
    """The cluster of the case."""
    kind, series, _ = case
    name = "fake" if kind == "fake" else f"accounting_{series.replace('.', '_')}"
    chosen: AccountingCluster = request.getfixturevalue(name)
    return chosen
