"""Real daemons of both releases prove by their answers which keys of auth/slurm they have, and which not."""

from __future__ import annotations

import asyncio
import base64
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import pytest

from hack.images.rootfs import ensure, ensure_mariadb
from slinky_operator.slurm.connection.key_proof import Answer, Daemon, Verdict, ask
from slinky_operator.slurm.connection.signed_messages import SharedKey
from tests.integration.slurm_conf.test_key_sets import NODE, begin, default, key, put
from tests.support.accounting_host import AccountingHost
from tests.support.key_proof_program import beside_sackd
from tests.support.mariadb_host import MariadbHost

pytestmark = pytest.mark.timeout(300)

NUMBERS = itertools.count()
UNSIGNED = Answer(Verdict.ACCEPTED)

PATIENCE = 120.0
"""Seconds until a daemon answers as it must."""


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariadbHost]:
    with MariadbHost(ensure_mariadb()) as host:
        yield host


@pytest.fixture(params=["24.11", "26.05"])
def slurm(request: pytest.FixtureRequest, mariadb: MariadbHost) -> Iterator[AccountingHost]:
    host = AccountingHost(ensure(request.param), database=mariadb.database(f"keys_{next(NUMBERS)}"))
    try:
        yield host
    finally:
        host.close()


async def asked(host: AccountingHost, daemon: Daemon, one: dict[str, Any]) -> Answer:
    shown = host.run("scontrol", "show", "node", NODE).stdout
    port = {
        Daemon.SLURMCTLD: host.slurmctld_port,
        Daemon.SLURMDBD: host.slurmdbd_port,
        Daemon.SLURMD: int(shown.split(" Port=")[1].split()[0]),
    }[daemon]
    return await ask(daemon, "127.0.0.1", port, SharedKey(one["kid"], base64.b64decode(one["k"])), time.time())


async def until(ask_it: Callable[[], Awaitable[Answer]], wanted: Answer) -> None:
    """Wait until a daemon answers so: one that starts or reconfigures answers nobody for a moment."""
    deadline = time.monotonic() + PATIENCE
    while (found := await ask_it()) != wanted:
        assert time.monotonic() < deadline, f"{found} is the answer, not {wanted}"
        await asyncio.sleep(0.1)


async def shows(host: AccountingHost, daemon: Daemon, one: dict[str, Any], wanted: Answer) -> None:
    await until(lambda: asked(host, daemon, one), wanted)


async def test_each_daemon_shows_which_keys_it_has_read(slurm: AccountingHost) -> None:
    a, b = key("a"), key("b")
    begin(slurm, a)
    for daemon, answer in (
        (Daemon.SLURMCTLD, UNSIGNED),
        (Daemon.SLURMD, Answer(Verdict.ACCEPTED, "a")),
        (Daemon.SLURMDBD, UNSIGNED),
    ):
        await shows(slurm, daemon, a, answer)
        # One whose id is known with another value is no key that it has.
        for other in (b, {**b, "kid": "a"}):
            assert (await asked(slurm, daemon, other)).verdict in {Verdict.REFUSED, Verdict.SILENT}

    # A file that nobody has read changes nothing: what is mounted is not what is loaded.
    put(slurm, a, b)
    for daemon in (Daemon.SLURMCTLD, Daemon.SLURMD, Daemon.SLURMDBD):
        assert (await asked(slurm, daemon, b)).verdict in {Verdict.REFUSED, Verdict.SILENT}
    slurm.reconfigure()
    await shows(slurm, Daemon.SLURMCTLD, b, UNSIGNED)
    await shows(slurm, Daemon.SLURMD, b, Answer(Verdict.ACCEPTED, "a"))

    # slurmdbd has keys from its start only, and no signal changes that.
    log = slurm.folder / "slurmdbd.log"
    slurm.hang_up("slurmdbd")
    log = slurm.folder / "slurmdbd.log"
    slurm.wait_for(lambda: "SIGHUP" in log.read_text(), "slurmdbd has got the signal")
    await shows(slurm, Daemon.SLURMDBD, b, Answer(Verdict.REFUSED))
    slurm.stop("slurmdbd")
    slurm.start_slurmdbd()
    await shows(slurm, Daemon.SLURMDBD, b, UNSIGNED)

    # The default of slurmd shows at once; that of the others by a key that has expired in the same set.
    past = {**a, "exp": int(time.time()) - 1}
    put(slurm, past, default(b))
    await shows(slurm, Daemon.SLURMCTLD, a, UNSIGNED)
    slurm.reconfigure()
    slurm.wait_for(lambda: slurm.node_is_up(NODE), "both sign with the new key")
    await shows(slurm, Daemon.SLURMD, b, Answer(Verdict.ACCEPTED, "b"))
    await shows(slurm, Daemon.SLURMCTLD, a, Answer(Verdict.REFUSED))


async def test_sackd_shows_by_its_socket_which_keys_it_has_read(slurm: AccountingHost) -> None:
    a, b = key("a"), key("b")
    begin(slurm, a)
    slurm.start_sackd()
    with beside_sackd(slurm) as port:

        async def verdict(one: dict[str, Any]) -> Answer:
            shared = SharedKey(one["kid"], base64.b64decode(one["k"]))
            return await ask(Daemon.SACKD, "127.0.0.1", port, shared, time.time())

        await until(lambda: verdict(a), Answer(Verdict.ACCEPTED, "a"))
        for other in (b, {**b, "kid": "a"}):
            assert await verdict(other) == Answer(Verdict.REFUSED)
        # What is mounted is not what is loaded: it is started again for a key, as in its pod.
        put(slurm, a, b)
        assert await verdict(b) == Answer(Verdict.REFUSED)
        past = {**a, "exp": int(time.time()) - 1}
        for step, answers in (
            ((a, b), (Answer(Verdict.ACCEPTED, "a"), Answer(Verdict.ACCEPTED, "a"))),
            ((a, default(b)), (Answer(Verdict.ACCEPTED, "b"), Answer(Verdict.ACCEPTED, "b"))),
            ((past, default(b)), (Answer(Verdict.REFUSED), Answer(Verdict.ACCEPTED, "b"))),
        ):
            put(slurm, *step)
            slurm.stop("sackd", kill=True)
            assert (await verdict(b)).verdict is Verdict.UNKNOWN
            slurm.start_sackd()
            for one, answer in zip((a, b), answers, strict=True):
                await until(partial(verdict, one), answer)


async def test_a_default_that_only_slurmctld_has_read_shows_in_what_slurmd_says(slurm: AccountingHost) -> None:
    """The fact behind the rule: slurmctld takes such a set, and no slurmd hears of it any more."""
    a, b = key("a"), key("b")
    begin(slurm, a)
    put(slurm, a, default(b))
    slurm.run("scontrol", "reconfigure")
    log = slurm.folder / f"{NODE}.log"
    slurm.wait_for(lambda: "could not find kid=b" in log.read_text(), "slurmd refuses slurmctld")
    await shows(slurm, Daemon.SLURMCTLD, b, UNSIGNED)
    assert (await asked(slurm, Daemon.SLURMD, b)).verdict in {Verdict.REFUSED, Verdict.SILENT}
    await shows(slurm, Daemon.SLURMD, a, Answer(Verdict.ACCEPTED, "a"))
