"""One leader at a time, and a fence that is closed before the next one begins."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slinky_operator.kube import errors
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.errors import Target
from slinky_operator.kube.leadership.fence import DeadlineFence
from slinky_operator.kube.leadership.lease import Elector, LeadershipLost
from slinky_operator.kube.objects import Object
from tests.unit.runtime.virtual_time import now, run_virtually

START = datetime(2026, 11, 21, tzinfo=UTC)
TARGET = Target("update", "leases", "ns", "lease")


class LeaseApi:
    """The one Lease, with versions, delays and failures."""

    def __init__(self) -> None:
        self.lease: Object | None = None
        self.version = 0
        self.history: list[tuple[float, str]] = []
        self.before: Callable[[], Awaitable[None]] = self._nothing
        self.after: Callable[[], Awaitable[None]] = self._nothing

    async def _nothing(self) -> None:
        await asyncio.sleep(0.005)

    def client(self) -> KubeClient:
        return cast("KubeClient", self)

    async def get(self, *_: object) -> Object:
        await self.before()
        if self.lease is None:
            raise errors.NotFound(TARGET, "no lease")
        return copy.deepcopy(self.lease)

    async def create(self, _: object, body: Object) -> Object:
        await self.before()
        if self.lease is not None:
            raise errors.AlreadyExists(TARGET, "there is one")
        return await self._store(body)

    async def replace(self, _: object, body: Object) -> Object:
        await self.before()
        if self.lease is None:
            raise errors.NotFound(TARGET, "no lease")
        if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise errors.Conflict(TARGET, "changed")
        return await self._store(body)

    async def _store(self, body: Object) -> Object:
        self.version += 1
        self.lease = copy.deepcopy(body)
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        self.history.append((now(), body["spec"]["holderIdentity"]))
        answer = copy.deepcopy(self.lease)
        await self.after()
        return answer


class Candidate:
    """An elector with its fence and a clock that can be frozen with the process."""

    def __init__(self, api: LeaseApi, identity: str, seed: int = 1) -> None:
        self.fence = DeadlineFence(now)
        self.elector = Elector(
            api.client(),
            namespace="ns",
            name="lease",
            identity=identity,
            fence=self.fence,
            clock=now,
            now=lambda: START + timedelta(seconds=now()),
            rng=random.Random(seed),  # noqa: S311 - repeatable
        )
        self.task = asyncio.create_task(self.elector.run(), name=identity)

    def may_write(self) -> bool:
        """Whether it writes; nobody but other candidates is in the way of one that resumes."""
        self.elector.resume()
        return self.fence.closed_because() is None

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])
        if not self.task.cancelled():
            self.task.exception()


async def unavailable() -> None:
    await asyncio.sleep(0.1)
    raise errors.Unavailable(TARGET, "scripted")


def test_the_first_leads_and_the_second_waits() -> None:
    async def body() -> None:
        api = LeaseApi()
        first = Candidate(api, "first")
        await first.elector.leading.wait()
        second = Candidate(api, "second", 2)
        await asyncio.sleep(600)
        assert first.may_write()
        assert not second.may_write()
        assert not second.elector.leading.is_set()
        assert api.lease is not None
        spec = api.lease["spec"]
        assert spec["holderIdentity"] == "first"
        assert spec["leaseTransitions"] == 0
        assert spec["leaseDurationSeconds"] == 15
        assert spec["acquireTime"].startswith("2026-11-21T00:16:40.")
        assert spec["acquireTime"].endswith("Z")
        assert len(spec["acquireTime"]) == len("2026-11-21T00:16:40.000000Z")
        assert spec["renewTime"] > spec["acquireTime"]
        await first.end()
        await second.end()

    run_virtually(body())


def test_giving_back_lets_the_second_lead_at_once() -> None:
    async def body() -> None:
        api = LeaseApi()
        first = Candidate(api, "first")
        await first.elector.leading.wait()
        second = Candidate(api, "second", 2)
        await asyncio.sleep(60)
        await first.end()
        began = now()
        await first.elector.release()
        assert not first.may_write()
        await second.elector.leading.wait()
        assert now() - began < 3
        assert api.lease is not None
        assert api.lease["spec"]["leaseTransitions"] == 1
        await second.end()

    run_virtually(body())


def test_a_leader_that_cannot_renew_stops_before_another_starts() -> None:
    async def body() -> None:
        api = LeaseApi()
        first = Candidate(api, "first")
        await first.elector.leading.wait()
        await asyncio.sleep(60)
        cut = now()
        api.before = unavailable
        while first.may_write():  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)
        assert now() - cut <= 10.2
        with pytest.raises(LeadershipLost, match="not renewed for 6"):
            await first.task
        assert now() - cut > 50
        api.before = api._nothing
        second = Candidate(api, "second", 2)
        await second.elector.leading.wait()
        assert second.may_write()
        assert not first.may_write()
        await second.end()

    run_virtually(body())


def test_a_leader_whose_renewals_fail_for_a_while_stands_by_and_leads_again() -> None:
    async def body() -> None:
        api = LeaseApi()
        first = Candidate(api, "first")
        await first.elector.leading.wait()
        api.before = unavailable
        await first.elector.lapsed.wait()
        assert not first.elector.leading.is_set()
        await asyncio.sleep(25)
        assert not first.may_write()
        assert api.lease is not None
        before = api.lease["spec"]
        api.before = api._nothing
        await first.elector.leading.wait()
        # Others may have begun, who are to be looked at first.
        assert "another release" in (first.fence.closed_because() or "")
        first.elector.resume()
        assert first.fence.closed_because() is None
        assert not first.elector.lapsed.is_set()
        assert api.lease["spec"]["leaseTransitions"] == 0
        assert api.lease["spec"]["acquireTime"] == before["acquireTime"]
        await asyncio.sleep(600)
        assert first.may_write()
        await first.end()

    run_virtually(body())


def test_one_that_stands_by_ends_when_another_has_taken_the_lease() -> None:
    async def body() -> None:
        api = LeaseApi()
        first = Candidate(api, "first")
        await first.elector.leading.wait()
        second = Candidate(api, "second", 2)
        await asyncio.sleep(5)
        cut = True

        async def of_the_first() -> None:
            task = asyncio.current_task()
            # Renewals are tasks of their own; candidates reach for the Lease themselves.
            if cut and task is not None and task.get_name() == "renewal of the Lease" and not led:
                raise errors.Unavailable(TARGET, "scripted")

        led = False
        api.before = of_the_first
        await second.elector.leading.wait()
        led = True
        assert not first.may_write()
        cut = False
        with pytest.raises(LeadershipLost, match="held by second"):
            await first.task
        assert not first.may_write()
        assert second.may_write()
        await second.end()

    run_virtually(body())


def test_resuming_without_the_lease_opens_nothing() -> None:
    async def body() -> None:
        api = LeaseApi()
        first = Candidate(api, "first")
        await first.elector.leading.wait()
        api.before = unavailable
        await first.elector.lapsed.wait()
        first.elector.resume()
        assert first.elector.lapsed.is_set()
        api.before = api._nothing
        await first.elector.leading.wait()
        assert first.fence.closed_because() is not None
        await first.end()

    run_virtually(body())


def test_a_renewal_that_hangs_is_sent_again_before_the_deadline() -> None:
    async def body() -> None:
        api = LeaseApi()
        first = Candidate(api, "first")
        await first.elector.leading.wait()
        hung = 0

        async def hang_once() -> None:
            nonlocal hung
            hung += 1
            if hung == 1:
                await asyncio.sleep(3600)

        api.before = hang_once
        for _ in range(200):
            await asyncio.sleep(0.1)
            assert first.fence.closed_because() is None
        assert hung > 2
        await first.end()

    run_virtually(body())


def test_an_answer_that_hangs_after_the_write_is_made_up_for() -> None:
    async def body() -> None:
        api = LeaseApi()
        first = Candidate(api, "first")
        await first.elector.leading.wait()
        hung = False

        async def hang_once() -> None:
            nonlocal hung
            if not hung:
                hung = True
                await asyncio.sleep(3600)

        api.after = hang_once
        for _ in range(200):
            await asyncio.sleep(0.1)
            assert first.fence.closed_because() is None
        assert hung
        await first.end()

    run_virtually(body())


def test_renewals_that_each_take_almost_half_of_the_deadline_do() -> None:
    async def body() -> None:
        api = LeaseApi()
        first = Candidate(api, "first")
        await first.elector.leading.wait()

        async def slow() -> None:
            await asyncio.sleep(4.5)

        api.before = slow
        for _ in range(1000):
            await asyncio.sleep(0.1)
            assert first.fence.closed_because() is None
        await first.end()

    run_virtually(body())


def test_a_lease_is_not_taken_before_its_whole_duration_has_passed() -> None:
    async def body() -> None:
        api = LeaseApi()
        first = Candidate(api, "first")
        await first.elector.leading.wait()
        second = Candidate(api, "second", 2)
        await asyncio.sleep(60)
        await first.end()
        await second.elector.leading.wait()
        renewed = max(at for at, holder in api.history if holder == "first")
        taken = min(at for at, holder in api.history if holder == "second")
        assert 15 <= taken - renewed <= 15 + 2 * 2.5
        await second.end()

    run_virtually(body())


def test_a_process_frozen_past_its_lease_writes_nothing_when_it_wakes() -> None:
    """A stopped process runs no callbacks while clocks go on: its next step comes late."""

    async def body() -> None:
        api = LeaseApi()
        first = Candidate(api, "first")
        await first.elector.leading.wait()
        await asyncio.sleep(5)
        assert first.may_write()
        loop = asyncio.get_running_loop()
        loop.now += 40  # type: ignore[attr-defined]
        # No task of the frozen process has run since, so no flag can have been cleared; the clock tells all the same.
        assert not first.task.done()
        assert not first.may_write()
        with pytest.raises(LeadershipLost, match="stood still"):
            await first.task
        assert not first.may_write()
        await first.end()

    run_virtually(body())


def test_an_answer_that_comes_after_the_deadline_is_worth_nothing() -> None:
    async def body() -> None:
        api = LeaseApi()
        first = Candidate(api, "first")
        await first.elector.leading.wait()
        loop = asyncio.get_running_loop()

        async def freeze() -> None:
            loop.now += 30  # type: ignore[attr-defined]

        api.after = freeze
        with pytest.raises(LeadershipLost):
            await first.task
        assert not first.may_write()

    run_virtually(body())


def test_time_counts_from_before_the_request() -> None:
    async def body() -> None:
        api = LeaseApi()

        async def slow() -> None:
            await asyncio.sleep(4)

        api.after = slow
        began = now()
        first = Candidate(api, "first")
        await first.elector.leading.wait()
        assert first.fence._deadline == pytest.approx(began + 10, abs=0.1)
        await first.end()

    run_virtually(body())


@pytest.mark.parametrize("holder", ["somebody else", ""])
def test_a_leader_whose_lease_was_taken_ends_at_once(holder: str) -> None:
    async def body() -> None:
        api = LeaseApi()
        first = Candidate(api, "first")
        await first.elector.leading.wait()
        assert api.lease is not None
        api.lease["spec"]["holderIdentity"] = holder
        api.lease["metadata"]["resourceVersion"] = "999"
        with pytest.raises(LeadershipLost, match=holder or "nobody"):
            await first.task

    run_virtually(body())


def test_a_stranger_who_labels_the_lease_does_not_end_leadership() -> None:
    async def body() -> None:
        api = LeaseApi()
        first = Candidate(api, "first")
        await first.elector.leading.wait()
        assert api.lease is not None
        api.lease["metadata"] |= {"labels": {"a": "b"}, "resourceVersion": "999"}
        await asyncio.sleep(60)
        assert first.may_write()
        assert api.lease["metadata"]["labels"] == {"a": "b"}
        await first.end()

    run_virtually(body())


def test_a_lost_answer_to_the_first_write_is_made_up_for_by_another_write() -> None:
    async def body() -> None:
        api = LeaseApi()
        lost = False

        async def lose_once() -> None:
            nonlocal lost
            if not lost:
                lost = True
                raise errors.Unavailable(TARGET, "answer lost")

        api.after = lose_once
        first = Candidate(api, "first")
        await first.elector.leading.wait()
        assert [holder for _, holder in api.history] == ["first", "first"]
        assert api.lease is not None
        assert api.lease["spec"]["leaseTransitions"] == 0
        await first.end()

    run_virtually(body())


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_whatever_the_network_does_two_processes_never_may_write_together(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - repeatable

    async def body() -> None:
        api = LeaseApi()

        async def weather() -> None:
            await asyncio.sleep(rng.choice([0.001, 0.01, 1, 6, 14]))
            if rng.random() < 0.3:
                raise errors.Unavailable(TARGET, "scripted")

        api.before = api.after = weather
        candidates = [Candidate(api, f"c{number}", seed + number) for number in range(3)]
        led: set[str] = set()
        for step in range(2000):
            await asyncio.sleep(0.25)
            writers = [c for c in candidates if c.may_write()]
            assert len(writers) <= 1
            for one in writers:
                # The deadline counts from before the write that renewed.
                renewed = next(at for at, holder in reversed(api.history) if holder == one.elector.identity)
                assert one.fence._deadline is not None
                assert one.fence._deadline <= renewed + 10
            led |= {c.elector.identity for c in writers}
            for place, candidate in enumerate(candidates):
                if candidate.task.done():
                    assert isinstance(candidate.task.exception(), LeadershipLost)
                    assert not candidate.may_write()
                    candidates[place] = Candidate(api, f"c{place}-{step}", seed + step)
        assert led
        for candidate in candidates:
            await candidate.end()

    run_virtually(body())


def test_why_the_lease_cannot_be_had_is_said_once_for_each_reason(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        api = LeaseApi()

        async def broken() -> None:
            raise errors.Unavailable(TARGET, "etcdserver: request timed out", status=500)

        for before in (broken, unavailable):
            api.before = before
            candidate = Candidate(api, "first")
            await asyncio.sleep(300)
            await candidate.end()

    run_virtually(body())
    # That nobody answers is for the connection to say.
    assert [record.getMessage() for record in caplog.records] == [
        "cannot reach for the lease: update leases ns/lease: etcdserver: request timed out (500)"
    ]


def test_periods_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="must be shorter"):
        Elector(
            LeaseApi().client(),
            namespace="a",
            name="b",
            identity="c",
            fence=DeadlineFence(),
            duration=10,
            renew_deadline=10,
        )
