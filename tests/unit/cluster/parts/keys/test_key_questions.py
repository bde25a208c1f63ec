"""Daemons are asked many at a time; one that does not answer costs a part of a budget, and the others nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from slinky_operator.cluster.parts.keys.proof import question as key_questions
from slinky_operator.cluster.parts.keys.proof.answers import KeyFinding, KeyProof
from slinky_operator.cluster.parts.keys.proof.question import KeySetQuestion, ask_for_keys
from slinky_operator.slurm.connection.key_proof import Answer, Daemon, Holder, KeySet, Verdict
from slinky_operator.slurm.connection.signed_messages import SharedKey

SET = KeySet("an id", "b", (SharedKey("a", b"a" * 32), SharedKey("b", b"b" * 32)))
WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def holder(name: str, host: str = "10.0.0.1") -> Holder:
    return Holder(name, name, Daemon.SLURMD, host, 6818)


def question(*asked: Holder, others: Iterable[str] = ()) -> KeySetQuestion:
    return KeySetQuestion(SET, asked, frozenset({*(one.id for one in asked), *others}), WHEN)


async def test_answers_are_kept_by_daemon_and_those_of_daemons_that_have_gone_are_not() -> None:
    async def ask(_: Holder, key: SharedKey) -> Answer:
        return Answer(Verdict.ACCEPTED if key.kid == "b" else Verdict.REFUSED)

    before = KeyProof("an id", WHEN, 1.0, 2, {"kept": KeyFinding(1.0), "gone": KeyFinding(1.0)})
    proof = await ask_for_keys(question(holder("new"), others=["kept"]), before, ask, lambda: 5.0)
    assert proof.rounds == 3
    assert proof.found == {"kept": KeyFinding(1.0), "new": KeyFinding(5.0, "does not have key a", outdated=True)}
    # Proofs of another set prove nothing.
    other = KeyProof("another", WHEN, 1.0, 2, {"kept": KeyFinding(1.0)})
    proof = await ask_for_keys(question(holder("new"), others=["kept"]), other, ask, lambda: 5.0)
    assert (proof.rounds, {*proof.found}) == (1, {"new"})


async def test_a_round_ends_in_time_whatever_daemons_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_questions, "BUDGET", 0.2)
    at_once = most = 0

    async def ask(one: Holder, _: SharedKey) -> Answer:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        try:
            await asyncio.sleep(60 if one.name.startswith("slow") else 0)
        finally:
            at_once -= 1
        return Answer(Verdict.ACCEPTED)

    slow = [holder(f"slow-{index}") for index in range(200)]
    proof = await ask_for_keys(question(holder("quick"), *slow), None, ask, lambda: 5.0)
    assert most <= key_questions.AT_A_TIME
    assert proof.found["quick"] == KeyFinding(5.0)
    assert {proof.found[one.id].lacks for one in slow} == {"has not been asked yet"}
    assert at_once == 0


async def test_names_take_few_threads() -> None:
    at_once = most = 0

    async def ask(_: Holder, __: SharedKey) -> Answer:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        return Answer(Verdict.ACCEPTED)

    await ask_for_keys(question(*(holder(f"m{index}", f"m{index}.site") for index in range(9))), None, ask, lambda: 5.0)
    assert most == key_questions.NAMED_AT_A_TIME
