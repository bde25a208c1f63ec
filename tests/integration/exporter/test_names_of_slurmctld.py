"""Names of slurmctld's own endpoint, served by the exporter: those of a real slurmctld 26.05, with its numbers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Final

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from hack.images.rootfs import ensure
from slurm_client import MintedToken, SlurmClient
from slurm_exporter.counting import Budgets
from slurm_exporter.exporter import Exporter, pace
from slurm_exporter.other_names import slurmctld
from slurm_exporter.sources.collector import Cadence
from tests.support.slurm_host import SlurmHost

CADENCE = Cadence(interval=0.2, slow_interval=0.5)
PAGES: Final = ("jobs", "nodes", "partitions", "scheduler", "jobs-users-accts")
MIB: Final = 1024 * 1024
MOVES: Final = re.compile(
    r"slurm_(node_memory_free_bytes|partition_nodes_mem_free|sdiag_latency|sched_stats_timestamp|last_proc_req_start"
    r"|(schedule|sched|bf|agent|server)_\w+|backfilled_\w+|last_backfilled_jobs|sdiag_job_states_ts)"
)
"""What moves all the time: only that it is there can be compared."""

RECORDS: Final = re.compile(r"slurm_(partition|user|account)_jobs")
"""Where slurmctld counts records that have not ended instead of tasks."""

Values = dict[str, dict[tuple[tuple[str, str], ...], float]]


@pytest.fixture
def slurm() -> Iterator[SlurmHost]:
    """Three nodes, one of them drained; jobs of all kinds."""
    extra = "MetricsType=metrics/openmetrics\nNodeSet=big Feature=big\nPartitionName=big Nodes=big\nPartitionName=none"
    with SlurmHost(ensure("26.05"), extra_conf=extra) as host:
        host.add_node("n-0", cpus=4)
        host.add_node("n-1", cpus=2, features=("all", "big"))
        host.add_node("n-2", cpus=1)
        host.run("scontrol", "update", "NodeName=n-2", "State=DRAIN", "Reason=fans")
        host.sbatch("sleep 600", "-n2")
        host.sbatch("true", "--hold", "-N2")
        host.sbatch("sleep 600", "-p", "big", "-N3")
        host.sbatch("sleep 600", "-p", "big", "--array=0-4", "--exclusive")
        failed = host.sbatch("exit 3")
        host.wait_for(lambda: host.job_state(failed) == "FAILED", "a job has failed")
        yield host


def read(text: str) -> tuple[Values, dict[str, str]]:
    """Values by name and labels, and the type of each name."""
    values: Values = {}
    kinds: dict[str, str] = {}
    for family in text_string_to_metric_families(text):
        kinds[family.name] = family.type
        for sample in family.samples:
            # slurmctld gives jobs without an account no label.
            labels = tuple(sorted((key, value) for key, value in sample.labels.items() if value))
            values.setdefault(sample.name, {})[labels] = sample.value
    return values, kinds


async def real(http: httpx.AsyncClient, slurm: SlurmHost) -> tuple[Values, dict[str, str]]:
    pages = [await http.get(f"http://127.0.0.1:{slurm.slurmctld_port}/metrics/{page}") for page in PAGES]
    values: Values = {}
    kinds: dict[str, str] = {}
    for page in pages:
        found = read(page.text)
        values |= found[0]
        kinds |= found[1]
    return values, kinds


def compared(name: str, there: dict[tuple[tuple[str, str], ...], float]) -> dict[tuple[tuple[str, str], ...], float]:
    """What the exporter is to say where slurmctld says this."""
    return {labels: value * (MIB if name.endswith("bytes") else 1) for labels, value in there.items()}


async def test_each_name_of_a_real_slurmctld_is_served_with_its_number(slurm: SlurmHost) -> None:
    budgets = Budgets(users=5, accounts=5, names=frozenset({"slurmctld"}))
    async with (
        SlurmClient(slurm.url, MintedToken(slurm.jwt_key, user="slurm"), pace=pace(CADENCE)) as client,
        Exporter(client, CADENCE, budgets, accounting=False, host="127.0.0.1", port=0) as exporter,
        httpx.AsyncClient(trust_env=False) as http,
    ):
        while True:
            there, kinds = await real(http, slurm)
            here, types = read((await http.get(f"http://127.0.0.1:{exporter.port}/metrics")).text)
            # Asked again until both have seen the same: what never agrees ends by the test's time.
            wrong = {
                name: (values, here.get(name))
                for name, values in there.items()
                if not (name.startswith("slurm_account_") or MOVES.fullmatch(name) or RECORDS.fullmatch(name))
                and here.get(name) != compared(name, values)
            }
            if not wrong:
                break
            await asyncio.sleep(0.1)
        missing = {name for name in there if name not in here and not name.startswith("slurm_account_")}
        assert not missing
        # No job here has an account; slurmctld has them under none.
        served = {name for name in there if not name.startswith("slurm_account_")}
        assert {name: types[name] for name in served} == {name: kinds[name] for name in served}
        declared = {family.name for family in slurmctld.families()}
        assert set(there) == declared
        # Tasks, where slurmctld counts records.
        assert here["slurm_partition_jobs"][("partition", "big"),] == 6
        assert here["slurm_user_jobs"][("username", "root"),] == here["slurm_jobs"][()] == 9
