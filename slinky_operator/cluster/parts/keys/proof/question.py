"""Asks daemons whether they have a key set of auth/slurm, many at a time, within a budget. The rules are elsewhere."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from typing_extensions import override

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.context import AskDaemon, PassContext
from slinky_operator.cluster.parts.keys.proof.answers import NOT_ASKED, KeyFinding, KeyProof, finding
from slinky_operator.cluster.question import Answers, Question
from slinky_operator.slurm.connection.key_proof import Holder, KeySet

AT_A_TIME: Final = 64
"""Daemons that are asked at a time."""

NAMED_AT_A_TIME: Final = 2
"""Those of them whose names have to be resolved first, which takes a thread each."""

BUDGET: Final = 10.0
"""Seconds of one round; who has not answered by then is asked in the next."""


@dataclass(frozen=True, slots=True)
class KeySetQuestion(Question[KeyProof]):
    """Whether daemons have a key set."""

    set: KeySet
    asked: tuple[Holder, ...]
    all: frozenset[str]
    """Ids of all daemons of which proofs are kept."""

    since: datetime
    """The time of day."""

    @override
    async def ask(self, cluster: Cluster, answers: Answers, context: PassContext) -> KeyProof:
        return await ask_for_keys(self, answers.of(KeySetQuestion), context.ask_daemon, context.clock)

    @override
    def is_news(self, before: KeyProof | None, answer: KeyProof | None) -> bool:
        return answer is not None and not any(one.lacks for one in answer.found.values())


async def ask_for_keys(
    question: KeySetQuestion, before: KeyProof | None, ask: AskDaemon, clock: Callable[[], float]
) -> KeyProof:
    """Ask the daemons of a question; returns what is known of all of them then."""
    same = before is not None and before.set == question.set.id
    found = {one: value for one, value in before.found.items() if one in question.all} if before and same else {}
    slots, named = asyncio.Semaphore(AT_A_TIME), asyncio.Semaphore(NAMED_AT_A_TIME)

    async def one(holder: Holder) -> None:
        async with slots if _is_address(holder.host) else named:
            answers = {}
            for key in (*question.set.live, *question.set.expired):
                answers[key.kid] = await ask(holder, key)
            found[holder.id] = finding(question.set, answers, clock())

    asking = [asyncio.ensure_future(one(holder)) for holder in question.asked]
    done, late = await asyncio.wait(asking, timeout=BUDGET)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    for task in done:
        task.result()
    for holder in question.asked:
        found.setdefault(holder.id, KeyFinding(clock(), NOT_ASKED))
    rounds = before.rounds + 1 if before is not None and same and question.asked else 1
    return KeyProof(question.set.id, question.since, clock(), rounds, found)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
