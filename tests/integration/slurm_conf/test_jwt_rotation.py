"""The key of auth/jwt is replaced by the operator's own questions, on real daemons with accounting, while jobs run.

The order is that of the operator: the file is mounted, slurmctld gets a reconfigure, a token signed with the new key is
tried, Tokens are made again, and slurmdbd is started again.
docs/development/reliability-journal.md has what this test prints.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import httpx
import pytest

from hack.images.rootfs import ensure, ensure_mariadb
from hack.machine import ports
from hack.machine.progress import say
from slinky_operator.cluster.actions import Reload
from slinky_operator.cluster.memory.rollout import Loaded
from slinky_operator.cluster.rollout.reload import reload
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.slurm.connection.clients import ClientMap, OwnTokens
from slinky_operator.slurm.connection.contact import Endpoint
from slinky_operator.slurm.tokens.signing_keys import SigningKey
from slurm_client import MintedToken
from tests.integration.slurm_conf.test_key_orders import all_ended_well
from tests.support.accounting_host import AccountingHost
from tests.support.mariadb_host import MariadbHost
from tests.support.slurm_host import SLURM_UID

pytestmark = pytest.mark.timeout(300)

HOUR: Final = timedelta(hours=1)

OF_SLURMCTLD: Final = ("slurm/v0.0.42/nodes/", "slurm/v0.0.42/jobs/", "slurm/v0.0.42/licenses/")
"""What slurmctld answers by itself."""

OF_SLURMDBD: Final = ("slurm/v0.0.42/partitions/", "slurmdb/v0.0.42/clusters/")
"""What slurmrestd asks slurmdbd for, too."""


@dataclass(frozen=True)
class Call:
    """A call of a program that reads its token before each."""

    path: str
    key: object
    began: float
    ended: float
    status: int


class Load:
    """Jobs are submitted, and both slurmrestds called, until the end.

    Parameters
    ----------
    key
        The key of tokens, which may be changed.
    sign
        Makes a token with it.
    """

    def __init__(self, host: AccountingHost, rest_ports: tuple[int, ...], key: Any, sign: Callable[[Any], str]) -> None:
        self._host, self._ports = host, rest_ports
        self.key, self._sign = key, sign
        self.jobs: list[int] = []
        self.calls: list[Call] = []
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=one) for one in (self._submit, self._call)]
        for one in self._threads:
            one.start()

    def end(self) -> None:
        self._ending.set()
        for one in self._threads:
            one.join()

    def goes_on(self) -> None:
        """Wait until each kind of call was made twice more, and a job submitted."""
        calls, jobs = len(self.calls) + 4 * len((*OF_SLURMCTLD, *OF_SLURMDBD)), len(self.jobs) + 1
        self._host.wait_for(lambda: len(self.calls) >= calls and len(self.jobs) >= jobs, "the load goes on")

    def _submit(self) -> None:
        while not self._ending.wait(0.3):
            self.jobs.append(self._host.sbatch("sleep 1", "--mem=10"))

    def _call(self) -> None:
        with httpx.Client(timeout=30, trust_env=False) as http:
            for path, port in itertools.cycle(itertools.product((*OF_SLURMCTLD, *OF_SLURMDBD), self._ports)):
                if self._ending.wait(0.02):
                    return
                key, began = self.key, time.monotonic()
                headers = {"X-SLURM-USER-TOKEN": self._sign(key)}
                status = http.get(f"http://127.0.0.1:{port}/{path}", headers=headers).status_code
                self.calls.append(Call(path, key, began, time.monotonic(), status))


def token(key: bytes) -> str:
    return asyncio.run(MintedToken(key, lifetime=HOUR).token())


def mount(host: AccountingHost, key: bytes) -> None:
    """Replace the file as a kubelet does; no daemon looks before its start or a reconfigure."""
    new = host.configuration / "jwt.key.new"
    new.write_bytes(key)
    os.chown(new, SLURM_UID, SLURM_UID)
    new.chmod(0o400)
    new.rename(host.configuration / "jwt.key")


class Operator:
    """What the operator does about another key, with its own client."""

    def __init__(self, host: AccountingHost, urls: tuple[str, ...]) -> None:
        self._host = host
        self._urls = urls

    async def bring(self, old: bytes, new: bytes, change: str) -> tuple[bool, Loaded]:
        """Try the key, let slurmctld read it, and return whether it was refused before, and what became of that."""
        clients = ClientMap(OpenFence())
        try:
            keys = (SigningKey(old), SigningKey(new))
            entry = await clients.put(
                "u",
                "ns",
                "slurm",
                endpoint=Endpoint(self._urls[0]),
                token=OwnTokens(keys, HOUR),
                fingerprint=change,
                replicas=self._urls,
            )
            attempt = MintedToken(new, lifetime=HOUR)
            refused = bool(await clients.why_refused("u", attempt))
            loaded: Loaded | None = None
            while loaded is None or await clients.why_refused("u", attempt):
                action = Reload("pod", change, {"all": "ALL"}, loaded if loaded and loaded.asked is not None else None)
                loaded = await reload(entry, action, time.monotonic)
                self._host.revive_slurmctld()
            return refused, loaded
        finally:
            await clients.close_all()

    async def proven(self, key: bytes, loaded: Loaded) -> Loaded:
        """The outcome of the same reconfigure once slurmdbd answers again."""
        clients = ClientMap(OpenFence())
        try:
            entry = await clients.put(
                "u",
                "ns",
                "slurm",
                endpoint=Endpoint(self._urls[0]),
                token=OwnTokens((SigningKey(key),), HOUR),
                fingerprint="",
                replicas=self._urls,
            )
            while not loaded.proven:
                before = loaded if loaded.asked is not None else None
                action = Reload(loaded.pod_uid, loaded.change, {"all": "ALL"}, before)
                loaded = await reload(entry, action, time.monotonic)
            return loaded
        finally:
            await clients.close_all()


@pytest.fixture(params=["24.11", "26.05"])
def slurm(request: pytest.FixtureRequest) -> Iterator[AccountingHost]:
    with MariadbHost(ensure_mariadb()) as mariadb:
        host = AccountingHost(ensure(request.param), database=mariadb.database("jwt"))
        try:
            host.start()
            host.add_node("w-0", cpus=16, memory=4096)
            yield host
        finally:
            host.close()


def test_a_key_is_replaced_under_jobs_whichever_daemon_has_it_first(slurm: AccountingHost) -> None:
    (second,) = ports.hold(1)
    slurm.start_slurmrestd("slurmrestd-2", second)
    operator = Operator(slurm, (slurm.url, f"http://127.0.0.1:{second}"))
    load = Load(slurm, (slurm.rest_port, second), slurm.jwt_key, token)
    told: dict[str, Any] = {}
    try:
        for first in ("slurmctld", "slurmdbd"):
            load.goes_on()
            old, new, began = load.key, secrets.token_bytes(32), time.monotonic()
            mount(slurm, new)
            if first == "slurmdbd":
                # As after an eviction: it has what is in the Secret, and slurmctld has not.
                slurm.stop("slurmdbd")
                slurm.start_slurmdbd()
            refused, loaded = asyncio.run(operator.bring(old, new, first))
            assert refused, "the key was taken before slurmctld had it"
            load.key, renewed = new, time.monotonic()
            load.goes_on()
            if first == "slurmctld":
                slurm.stop("slurmdbd")
                slurm.start_slurmdbd()
            assert asyncio.run(operator.proven(new, loaded)).proven
            ended = time.monotonic()
            load.goes_on()
            assert not [one for one in load.calls if one.began > ended and one.status != 200]
            failed = [one for one in load.calls if one.status != 200 and one.began >= began]
            with_new = [one for one in failed if one.key == new]
            assert {one.path for one in with_new} <= {*OF_SLURMDBD}, "slurmctld has the key"
            assert all(one.began < ended for one in with_new), "slurmdbd has it as well"
            told[first] = f"tokens {renewed - began:.1f} s, all {ended - began:.1f} s, {len(failed)} calls failed"
    finally:
        load.end()
    all_ended_well(slurm, load.jobs)
    say(f"{len(load.jobs)} jobs, 0 lost, {len(load.calls)} calls; {told}")
