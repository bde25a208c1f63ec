"""A key set is rotated by the operator's own questions and rules, on real daemons with accounting, while jobs run.

The order is that of the operator: a step is mounted, slurmctld reconfigured, slurmdbd started again; the next one comes
once each daemon has proven the one before. The table in docs/reliability.md has what this test prints.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import pytest

from hack import ports
from hack.images.rootfs import ensure, ensure_mariadb
from slinky_operator.cluster.actions import AskForKeys
from slinky_operator.cluster.execute.slurm.key_questions import ask_daemon, ask_for_keys
from slinky_operator.cluster.keys import key_sets
from slinky_operator.slurm.connection.key_proof import Daemon, Holder
from tests.integration.slurm_conf.test_key_sets import begin, default, key, key_set, put
from tests.support.accounting_host import AccountingHost
from tests.support.mariadb_host import MariadbHost
from tests.support.web import fetch

pytestmark = pytest.mark.timeout(400)

NODES = ("w-0", "w-1")


class Load:
    """Jobs are submitted, and both slurmrestds called, until the end."""

    def __init__(self, host: AccountingHost, rest_ports: tuple[int, ...]) -> None:
        self._host, self._ports = host, rest_ports
        self.jobs: list[int] = []
        self.refused = self.calls = 0
        self.failed: list[str] = []
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=one) for one in (self._submit, self._call)]
        for one in self._threads:
            one.start()

    def end(self) -> None:
        self._ending.set()
        for one in self._threads:
            one.join()

    def _submit(self) -> None:
        while not self._ending.wait(0.3):
            result = self._host.run(
                "sbatch", "--parsable", "-o", "/dev/null", "--mem=10", "--wrap", "sleep 2", check=False
            )
            if result.returncode:
                self.refused += 1
            else:
                self.jobs.append(int(result.stdout.split(";")[0]))

    def _call(self) -> None:
        for port in itertools.cycle(self._ports):
            if self._ending.wait(0.1):
                return
            url = f"http://127.0.0.1:{port}/slurm/v0.0.42/nodes/"
            self.calls += 1
            try:
                status = fetch(url, {"X-SLURM-USER-TOKEN": self._host.token()}, timeout=60).status
            except OSError as error:
                self.failed.append(str(error))
            else:
                if status != HTTPStatus.OK:
                    self.failed.append(f"HTTP {status}")


def holders(host: AccountingHost) -> tuple[Holder, ...]:
    shown = {name: host.run("scontrol", "show", "node", name).stdout for name in NODES}
    slurmds = {name: int(text.split(" Port=")[1].split()[0]) for name, text in shown.items()}
    return (
        Holder("slurmctld", "slurmctld", Daemon.SLURMCTLD, "127.0.0.1", host.slurmctld_port),
        Holder("slurmdbd", "slurmdbd", Daemon.SLURMDBD, "127.0.0.1", host.slurmdbd_port, reloads=False),
        *(Holder(name, name, Daemon.SLURMD, "127.0.0.1", port) for name, port in slurmds.items()),
    )


def lacking(asked: tuple[Holder, ...], *keys: dict[str, Any]) -> dict[str, str]:
    """What each daemon lacks of a set."""
    now = datetime.now(UTC)
    found = key_sets.read(key_set(*keys), now)
    assert found is not None
    action = AskForKeys(found, asked, frozenset(one.id for one in asked), now)
    proof = asyncio.run(ask_for_keys(action, None, ask_daemon, time.monotonic))
    return {name: one.lacks for name, one in proof.found.items() if one.lacks}


@pytest.fixture(params=["24.11", "26.05"])
def slurm(request: pytest.FixtureRequest) -> Iterator[AccountingHost]:
    with MariadbHost(ensure_mariadb()) as mariadb:
        host = AccountingHost(ensure(request.param), database=mariadb.database("rotation"))
        try:
            yield host
        finally:
            host.close()


def test_no_job_is_lost_by_a_rotation_and_each_step_waits_for_all_daemons(slurm: AccountingHost) -> None:
    a, b = key("a"), key("b")
    begin(slurm, a)
    slurm.add_node("w-1", cpus=8, memory=1024)
    (second,) = ports.hold(1)
    slurm.start_slurmrestd("slurmrestd-2", second)
    asked = holders(slurm)
    assert lacking(asked, a) == {}
    load = Load(slurm, (slurm.rest_port, second))
    took: dict[str, float] = {}
    try:
        slurm.wait_for(lambda: len(load.jobs) > 2, "jobs are submitted")

        # The second step before the first is loaded: the daemons say so, and nothing is reconfigured.
        put(slurm, a, b)
        put(slurm, a, default(b))
        assert {*lacking(asked, a, b)} == {one.id for one in asked}
        put(slurm, a, b)

        retiring = {**a, "exp": int(time.time()) + 15}
        for step in ((a, b), (retiring, default(b))):
            began = time.monotonic()
            put(slurm, *step)
            slurm.reconfigure()
            assert {*lacking(asked, *step)} <= {"slurmdbd"}
            slurm.stop("slurmdbd")
            slurm.start_slurmdbd()
            slurm.wait_for(lambda step=step: not lacking(asked, *step), "all daemons have proven the step")  # type: ignore[misc]
            took[f"step {len(took) + 1}"] = time.monotonic() - began
        # The earlier key may go once all refuse it.
        slurm.wait_for(lambda: time.time() > retiring["exp"] + 1, "the earlier key has expired")
        began = time.monotonic()
        assert lacking(asked, retiring, default(b)) == {}
        put(slurm, default(b))
        slurm.reconfigure()
        assert lacking(asked, default(b)) == {}
        took["step 3"] = time.monotonic() - began
        slurm.wait_for(lambda: len(load.jobs) > 20, "jobs go on")
    finally:
        load.end()

    def completed() -> set[int]:
        """By slurmdbd, which has missed no end of a job either."""
        shown = slurm.run("sacct", "-n", "-P", "-X", "-a", "-s", "CD", "-S", "now-1hours", "-E", "now", "-o", "JobID")
        return {int(line) for line in shown.stdout.split()}

    slurm.wait_for(lambda: {*load.jobs} <= completed(), "all jobs have ended well")
    seconds = ", ".join(f"{name} {value:.1f} s" for name, value in took.items())
    print(  # noqa: T201 - the figures of a table
        f"{len(load.jobs)} jobs, 0 lost, {load.refused} submissions refused, "
        f"{len(load.failed)} of {load.calls} calls failed ({sorted(set(load.failed))}); {seconds}"
    )
