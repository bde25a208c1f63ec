"""What the exporter's user must be where Slurm hides jobs and accounts from others (PrivateData), with real daemons."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from hack.images.rootfs import ensure, ensure_mariadb
from slurm_client import MintedToken, SlurmClient
from slurm_exporter.counting import Budgets
from slurm_exporter.exporter import Exporter, pace
from slurm_exporter.sources.collector import Cadence
from tests.support.accounting_host import AccountingHost
from tests.support.mariadb_host import MariadbHost

CADENCE = Cadence(interval=0.2, slow_interval=0.5)
HIDDEN = "PrivateData=accounts,jobs,nodes,partitions,reservations,usage,users"
OPERATOR, NOBODY = "daemon", "nobody"
"""Users that every image knows."""


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariadbHost]:
    with MariadbHost(ensure_mariadb()) as host:
        yield host


@pytest.fixture(params=["24.11", "26.05"])
def slurm(request: pytest.FixtureRequest, mariadb: MariadbHost) -> Iterator[AccountingHost]:
    """Two nodes, and a job of root that is held."""
    database = mariadb.database(f"private_{request.param.replace('.', '_')}")
    with AccountingHost(ensure(request.param), database=database, extra_conf=HIDDEN) as host:
        host.run("sacctmgr", "-i", "add", "account", "all")
        host.run("sacctmgr", "-i", "add", "user", OPERATOR, "account=all", "adminlevel=operator")
        host.add_node("n-0")
        host.add_node("n-1")
        host.sbatch("true", "--hold", "--output=/dev/null")
        yield host


async def test_an_operator_sees_what_nobody_does_not(slurm: AccountingHost) -> None:
    # slurmctld learns a moment after slurmdbd who is an operator.
    await shows(slurm, OPERATOR, {"jobs": 1, "nodes": 2}, denied=set())
    # Jobs of others are left out; nodes and partitions are refused, and the page says so.
    await shows(slurm, NOBODY, {"jobs": 0}, denied={"nodes", "partitions"})


async def shows(slurm: AccountingHost, user: str, wanted: dict[str, int], denied: set[str]) -> None:
    """Wait until an exporter of this user counts what is wanted, and has no answer from the sources that are denied."""
    async with (
        SlurmClient(slurm.url, MintedToken(slurm.jwt_key, user=user), pace=pace(CADENCE)) as client,
        Exporter(client, CADENCE, Budgets(), accounting=False, host="127.0.0.1", port=0) as exporter,
        httpx.AsyncClient() as http,
    ):
        while True:
            page = (await http.get(f"http://127.0.0.1:{exporter.port}/metrics")).text
            sums: dict[str, float] = {}
            sources: dict[str, float] = {}
            for family in text_string_to_metric_families(page):
                for sample in family.samples:
                    sums[sample.name] = sums.get(sample.name, 0) + sample.value
                    if sample.name == "slurm_exporter_source_up":
                        sources[sample.labels["source"]] = sample.value
            counted = {what: sums.get(f"slurm_cluster_{what}") for what in wanted}
            if counted == wanted and {source for source, up in sources.items() if not up} == denied:
                return
            await asyncio.sleep(0.1)
