"""Watches of a fake server: nothing lost, nothing out of order, correct old and new values."""

from __future__ import annotations

import asyncio
import gc
import itertools
import random
import time
from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_client import MintedToken, SlurmClient, errors
from slurm_client.connection.circuit import Circuit
from slurm_client.connection.session import RetryPolicy
from slurm_client.models import Node
from slurm_client.operations.base import Listing
from slurm_client.testing import FakeSlurmrestd
from slurm_client.watch import SYNCED, Event, Pace, Watch, merged

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from slurm_client.watch import Reader

KEY = b"k" * 32
FAST = Pace(interval=0.01, share=0.9, first_pause=0.01, longest_pause=0.05)


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlurmrestd]:
    async with FakeSlurmrestd(key=KEY) as server:
        yield server


def client(fake: FakeSlurmrestd, **options: Any) -> SlurmClient:
    options.setdefault("pace", FAST)
    options.setdefault("retry", RetryPolicy(attempts=1))
    options.setdefault("circuit", Circuit(threshold=0))
    return SlurmClient(fake.url, options.pop("token", MintedToken(KEY)), **options)


async def next_of(reader: Reader[Any], condition: Callable[[Event[Any]], bool] = lambda _: True) -> Any:
    """Return the next event that meets the condition; untyped, as each test knows whether there is an old and a new."""

    async def find() -> Event[Any]:
        async for event in reader:
            if condition(event):
                return event
        raise AssertionError("the reader ended")

    return await asyncio.wait_for(find(), 120)


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


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


async def test_many_readers_share_one_poll(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    async with client(fake, pace=Pace(interval=3600)) as slurm:
        readers = [slurm.watch_nodes() for _ in range(10)]
        for reader in readers:
            assert (await next_of(reader)).key == "w-0"
        late = slurm.watch_nodes()
        assert (await next_of(late)).key == "w-0"
        assert len(fake.calls("get_nodes")) == 1


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


async def test_wild_flips_never_come_out_of_order(fake: FakeSlurmrestd) -> None:
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


async def test_an_outage_is_survived_and_visible(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    async with client(fake) as slurm, slurm.watch_nodes() as events:
        await next_of(events)
        await fake.stop()
        await until(lambda: slurm.node_watch.status.failures > 2)
        status = slurm.node_watch.status
        assert isinstance(status.error, errors.Unreachable)
        assert status.synced
        assert status.age is not None
        assert status.age > 0
        assert slurm.node_watch.objects["w-0"].name == "w-0"
        fake.update_node("w-0", comment="meanwhile")
        await fake.start()
        event = await next_of(events)
        assert (event.old.comment, event.new.comment) == ("", "meanwhile")
        await until(lambda: slurm.node_watch.status.failures == 0)


async def test_an_answer_that_cannot_be_read_removes_nothing(fake: FakeSlurmrestd) -> None:
    for number in range(10):
        fake.add_node(f"w-{number}")
    async with client(fake) as slurm, slurm.watch_nodes() as events:
        for _ in range(10):
            await next_of(events)
        for options in ({"cut": 0.6}, {"truncate": 0.6}, {"body": "{}"}, {"body": {"nodes": [{"name": None}]}}):
            fault = fake.faults.add("/nodes/", times=None, **options)
            fake.update_node("w-0", comment=str(options))
            await until(lambda fault=fault: fault.hits > 1)  # type: ignore[misc]
            fake.faults.remove(fault)
            event = await next_of(events)
            assert (event.kind, event.key) == ("changed", "w-0")


async def test_a_token_that_expires_under_a_watch_is_renewed(fake: FakeSlurmrestd) -> None:
    now = [time.time() - 10_000]
    token = MintedToken(KEY, lifetime=timedelta(hours=4), clock=lambda: now[0])
    fake.add_node("w-0")
    async with client(fake, token=token) as slurm, slurm.watch_nodes() as events:
        await next_of(events)
        fake.key = b"r" * 32
        await until(lambda: isinstance(slurm.node_watch.status.error, errors.Unauthorized))
        fake.key = KEY
        fake.update_node("w-0", comment="after")
        assert (await next_of(events)).new.comment == "after"


async def test_a_server_upgraded_under_a_watch_is_watched_on() -> None:
    async with FakeSlurmrestd(release="24.11.5") as fake, client(fake) as slurm, slurm.watch_nodes() as events:
        fake.add_node("w-0")
        await next_of(events)
        await fake.stop()
        fake.upgrade("26.05.5")
        await fake.start()
        fake.update_node("w-0", comment="after")
        event = await next_of(events, lambda event: event.new is not None and event.new.comment == "after")
        assert event.old.comment == ""
        await until(lambda: slurm.api_version == "v0.0.45")


async def test_an_unchanged_server_sends_no_list(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    fake.world.nodes_changed = time.time() - 100
    async with client(fake) as slurm, slurm.watch_nodes() as events:
        await next_of(events)
        await until(lambda: slurm.node_watch.status.polls > 10)
        assert slurm.node_watch.status.full_answers == 1


async def test_a_full_list_is_asked_for_now_and_then() -> None:
    now, since = [0.0], []

    async def fetch(update_time: int | None) -> Listing[Node] | None:
        since.append(update_time)
        now[0] += 40
        return None if update_time else Listing((), 5)

    watch = Watch(
        fetch, _never, lambda node: node.name, pace=Pace(interval=0, share=1, resync=100), clock=lambda: now[0]
    )
    reader = watch.reader()
    await until(lambda: len(since) > 7)
    assert since[:8] == [None, 5, 5, None, 5, 5, None, 5]
    await reader.aclose()
    await watch.close()


async def _never(name: str) -> Node:
    raise AssertionError(name)


def test_the_pace_bounds_the_share_of_full_answers() -> None:
    pace = Pace(interval=1, share=0.2, longest_interval=60)
    assert pace.after_full(0.01) == 1
    assert pace.after_full(2) == 8
    assert pace.after_full(100) == 60
    assert pace.after_failure(1, lambda: 0.0) == 1
    assert pace.after_failure(30, lambda: 1.0) == 15


async def test_polling_ends_with_the_last_reader_and_begins_anew(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    async with client(fake) as slurm:
        async with slurm.watch_nodes() as events:
            await next_of(events)
        polls = slurm.node_watch.status.polls
        await asyncio.sleep(0.05)
        assert slurm.node_watch.status.polls == polls
        fake.update_node("w-0", comment="while nobody looked")
        async with slurm.watch_nodes() as events:
            assert (await next_of(events)).new.comment == ""
            assert (await next_of(events)).new.comment == "while nobody looked"


async def test_a_forgotten_reader_ends_too(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        reader = slurm.watch_nodes()
        await slurm.node_watch.wait_synced()
        del reader
        gc.collect()
        await until(lambda: slurm.node_watch._task is None or slurm.node_watch._task.done())


async def test_readers_end_with_the_client(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    slurm = client(fake)
    events = slurm.watch_nodes()
    await slurm.node_watch.wait_synced()
    await slurm.close()
    assert [event.key async for event in events] == ["w-0"]
    with pytest.raises(RuntimeError, match="closed"):
        slurm.watch_nodes()


async def test_a_mistake_of_ours_reaches_the_readers() -> None:
    async def fetch(since: int | None) -> Listing[Node] | None:
        raise ZeroDivisionError

    watch = Watch(fetch, _never, lambda node: node.name, pace=FAST)
    reader = watch.reader()
    with pytest.raises(ZeroDivisionError):
        await next_of(reader)
    await watch.close()


async def test_a_reader_far_behind_gets_one_event_for_many(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    fake.add_node("w-1")
    async with client(fake, pace=Pace(interval=0.01, share=0.9, backlog=3)) as slurm, slurm.watch_nodes() as events:
        await slurm.node_watch.wait_synced()
        for number in range(20):
            fake.update_node("w-0", comment=str(number))
            await slurm.node_watch.refresh("w-0")
        assert events.pending() <= 4
        found = [await next_of(events) for _ in range(events.pending())]
        assert found[0].old is None
        assert found[-1].new == slurm.node_watch.objects[found[-1].key]


async def test_jobs_and_partitions_are_watched_as_well(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    job = fake.add_job(nodes=["w-0"])
    async with client(fake) as slurm, slurm.watch_jobs() as jobs, slurm.watch_partitions() as partitions:
        assert (await next_of(jobs)).new == await slurm.job(job.id)
        assert (await next_of(partitions)).key == "all"
        fake.world.jobs_changed -= 100
        polls = slurm.job_watch.status.polls
        await until(lambda: slurm.job_watch.status.polls > polls + 3)
        assert not jobs.pending()
        fake.finish_job(job.id)
        event = await next_of(jobs)
        assert (event.old.state.base, event.new.state.base) == ("RUNNING", "COMPLETED")
        fake.forget_job(job.id)
        await slurm.job_watch.refresh(str(job.id))
        assert (await next_of(jobs)).kind == "removed"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"token": "garbage"}, errors.Unauthorized),
        ({"api_version": "v0.0.40"}, errors.NotSupported),
    ],
)
async def test_a_refusal_before_the_first_list_is_raised_at_once(
    fake: FakeSlurmrestd, options: dict[str, Any], expected: type[errors.SlurmError]
) -> None:
    fake.add_node("w-0")
    async with client(fake, **options) as slurm, slurm.watch_nodes() as events:
        waiting = asyncio.create_task(slurm.node_watch.wait_synced())
        listing = asyncio.create_task(slurm.watch_nodes().initial())
        with pytest.raises(expected):
            await next_of(events)
        for others in (waiting, listing):
            with pytest.raises(expected):
                await asyncio.wait_for(others, 120)
        assert isinstance(slurm.node_watch.status.error, expected)
        # Nobody reads any more.
        polls = slurm.node_watch.status.polls
        await until(lambda: slurm.node_watch._task is None or slurm.node_watch._task.done())
        assert slurm.node_watch.status.polls == polls == 1


async def test_a_refusal_when_reading_begins_again_is_raised_at_once(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    async with client(fake) as slurm:
        async with slurm.watch_nodes() as events:
            await next_of(events)
        polls = slurm.node_watch.status.polls
        fake.faults.add("/nodes/", status=401, body="no", content_type="text/plain", times=None)
        async with slurm.watch_nodes() as events:
            assert (await next_of(events)).key == "w-0"
            with pytest.raises(errors.Unauthorized):
                await next_of(events)
        assert slurm.node_watch.status.polls == polls + 1


async def test_a_token_refused_for_long_is_raised_and_one_refused_for_a_moment_is_not(
    fake: FakeSlurmrestd,
) -> None:
    fake.add_node("w-0")
    async with client(fake) as slurm, slurm.watch_nodes() as events, slurm.node_watch.reader() as patient:
        assert (await next_of(events)).key == "w-0"
        refused = fake.faults.add("/nodes/", status=401, body="no", content_type="text/plain", times=2)
        await until(lambda: slurm.node_watch.status.failures >= 1)
        fake.update_node("w-0", comment="between")
        assert (await next_of(events, lambda event: event.new is not None and event.new.comment == "between")).old
        fake.faults.remove(refused)
        fake.faults.add("/nodes/", status=401, body="no", content_type="text/plain", times=None)
        with pytest.raises(errors.Unauthorized):
            await next_of(events)
        # Another reader waits on, and sees in the status why.
        assert (await next_of(patient)).key == "w-0"
        polls = slurm.node_watch.status.polls
        await until(lambda: slurm.node_watch.status.polls > polls + 2)
        assert isinstance(slurm.node_watch.status.error, errors.Unauthorized)
        assert slurm.node_watch.objects


async def test_an_outage_is_waited_for(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    fake.faults.controller_down()
    async with client(fake) as slurm, slurm.watch_nodes() as events:
        await until(lambda: slurm.node_watch.status.failures > 5)
        fake.faults.clear()
        assert (await next_of(events)).key == "w-0"


# the end of the initial list


async def test_a_loop_over_events_sees_which_is_the_last_of_the_initial_list(fake: FakeSlurmrestd) -> None:
    for number in range(3):
        fake.add_node(f"w-{number}")
    async with client(fake) as slurm, slurm.watch_nodes() as events:
        assert not events.is_synced
        seen = []
        for _ in range(3):
            seen.append((await next_of(events)).key)
            assert events.is_synced == (len(seen) == 3)
        assert not events.pending()
        fake.add_node("w-3")
        assert (await next_of(events)).key == "w-3"
        assert events.is_synced


async def test_the_end_of_the_initial_list_is_an_event_for_who_asks(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    async with client(fake) as slurm, slurm.watch_nodes(mark=True) as events, slurm.watch_nodes() as others:
        assert (await next_of(events)).key == "w-0"
        before = events.is_synced
        mark = await next_of(events)
        assert mark is SYNCED
        assert mark.kind == "synced"
        assert (before, events.is_synced) == (False, True)
        fake.update_node("w-0", comment="new")
        assert (await next_of(events)).kind == "changed"
        assert [(await next_of(others)).kind for _ in range(2)] == ["added", "changed"]
        late = slurm.watch_nodes(mark=True)
        assert [(await next_of(late)).kind for _ in range(2)] == ["added", "synced"]


async def test_an_empty_cluster_has_an_initial_list_too(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm, slurm.watch_jobs() as events, slurm.watch_jobs(mark=True) as marked:
        assert await asyncio.wait_for(events.initial(), 120) == {}
        assert events.is_synced
        assert await next_of(marked) is SYNCED
        assert await asyncio.wait_for(slurm.watch_jobs().initial(), 120) == {}


async def test_the_initial_list_of_a_late_reader_is_what_is_true_by_then(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    fake.add_node("w-1")
    async with client(fake) as slurm:
        async with slurm.watch_nodes() as events:
            assert set(await events.initial()) == {"w-0", "w-1"}
            fake.update_node("w-1", comment="new")
            await next_of(events)
            async with slurm.watch_nodes() as late:
                assert (await late.initial())["w-1"].comment == "new"
        # Nobody read for a while: what was known then is not yet the whole truth.
        fake.remove_node("w-0")
        fake.add_node("w-2")
        async with slurm.watch_nodes() as events:
            assert events.pending() == 2
            assert not events.is_synced
            assert set(await events.initial()) == {"w-1", "w-2"}
            assert not events.pending()


async def test_who_joins_in_an_outage_has_the_initial_list_only_after_it(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    async with client(fake) as slurm, slurm.watch_nodes() as first:
        await first.initial()
        fake.faults.controller_down()
        await until(lambda: slurm.node_watch.status.failures > 0)
        late = slurm.watch_nodes()
        assert (await next_of(late)).key == "w-0"
        assert not late.is_synced
        fake.add_node("w-1")
        fake.faults.clear()
        assert set(await late.initial()) == {"w-1"}


async def test_the_mark_survives_events_that_are_made_one(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    pace = Pace(interval=0.01, share=0.9, backlog=3)
    async with client(fake, pace=pace) as slurm, slurm.watch_nodes(mark=True) as events:
        await slurm.node_watch.wait_synced()
        for number in range(20):
            fake.update_node("w-0", comment=str(number))
            await slurm.node_watch.refresh("w-0")
        fake.add_node("w-1")
        await slurm.node_watch.refresh("w-1")
        kinds = [(await next_of(events)).kind]
        while kinds[-1] != "synced":
            kinds.append((await next_of(events)).kind)
        assert kinds == ["added", "synced"]


async def test_a_reader_that_is_closed_before_its_list_says_so(fake: FakeSlurmrestd) -> None:
    fake.faults.hang()
    slurm = client(fake)
    listing = asyncio.create_task(slurm.watch_nodes().initial())
    await until(lambda: bool(fake.requests))
    await slurm.close()
    with pytest.raises(RuntimeError, match="nodes ended before"):
        await listing


# other kinds


async def test_reservations_are_watched(fake: FakeSlurmrestd) -> None:
    fake.world.reserve({"name": "one", "users": ["alice"]})
    async with client(fake) as slurm, slurm.watch_reservations() as events:
        assert await events.initial() == {"one": await slurm.reservation("one")}
        fake.world.reserve({"name": "one", "users": ["bob"]})
        event = await next_of(events)
        assert (event.old.users, event.new.users) == (("alice",), ("bob",))
        fake.world.unreserve("one")
        assert (await slurm.reservation_watch.refresh("one")) == {"one": None}
        assert (await next_of(events)).kind == "removed"


async def test_licenses_are_watched(fake: FakeSlurmrestd) -> None:
    fake.world.add_license("matlab", 3)
    async with client(fake) as slurm, slurm.watch_licenses() as events:
        assert list(await events.initial()) == ["matlab"]
        fake.world.add_license("matlab", 3, used=2)
        event = await next_of(events)
        assert (event.old.free, event.new.free) == (3, 1)
        fake.world.add_license("matlab", 3, used=3)
        found = await slurm.license_watch.refresh("matlab", "nosuch")
        assert found["matlab"] is not None
        assert found["matlab"].free == 0
        assert found["nosuch"] is None


async def test_jobs_that_are_written_as_they_were_stay_the_same_objects(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0", cpus=64)
    ids = [fake.add_job(nodes=["w-0"], cpus=1).id for _ in range(30)]
    async with client(fake) as slurm, slurm.watch_jobs() as events:
        before = dict(await events.initial())
        for job_id in ids[:20]:
            fake.forget_job(job_id)
        fake.set_job_state(ids[25], "SUSPENDED")
        await next_of(events, lambda event: event.kind == "changed")
        now = slurm.job_watch.objects
        assert len(now) == 10
        again = [key for key, job in now.items() if job is not before[key]]
        # The first one tells where the list goes on.
        assert again == [str(ids[20]), str(ids[25])]


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


async def test_waiting_for_the_first_list_can_be_bounded(fake: FakeSlurmrestd) -> None:
    fake.faults.hang()
    async with client(fake, timeout=0.05) as slurm, slurm.watch_nodes():
        waiting: Awaitable[None] = slurm.node_watch.wait_synced()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(waiting, 0.2)
        assert not slurm.node_watch.status.synced
        assert slurm.node_watch.status.age is None
