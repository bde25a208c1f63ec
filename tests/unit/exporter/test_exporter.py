"""The exporter over a fake slurmrestd: what scrapes cost, and what they show when Slurm does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from slurm_client import MintedToken, SlurmClient
from slurm_client.connection.circuit import Circuit
from slurm_client.testing import FakeSlurmrestd
from slurm_exporter.counting import Budgets
from slurm_exporter.exporter import Exporter, pace
from slurm_exporter.sources.collector import Cadence
from tests.unit.slurm_client.clients import KEY, SOON

CADENCE = Cadence(interval=0.02, slow_interval=0.02, stale_after=3600)


class Scraper:
    """Gets pages of an exporter."""

    def __init__(self, exporter: Exporter, http: httpx.AsyncClient) -> None:
        self.exporter = exporter
        self._http = http

    async def get(self, path: str) -> httpx.Response:
        return await self._http.get(f"http://127.0.0.1:{self.exporter.port}{path}")

    async def values(self) -> dict[tuple[str, ...], float]:
        """Samples by name and sorted label values."""
        answer = await self.get("/metrics")
        assert answer.status_code == 200
        return {
            (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
        }

    async def until(
        self, what: Callable[[dict[tuple[str, ...], float]], Any], *, refreshing: bool = False
    ) -> dict[tuple[str, ...], float]:
        while True:
            if refreshing:
                await self.exporter.refresh()
            values = await self.values()
            if what(values):
                return values
            await asyncio.sleep(0.01)


@asynccontextmanager
async def exporting(fake: FakeSlurmrestd, cadence: Cadence = CADENCE, **options: Any) -> AsyncIterator[Scraper]:
    client = SlurmClient(fake.url, MintedToken(KEY), pace=pace(cadence), retry=SOON, circuit=Circuit(threshold=0))
    async with (
        client,
        Exporter(client, cadence, options.pop("budgets", Budgets()), host="127.0.0.1", port=0, **options) as exporter,
        httpx.AsyncClient() as http,
    ):
        yield Scraper(exporter, http)


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlurmrestd]:
    async with FakeSlurmrestd(key=KEY) as server:
        for number in range(3):
            server.add_node(f"w-{number}")
        yield server


async def test_changes_of_slurm_appear_on_the_page(fake: FakeSlurmrestd) -> None:
    async with exporting(fake, labels={"slurm_cluster": "site"}) as scraper:
        values = await scraper.until(lambda found: found.get(("slurm_cluster_nodes", "site", "idle")) == 3)
        assert values["slurm_exporter_up", "site"] == 1
        fake.add_job(nodes=["w-0"])
        values = await scraper.until(lambda found: found.get(("slurm_cluster_jobs", "site", "running")) == 1)
        assert values["slurm_cluster_jobs", "site", "pending"] == 0
        assert (await scraper.get("/readyz")).text == "ok\n"


async def test_a_scrape_never_makes_a_call_to_slurm(fake: FakeSlurmrestd) -> None:
    slow = Cadence(interval=3600, slow_interval=3600, stale_after=7200)
    async with exporting(fake, slow) as scraper:
        # Once the most important is there, the page is written each hour: what comes later is not on it.
        sources = {("slurm_exporter_source_age_seconds", source) for source in ("slurmdbd", "shares", "licenses")}
        await scraper.until(
            lambda found: {("slurm_cluster_jobs", "running"), *sources} <= found.keys(), refreshing=True
        )
        before = len(fake.requests)
        for _ in range(10):
            await scraper.values()
        assert len(fake.requests) == before


async def test_without_slurm_there_is_a_page_that_says_so(fake: FakeSlurmrestd) -> None:
    fake.faults.add(status=503, times=None)
    async with exporting(fake) as scraper:
        values = await scraper.until(lambda found: found.get(("slurm_exporter_source_failures_total", "jobs"), 0) > 1)
        assert values["slurm_exporter_up",] == 0
        assert ("slurm_exporter_source_age_seconds", "jobs") not in values
        assert not [key for key in values if key[0].startswith("slurm_cluster_")]
        answer = await scraper.get("/readyz")
        assert answer.status_code == 503
        assert answer.text == "Slurm has not yet answered for: jobs, nodes, partitions\n"
        assert (await scraper.get("/livez")).status_code == 200
        fake.faults.clear()
        await scraper.until(lambda found: found["slurm_exporter_up",] == 1)


async def test_old_data_is_shown_with_its_age_until_it_is_too_old(fake: FakeSlurmrestd) -> None:
    time = [0.0]
    async with exporting(fake, Cadence(0.02, 0.02, stale_after=60), clock=lambda: time[0]) as scraper:
        await scraper.until(lambda found: ("slurm_cluster_partition_nodes", "all", "idle") in found)
        fake.faults.add(status=503, times=None)
        values = await scraper.until(lambda found: found["slurm_exporter_up",] == 0)
        assert ("slurm_cluster_schedule_queue_length",) in values
        time[0] = 1000.0
        values = await scraper.until(lambda found: ("slurm_cluster_schedule_queue_length",) not in found)
        assert values["slurm_exporter_source_age_seconds", "diag"] == 1000


async def test_a_refused_token_is_seen(fake: FakeSlurmrestd) -> None:
    fake.key = b"another key of thirty-two bytes!"
    async with exporting(fake) as scraper:
        values = await scraper.until(lambda found: found.get(("slurm_exporter_source_failures_total", "nodes"), 0) > 0)
        assert values["slurm_exporter_source_up", "nodes"] == 0


async def test_single_nodes_beyond_the_limit_are_counted(fake: FakeSlurmrestd) -> None:
    async with exporting(fake, budgets=Budgets(nodes=1)) as scraper:
        values = await scraper.until(lambda found: ("slurm_cluster_nodes", "idle") in found)
        assert values["slurm_exporter_left_out", "nodes"] == 2
        assert ("slurm_cluster_node_cpus", "w-0") in values
        assert ("slurm_cluster_node_cpus", "w-1") not in values


async def test_the_index_names_the_pages(fake: FakeSlurmrestd) -> None:
    async with exporting(fake) as scraper:
        assert "/metrics" in (await scraper.get("/")).text
