"""Nodes whose registration no list of changes has shown are asked for singly: not at once, and not too many."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from slinky_operator.nodeset.execute.queries import survey_queries
from slinky_operator.nodeset.memory import NODES_AGAIN, Memory
from slinky_operator.nodeset.model.pods.pod_facts import Slurmd
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.planning.survey import MOST, UNHEARD_S, survey
from slinky_operator.nodeset.ports import Slurm
from slurm_client import errors
from slurm_client.models import Node
from tests.unit.nodeset.builders import NOW, a_pod, node, nodeset

LATE = NOW - timedelta(seconds=UNHEARD_S)


def seen(count: int = 1, *, uid: str = "u", started: datetime | None = LATE, **pod: Any) -> Snapshot:
    """Pods that have not registered, with records of earlier pods."""
    given = {"registered": False, "slurmd": Slurmd.RUNNING, "slurmd_started_at": started, **pod}
    pods = tuple(a_pod(name=f"a-{number}", ordinal=number, uid=f"u{number}", **given) for number in range(count))
    words = "IDLE+DRAIN+DYNAMIC_NORM"
    records = {one.name: node(words, name=one.name, instance_id=f"{uid}-{one.name}") for one in pods}
    of = nodeset(replicas=count)
    slurm = SlurmFacts(readable=True, nodes=records)
    return Snapshot(of, ClusterFacts("c", listed=True), slurm, Revision(revision.of(of)), pods=pods)


class Answers:
    """A Slurm that says what a record is now, or does not answer."""

    def __init__(self, found: Node | None) -> None:
        self._found = found

    async def refresh(self, names: Collection[str]) -> Mapping[str, Node | None]:
        if self._found is None:
            raise errors.Unreachable("no answer")
        return dict.fromkeys(names, self._found)


def test_a_slurmd_that_runs_and_has_an_old_record_is_asked_for() -> None:
    assert survey(seen(), NOW).unheard == ("a-0",)
    assert len(survey(seen(20), NOW).unheard) == MOST


def test_a_few_that_never_register_do_not_keep_others_from_being_asked_for() -> None:
    later = [survey(seen(3 * MOST), NOW + timedelta(seconds=NODES_AGAIN * turn)).unheard for turn in range(3)]

    assert {len(one) for one in later} == {MOST}
    assert len({name for one in later for name in one}) == 3 * MOST


async def test_a_slurm_that_answers_slowly_does_not_hold_up_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        async def refresh(self, _: Collection[str]) -> Mapping[str, Node | None]:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr(survey_queries, "ANSWERS_WITHIN", 0.01)
    own = seen()

    async with asyncio.timeout(60):
        assert await survey_queries.ask_for_nodes(cast("Slurm", Slow()), own, ["a-0"]) == own


def test_others_are_not() -> None:
    assert survey(seen(started=LATE + timedelta(seconds=1)), NOW).unheard == ()
    assert survey(seen(started=None, slurmd=Slurmd.NEVER), NOW).unheard == ()
    own = seen()
    records = {"a-0": replace(own.slurm.nodes["a-0"], instance_id="u0")}
    assert survey(replace(own, slurm=SlurmFacts(readable=True, nodes=records)), NOW).unheard == ()
    assert survey(replace(own, slurm=SlurmFacts(readable=True)), NOW).unheard == ()


async def test_the_answer_counts_and_without_one_what_is_cached() -> None:
    own = seen()
    fresh = replace(own.slurm.nodes["a-0"], instance_id="u0")
    asked = await survey_queries.ask_for_nodes(cast("Slurm", Answers(fresh)), own, ["a-0"])
    assert asked.slurm.nodes == {"a-0": fresh}
    assert survey(asked, NOW).unheard == ()
    assert await survey_queries.ask_for_nodes(cast("Slurm", Answers(None)), own, ["a-0"]) == own


def test_they_are_not_asked_for_with_each_pass() -> None:
    memory = Memory()
    assert memory.may_ask_for_nodes(100.0)
    assert not memory.may_ask_for_nodes(100.0 + NODES_AGAIN - 1)
    assert memory.may_ask_for_nodes(100.0 + NODES_AGAIN)
