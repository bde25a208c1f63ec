"""Public dashboards of other exporters: a real Prometheus answers what their panels ask, of a real Slurm with accounts.

Grafana's dashboard 4323 is taken by its queries. The JSON of 19835 is not at hand: of its exporter all names and labels
are asked for, and what two other public dashboards for it ask.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from hack.images.rootfs import ensure, ensure_mariadb
from hack.localkube.kubectl import wait_for
from hack.machine import ports
from slurm_exporter.other_names import rivosinc
from tests.support.accounting_host import AccountingHost
from tests.support.mariadb_host import MariadbHost
from tests.support.prometheus import PATIENCE, Prometheus, scraping

pytestmark = pytest.mark.long(95)

NAMES: Final = ("vpenso", "rivosinc")

OF_4323: Final = (
    "slurm_account_fairshare",
    "slurm_nodes_alloc + slurm_nodes_comp",
    "slurm_nodes_mix",
    "slurm_nodes_idle",
    " + ".join(f"slurm_nodes_{state}" for state in ("alloc", "down", "drain", "idle", "mix", "comp", "maint", "resv")),
    "slurm_nodes_down",
    "slurm_nodes_drain",
    "slurm_nodes_err",
    "slurm_nodes_fail",
    "slurm_queue_completing",
    "slurm_queue_running",
    "slurm_queue_pending",
    "slurm_queue_completed != 0",
    "slurm_queue_timeout",
    "slurm_queue_failed",
    "slurm_queue_node_fail",
    "slurm_queue_suspended",
    "slurm_queue_cancelled",
    "slurm_queue_preempted",
    "slurm_partition_jobs_pending > 0",
    "slurm_account_jobs_running{account!~'none'} != 0",
    "slurm_account_jobs_pending{account!~'none'} > 0",
    "slurm_user_jobs_running != 0",
    "slurm_user_jobs_pending != 0",
    "slurm_account_cpus_running{account!~'none'}",
    "slurm_user_cpus_running > 0",
    "slurm_cpus_total",
    "slurm_cpus_alloc",
    "slurm_cpus_idle",
    "slurm_partition_cpus_allocated != 0",
    "slurm_partition_cpus_idle",
    "slurm_scheduler_threads",
    "slurm_scheduler_queue_size",
    "slurm_scheduler_dbd_queue_size",
    "slurm_scheduler_last_cycle",
    "slurm_scheduler_mean_cycle",
    "slurm_scheduler_backfill_last_cycle",
    "slurm_scheduler_backfill_mean_cycle",
    "slurm_scheduler_backfill_depth_mean",
    "slurm_scheduler_backfilled_heterogeneous_total",
    "delta(slurm_scheduler_backfilled_jobs_since_start_total[10m])",
    "slurm_scheduler_backfilled_jobs_since_start_total",
    "delta(slurm_scheduler_backfilled_jobs_since_cycle_total[10m])",
    "slurm_scheduler_backfilled_jobs_since_cycle_total",
)
"""What its panels ask, without the `!= 0` of nodes that fail and jobs that complete: both are zero here."""

FOR_RIVOSINC: Final = (
    "sum(slurm_cpu_load)",
    "sum(slurm_cpus_total)",
    "sum(slurm_cpus_idle)",
    "sum(slurm_mem_real)",
    "sum(slurm_mem_alloc)",
    "sum(slurm_mem_free)",
    "slurm_mem_alloc / 1e9",
    "sum(slurm_node_count_per_state)",
    'sum(slurm_node_count_per_state{state=~"idle.*|allocated.*|mixed.*|completing.*|planned.*"})',
    'slurm_node_count_per_state{state=~"mixed.*"}',
    'sum(slurm_cpus_per_state{state=~"mixed.*"})',
    "last_over_time(sum by (state) (slurm_node_count_per_state)[5m:])",
    "last_over_time(sum by (state) (slurm_cpus_per_state)[5m:])",
    "avg(slurm_job_scrape_duration) without (instance)",
    "avg(slurm_node_scrape_duration) without (instance)",
    "slurm_partition_alloc_cpus",
    "slurm_partition_total_cpus",
    'sum by (username) (max_over_time(slurm_user_state_total{state="RUNNING", username!=""}[5m]))',
    'sum by (partition) (max_over_time(slurm_partition_job_state_total{state="PENDING"}[5m]))',
)
"""What public dashboards for rivosinc's exporter ask, with its names, labels and words of states."""


@pytest.fixture
def slurm() -> Iterator[AccountingHost]:
    """Two nodes, licences, and jobs of an account that run, wait and have ended."""
    extra = "Licenses=matlab:5\n"
    with (
        MariadbHost(ensure_mariadb()) as mariadb,
        AccountingHost(ensure("26.05"), database=mariadb.database("dashboards"), extra_conf=extra) as host,
    ):
        host.sacctmgr("add", "account", "physics")
        host.sacctmgr("add", "user", "root", "account=physics", "defaultaccount=physics")
        host.add_node("n-0", cpus=4, features=("big",))
        host.add_node("n-1", cpus=2)
        host.sbatch("sleep 600", "-n2", "-A", "physics", "-L", "matlab:2", "-w", "n-0", "-C", "big")
        host.sbatch("true", "-N2", "--exclusive", "-A", "physics")
        done = host.sbatch("true", "-A", "physics", "-w", "n-1")
        host.wait_for(lambda: host.job_state(done) == "COMPLETED", "a job has completed")
        yield host


@pytest.fixture
def page(slurm: AccountingHost, tmp_path: Path) -> Iterator[int]:
    """The program, with both sets of names, on this port."""
    key = tmp_path / "jwt.key"
    key.write_bytes(slurm.jwt_key)
    (port,) = ports.hold(1)
    names = [f"--names={name}" for name in NAMES]
    limits = ["--users=5", "--accounts=5", "--call-users=5", "--interval=1", "--slow-interval=1"]
    about = [f"--server={slurm.url}", f"--key-file={key}", "--user=slurm", "--listen-address=127.0.0.1"]
    command = [sys.executable, "-m", "slurm_exporter", *about, f"--port={port}", *limits, *names]
    with subprocess.Popen(command) as process:
        try:
            yield port
        finally:
            process.terminate()
            process.wait()


def unanswered(prometheus: Prometheus) -> list[str]:
    """What has no data now: queries of dashboards, and names of 19835's exporter, or those that have other labels."""
    empty = [query for query in (*OF_4323, *FOR_RIVOSINC) if not prometheus.query(query)]
    for family in rivosinc.families():
        found = prometheus.query(family.name)
        if not found or not all(set(family.labels) <= set(sample["metric"]) for sample in found):
            empty.append(family.name)
    return empty


@pytest.mark.full
def test_every_query_is_answered_with_data(page: int, tmp_path: Path) -> None:
    with scraping(tmp_path, page) as prometheus:
        wait_for("an answer to everything", lambda: not unanswered(prometheus), PATIENCE)
        (running,) = prometheus.query("slurm_account_cpus_running")
        assert (running["metric"]["account"], running["value"][1]) == ("physics", "2")
        (state,) = prometheus.query('slurm_partition_job_state_total{state="RUNNING"}')
        assert (state["metric"]["partition"], state["value"][1]) == ("all", "1")
