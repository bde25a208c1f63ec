"""Events of a watch: nothing lost, nothing out of order, correct old and new values."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from slurm_client.models import Node
from slurm_client.operations.base import Listing
from slurm_client.testing import FakeSlurmrestd
from slurm_client.watch import Event, Pace, Watch, merged
from tests.unit.slurm_client.watch.watching import FAST, client, next_of, until


async def test_a_reader_gets_what_is_there_first_and_then_changes(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    async with client(fake) as slurm, slurm.watch_nodes() as events:
        first = await next_of(events)
        assert (first.kind, first.key, first.old) == ("added", "w-0", None)
        fake.set_flags("w-0", add=["DRAIN"])
        changed = await next_of(events)
        assert changed.kind == "changed"
        assert not changed.old.is_drain
        assert changed.new.is_drain
        fake.remove_node("w-0")
        gone = await next_of(events)
        assert (gone.kind, gone.old, gone.new) == ("removed", changed.new, None)


async def test_a_thousand_flips_are_all_seen_in_order(fake: FakeSlurmrestd) -> None:
    """Each flip of each node waits until it was seen, as flips between two polls are one to any poller."""
    count, rounds = 100, 10
    for number in range(count):
        fake.add_node(f"w-{number}")
    seen: dict[str, list[tuple[str | None, str | None]]] = defaultdict(list)
    last: dict[str, Node] = {}
    async with client(fake) as slurm, slurm.watch_nodes() as events:
        for _ in range(count):
            event = await next_of(events)
            last[event.key] = event.new
        for number in range(rounds):
            for name in fake.nodes:
                fake.update_node(name, comment=str(number), state="IDLE+DRAIN" if number % 2 else "IDLE")
            for _ in range(count):
                event = await next_of(events)
                assert event.old == last[event.key]
                last[event.key] = event.new
                seen[event.key].append((event.old.comment, event.new.comment))
        assert not events.pending()
    expected = list(itertools.pairwise(["", *(str(number) for number in range(rounds))]))
    assert all(seen[f"w-{number}"] == expected for number in range(count))


async def test_wild_flipsnever_come_out_of_order(fake: FakeSlurmrestd) -> None:
    dice = random.Random(7)  # noqa: S311 - a test
    for number in range(20):
        fake.add_node(f"w-{number}", comment="0")
    last: dict[str, Node | None] = {}
    async with client(fake) as slurm, slurm.watch_nodes() as events:

        async def flip() -> None:
            for number in range(1, 1001):
                name = f"w-{dice.randrange(20)}"
                fake.update_node(name, comment=str(number))
                if dice.random() < 0.1:
                    await slurm.node_watch.refresh(name)
                elif dice.random() < 0.2:
                    await asyncio.sleep(0)
            for name in fake.nodes:
                fake.update_node(name, comment="9999")

        flipping = asyncio.create_task(flip())
        while sum(1 for node in last.values() if node is not None and node.comment == "9999") < 20:
            event = await next_of(events)
            assert event.old == last.get(event.key)
            assert event.new is not None
            if event.old is not None:
                assert int(event.new.comment) > int(event.old.comment)
            last[event.key] = event.new
        await flipping


async def test_a_single_refresh_is_seen_at_once_and_by_all(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    slurm = client(fake, pace=Pace(interval=3600))
    async with slurm, slurm.watch_nodes() as one, slurm.watch_nodes() as two:
        await next_of(one)
        await next_of(two)
        fake.update_node("w-0", comment="new")
        found = await slurm.node_watch.refresh("w-0", "nosuch")
        assert found["w-0"] is not None
        assert found["nosuch"] is None
        for reader in (one, two):
            event = await next_of(reader)
            assert (event.old.comment, event.new.comment) == ("", "new")
        fake.remove_node("w-0")
        await slurm.node_watch.refresh("w-0")
        assert (await next_of(one)).kind == "removed"
        assert len(fake.calls("get_nodes")) == 1


async def test_a_list_that_was_asked_for_earlier_does_not_undo_a_refresh() -> None:
    server = {"w-0": Node(name="w-0", comment="old")}
    slow, asked = asyncio.Event(), asyncio.Event()

    async def fetch(since: int | None) -> Listing[Node] | None:
        answer = Listing(tuple(server.values()), 1)
        asked.set()
        await slow.wait()
        return answer

    async def fetch_one(name: str) -> Node:
        return server[name]

    watch = Watch(fetch, fetch_one, lambda node: node.name, pace=FAST)
    reader = watch.reader()
    slow.set()
    await next_of(reader)
    slow.clear()
    asked.clear()
    await asked.wait()
    server["w-0"] = Node(name="w-0", comment="new")
    await watch.refresh("w-0")
    slow.set()
    polls = watch.status.full_answers
    await until(lambda: watch.status.full_answers > polls + 1)
    event = await next_of(reader)
    assert (event.old.comment, event.new.comment) == ("old", "new")
    assert not reader.pending()
    await watch.close()


changes = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([None, "1", "2", "3"])), max_size=30)


@given(changes)
def test_merging_events_keeps_the_first_old_and_the_last_new(steps: list[tuple[str, str | None]]) -> None:
    state: dict[str, str | None] = {}
    events = []
    for key, new in steps:
        if state.get(key) != new:
            events.append(Event(key, state.get(key), new))
            state[key] = new
    shorter = merged(events)
    assert {event.key: event.new for event in shorter} == {key: new for key, new in state.items() if new is not None}
    assert all(event.old is None for event in shorter)
