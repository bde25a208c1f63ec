"""
What 10,000 jobs leave in the database of slurmdbd, and what the operator's query of slurmdbd costs before and after.

``pytest tests/bench/accounting --capture=no --override-ini=testpaths=tests/bench`` prints the numbers; nothing is
asserted about times. ``BENCH_JOBS`` sets the number of jobs.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import httpx
import pytest

from hack.images.rootfs import ensure, ensure_mariadb
from slurm_client import MintedToken, SyncSlurmClient
from tests.support.accounting_host import CLUSTER, AccountingHost
from tests.support.mariadb_host import MariadbHost

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(3600)

JOBS = int(os.environ.get("BENCH_JOBS", "10000"))
SLOTS = 32
"""Jobs at a time."""

ROUNDS = 50
COMPLETED = 3
"""State of a job in the tables of slurmdbd."""


@dataclass
class Measured:
    """A cluster that may have that many jobs, and the server of its database."""

    slurm: AccountingHost
    mariadb: MariadbHost

    def tables(self) -> dict[str, tuple[int, int]]:
        """Bytes with indexes, and rows, by table."""
        name = self.slurm.database.name
        tables = self.mariadb.query(f"SHOW TABLES IN {name}").split()
        self.mariadb.query("".join(f"ANALYZE TABLE {name}.{one};" for one in tables))
        found = {}
        for line in self.mariadb.query(f"SHOW TABLE STATUS IN {name}").splitlines():
            fields = line.split("\t")
            data, index = int(fields[6]), int(fields[8])
            found[fields[0]] = (data + index, self.rows(fields[0]))
        return found

    def rows(self, table: str, where: str = "") -> int:
        """Count rows."""
        return int(self.mariadb.query(f"SELECT COUNT(*) FROM {self.slurm.database.name}.{table} {where}"))  # noqa: S608 - names of this file

    def files(self) -> int:
        """Bytes of the database's files."""
        return sum(path.stat().st_size for path in (self.mariadb.data / self.slurm.database.name).iterdir())

    def poll(self) -> str:
        """The operator's query whether slurmdbd answers: bytes of its answer, and its time."""
        times = []
        with SyncSlurmClient(self.slurm.url, MintedToken(self.slurm.jwt_key)) as client:
            version = client.connect()
            for _ in range(ROUNDS):
                began = time.perf_counter()
                client.db.cluster(CLUSTER)
                times.append(time.perf_counter() - began)
        url, headers = (
            f"{self.slurm.url}/slurmdb/{version}/cluster/{CLUSTER}",
            {"X-SLURM-USER-TOKEN": self.slurm.token()},
        )
        answer = httpx.get(url, headers=headers, trust_env=False, timeout=60)
        times.sort()
        return f"{len(answer.content)} bytes, median {times[ROUNDS // 2] * 1e3:.1f} ms, best {times[0] * 1e3:.1f} ms"


@pytest.fixture(params=["24.11", "26.05"])
def measured(request: pytest.FixtureRequest) -> Iterator[Measured]:
    """Start a cluster and a database server of their own."""
    limits = f"MaxJobCount={2 * JOBS + 1000}\nMaxArraySize={JOBS + 1}\nMinJobAge=2"
    with (
        MariadbHost(ensure_mariadb()) as mariadb,
        AccountingHost(ensure(request.param), database=mariadb.database("acct"), extra_conf=limits) as slurm,
    ):
        slurm.add_node("w-0", cpus=SLOTS)
        yield Measured(slurm, mariadb)


def test_ten_thousand_jobs(measured: Measured) -> None:
    """Run them all, and print what they have left."""
    slurm, table = measured.slurm, f"{CLUSTER}_job_table"
    before = measured.tables()
    print(f"\n{slurm.run('slurmctld', '-V').stdout.strip()}, load {os.getloadavg()[0]:.1f}")
    print(f"no job on record: poll {measured.poll()}; files {measured.files()} bytes")
    began = time.monotonic()
    slurm.sbatch("exit 0", f"--array=1-{JOBS}")
    slurm.wait_for(
        lambda: measured.rows(table, f"WHERE state = {COMPLETED}") >= JOBS, "all jobs are recorded", timeout=3000
    )
    print(f"{JOBS} jobs have run in {time.monotonic() - began:.0f} s")
    after = measured.tables()
    added = sum(size for size, _ in after.values()) - sum(size for size, _ in before.values())
    print(f"{JOBS} jobs on record: tables have grown by {added} bytes; files {measured.files()} bytes")
    print("rows: " + ", ".join(f"{name} {rows}" for name, (_, rows) in sorted(after.items()) if rows))
    print(f"{JOBS} jobs on record: poll {measured.poll()}; load {os.getloadavg()[0]:.1f}")
    with SyncSlurmClient(slurm.url, MintedToken(slurm.jwt_key), timeout=300) as client:
        began = time.perf_counter()
        found = client.db.jobs(datetime.now(UTC) - timedelta(days=1))
        print(f"the list of all jobs: {len(found)} in {time.perf_counter() - began:.1f} s")
    assert after[table][1] >= JOBS
