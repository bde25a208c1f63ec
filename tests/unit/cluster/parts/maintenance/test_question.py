"""Reservations of a fake slurmrestd are made, changed and deleted; of each release, and by operators that die."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.parts.maintenance.question import ReservationsQuestion, Reserved
from slinky_operator.cluster.parts.maintenance.windows import WantedReservation
from slinky_operator.cluster.question import Answers
from slurm_client import SlurmClient, StaticToken
from slurm_client.testing import FakeSlurmrestd
from tests.unit.cluster.world import cluster_object

NOW = datetime.now(UTC).replace(microsecond=0)
HOUR = timedelta(hours=1)
WANTED = WantedReservation("slurm-operator-night-x-1234", NOW + HOUR, NOW + 2 * HOUR, frozenset({"a-0", "a-1"}))
LATER = replace(WANTED, name="slurm-operator-night-y-1234", start=NOW + 5 * HOUR, end=NOW + 6 * HOUR)
CLUSTER = Cluster.parse(cluster_object())


@dataclass
class Site:
    fake: FakeSlurmrestd
    client: SlurmClient
    events: list[str] = field(default_factory=list)

    async def ask(self, *wanted: WantedReservation, now: datetime = NOW) -> Reserved:
        def event(_about: object, _kind: object, _reason: object, words: str) -> None:
            self.events.append(words)

        client = SimpleNamespace(client=self.client, namespace="here", name="slurm")
        context: Any = SimpleNamespace(
            clients={CLUSTER.uid: client}, recorder=SimpleNamespace(event=event), clock=lambda: 1.0
        )
        question = ReservationsQuestion(wanted, "1234", now)
        return await question.ask(CLUSTER, Answers(), cast("PassContext", context))

    @property
    def there(self) -> dict[str, tuple[str, ...]]:
        return {name: one.nodes for name, one in self.fake.world.reservations.items()}


@asynccontextmanager
async def site(release: str = "26.05.5") -> AsyncIterator[Site]:
    async with FakeSlurmrestd(release=release) as fake:
        for name in ("a-0", "a-1", "a-2"):
            fake.add_node(name)
        async with SlurmClient(fake.url, StaticToken("token")) as client:
            yield Site(fake, client)


async def test_reservations_follow_what_is_wanted() -> None:
    async with site() as one:
        answer = await one.ask(WANTED, LATER)
        assert answer.there == {WANTED.name, LATER.name}
        assert one.there == dict.fromkeys((WANTED.name, LATER.name), ("a-0", "a-1"))
        assert one.events == [f"reservations in Slurm: {WANTED.name} made; {LATER.name} made"]
        one.events.clear()
        # Done twice, and by another operator that knows nothing.
        assert (await one.ask(WANTED, LATER)).there == {WANTED.name, LATER.name}
        assert one.events == []
        more = replace(WANTED, nodes=frozenset({"a-0", "a-1", "a-2"}))
        assert (await one.ask(more, LATER)).there == {WANTED.name, LATER.name}
        assert one.events == [], "that it follows nodes is no news"
        more = replace(more, end=NOW + 3 * HOUR)
        assert (await one.ask(more)).there == {WANTED.name}
        assert one.events == [f"reservations in Slurm: {WANTED.name} changed; {LATER.name} deleted"]
        assert one.there == {WANTED.name: ("a-0", "a-1", "a-2")}
        assert one.fake.world.reservations[WANTED.name].end_time == more.end
        assert await one.ask() == Reserved(1.0, ())
        assert one.there == {}


async def test_reservations_of_an_administrator_stay() -> None:
    async with site() as one:
        for name in ("mine", WANTED.name):
            one.fake.world.reserve({"name": name, "node_list": ["a-0"], "users": ["alice"]})
        before = dict(one.fake.world.reservations)
        answer = await one.ask(WANTED)
        assert (answer.taken, answer.there) == ((WANTED.name,), frozenset())
        assert (await one.ask()).refused == {}
        assert one.fake.world.reservations == before


async def test_one_that_slurm_refuses_is_told_and_the_others_are_made() -> None:
    async with site() as one:
        unknown = replace(LATER, nodes=frozenset({"nosuch"}))
        answer = await one.ask(WANTED, unknown)
        assert answer.there == {WANTED.name}
        assert answer.refused.keys() == {LATER.name}
        assert answer.refused[LATER.name]


async def test_a_release_whose_api_makes_none_is_told() -> None:
    async with site("24.11.5") as one:
        answer = await one.ask(WANTED)
        assert (answer.not_supported, answer.there, answer.why) == (True, frozenset(), "")
        # One that was made by hand under this name counts.
        one.fake.world.reserve(
            {
                "name": WANTED.name, "node_list": ["a-0", "a-1"], "users": ["root"], "flags": ["MAINT", "IGNORE_JOBS"],
                "start_time": {"number": int(WANTED.start.timestamp())},
                "end_time": {"number": int(WANTED.end.timestamp())},
            }
        )  # fmt: skip
        answer = await one.ask(WANTED)
        assert (answer.not_supported, answer.there) == (False, frozenset({WANTED.name}))


async def test_without_an_answer_nothing_is_known() -> None:
    async with site() as one:
        one.fake.faults.add("reservations", status=500)
        answer = await one.ask(WANTED)
        assert answer.why
        assert answer.there == frozenset()


@pytest.mark.parametrize(("one", "other"), [("before", None), (None, "before")])
def test_a_first_answer_is_news(one: str | None, other: str | None) -> None:
    known = {"before": Reserved(0.0, ())}
    assert ReservationsQuestion((), "", NOW).is_news(known.get(one or ""), known.get(other or ""))


def test_the_same_answer_is_no_news() -> None:
    question = ReservationsQuestion((), "", NOW)
    assert not question.is_news(Reserved(0.0, ()), Reserved(9.0, ()))
    assert question.is_news(Reserved(0.0, ()), Reserved(9.0, (), why="no answer"))
