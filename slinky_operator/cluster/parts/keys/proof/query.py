"""Asks daemons whether they have a key set of auth/slurm, many at a time, within a budget. The rules are elsewhere."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Awaitable, Callable
from typing import Final

from slinky_operator.cluster.actions import AskForKeys
from slinky_operator.cluster.memory import KeyFinding, KeyProof
from slinky_operator.cluster.parts.keys.proof import key_steps
from slinky_operator.slurm.connection import key_proof
from slinky_operator.slurm.connection.key_proof import Answer, Holder
from slinky_operator.slurm.connection.signed_messages import SharedKey

AT_A_TIME: Final = 64
"""Daemons that are asked at a time."""

NAMED_AT_A_TIME: Final = 2
"""Those of them whose names have to be resolved first, which takes a thread each."""

BUDGET: Final = 10.0
"""Seconds of one round; who has not answered by then is asked in the next."""

AskDaemon = Callable[[Holder, SharedKey], Awaitable[Answer]]


async def ask_daemon(holder: Holder, key: SharedKey) -> Answer:
    """Ask one daemon over the network."""
    return await key_proof.ask(holder.daemon, holder.host, holder.port, key, time.time())


async def ask_for_keys(
    action: AskForKeys, before: KeyProof | None, ask: AskDaemon, clock: Callable[[], float]
) -> KeyProof:
    """Ask the daemons of an action; returns what is known of all of them then."""
    same = before is not None and before.set == action.set.id
    found = {one: value for one, value in before.found.items() if one in action.all} if before and same else {}
    slots, named = asyncio.Semaphore(AT_A_TIME), asyncio.Semaphore(NAMED_AT_A_TIME)

    async def one(holder: Holder) -> None:
        async with slots if _is_address(holder.host) else named:
            answers = {}
            for key in (*action.set.live, *action.set.expired):
                answers[key.kid] = await ask(holder, key)
            found[holder.id] = key_steps.finding(action.set, answers, clock())

    asking = [asyncio.ensure_future(one(holder)) for holder in action.asked]
    done, late = await asyncio.wait(asking, timeout=BUDGET)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    for task in done:
        task.result()
    for holder in action.asked:
        found.setdefault(holder.id, KeyFinding(clock(), key_steps.NOT_ASKED))
    rounds = before.rounds + 1 if before is not None and same and action.asked else 1
    return KeyProof(action.set.id, action.since, clock(), rounds, found)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
