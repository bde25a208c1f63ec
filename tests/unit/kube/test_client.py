"""What is sent, what is repeated, and what the fence holds back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from slinky_operator.kube import errors
from slinky_operator.kube.calls import transport
from slinky_operator.kube.calls.writing import Propagation
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.resources import NODES, NODESETS, PODS, STATEFULSETS
from tests.unit.kube.fake_api import FakeApi, client_of, running

POD = {"metadata": {"name": "x", "namespace": "default"}}

Call = Callable[[KubeClient], Awaitable[Any]]

CREATE: Call = lambda c: c.create(PODS, POD)  # noqa: E731
APPLY: Call = lambda c: c.apply(PODS, POD)  # noqa: E731
APPLY_AT: Call = lambda c: c.apply(PODS, {"metadata": {**POD["metadata"], "resourceVersion": "1"}})  # noqa: E731
MERGE: Call = lambda c: c.merge_patch(PODS, "x", {}, "default")  # noqa: E731
MERGE_AT: Call = lambda c: c.merge_patch(PODS, "x", {}, "default", resource_version="1")  # noqa: E731
JSON: Call = lambda c: c.json_patch(PODS, "x", [], "default")  # noqa: E731
REPLACE: Call = lambda c: c.replace(PODS, POD)  # noqa: E731
DELETE: Call = lambda c: c.delete(PODS, "x", "default", uid="u")  # noqa: E731
DELETE_BY_NAME: Call = lambda c: c.delete(PODS, "x", "default", uid=None)  # noqa: E731
SCALE: Call = lambda c: c.scale(STATEFULSETS, "x", "default", 3)  # noqa: E731
ALL = (CREATE, APPLY, APPLY_AT, MERGE, MERGE_AT, JSON, REPLACE, DELETE, DELETE_BY_NAME, SCALE)
REPEATABLE = (APPLY, MERGE, DELETE, SCALE)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(_: float) -> None:
        await sleep(0)

    sleep = asyncio.sleep
    monkeypatch.setattr("slinky_operator.kube.calls.transport.asyncio.sleep", at_once)


async def calls(fake: FakeApi, call: Call, *faults: int | str) -> tuple[int, Exception | None]:
    """Number of requests a call made, and what it raised."""
    fake.write_faults.extend(faults)
    async with client_of(fake) as client:
        try:
            await call(client)
        except errors.KubeError as error:
            return fake.count("write"), error
    return fake.count("write"), None


@pytest.mark.parametrize("call", REPEATABLE)
@pytest.mark.parametrize("fault", [500, 503, "cut", 429])
async def test_what_has_the_same_effect_twice_is_repeated(call: Call, fault: int | str) -> None:
    async with running() as fake:
        assert await calls(fake, call, fault) == (2, None)


@pytest.mark.parametrize("call", [c for c in ALL if c not in REPEATABLE])
async def test_other_writes_are_not_repeated_when_they_may_have_arrived(call: Call) -> None:
    async with running() as fake:
        count, error = await calls(fake, call, 500)
        assert count == 1
        assert isinstance(error, errors.Unavailable)
        assert error.maybe_done


@pytest.mark.parametrize("call", ALL)
async def test_a_429_is_repeated_whatever_the_verb_but_not_for_ever(call: Call) -> None:
    async with running() as fake:
        assert await calls(fake, call, 429) == (2, None)
    async with running() as fake:
        count, error = await calls(fake, call, *[429] * 10)
        assert count == transport.ATTEMPTS
        assert isinstance(error, errors.TooManyRequests)
        assert error.retry_after == pytest.approx(0.01)


@pytest.mark.parametrize("call", ALL)
@pytest.mark.parametrize("fault", [400, 403, 404, 409, 422])
async def test_an_answer_is_an_answer(call: Call, fault: int) -> None:
    async with running() as fake:
        count, error = await calls(fake, call, fault)
        assert count == 1
        assert isinstance(error, errors.KubeError)
        assert error.status == fault


async def test_a_server_that_is_not_there_has_certainly_done_nothing() -> None:
    async with running() as fake:
        pass
    async with client_of(fake) as client:
        with pytest.raises(errors.Unavailable) as caught:
            await CREATE(client)
        assert not caught.value.maybe_done


class CountingFence:
    """Closes after so many looks."""

    def __init__(self, open_for: int) -> None:
        self.looks = 0
        self._open_for = open_for

    def closed_because(self) -> str | None:
        self.looks += 1
        return "late" if self.looks > self._open_for else None


@pytest.mark.parametrize("call", ALL)
async def test_every_write_is_held_back_at_every_place_where_the_fence_is_asked(call: Call) -> None:
    async with running() as fake:
        looks = CountingFence(1000)
        async with client_of(fake, looks) as client:
            await call(client)
        assert fake.count("write") == 1
        assert looks.looks >= 3
        for open_for in range(looks.looks):
            fake.requests.clear()
            async with client_of(fake, CountingFence(open_for)) as client:
                with pytest.raises(errors.Fenced, match="late"):
                    await call(client)
            assert fake.requests == []


async def test_a_repetition_passes_the_fence_again() -> None:
    async with running() as fake:
        fake.write_faults.extend([500, 500])
        fence = CountingFence(3)
        async with client_of(fake, fence) as client:
            with pytest.raises(errors.Fenced):
                await APPLY(client)
        assert fake.count("write") == 1


async def test_requests_that_wait_for_their_turn_are_fenced_when_it_comes() -> None:
    """Three hundred writes are queued, the process freezes, and wakes when another leads."""
    async with running() as fake:
        frozen = False

        class Freezing:
            def closed_because(self) -> str | None:
                return "late" if frozen else None

        async with client_of(fake, Freezing()) as client:
            tasks = [asyncio.ensure_future(client.merge_patch(PODS, f"p{n}", {}, "default")) for n in range(300)]
            while fake.count("write") < 60:  # noqa: ASYNC110 - the fake tells by counting
                await asyncio.sleep(0)
            frozen = True
            sent = fake.count("write")
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        # What had left before the freeze may still arrive; nothing of what was waiting may.
        assert fake.count("write") <= sent + transport.MAX_IN_FLIGHT
        assert sum(isinstance(end, errors.Fenced) for end in ends) == 300 - fake.count("write")


async def test_reads_pass_a_closed_fence() -> None:
    async with running() as fake, client_of(fake, CountingFence(0)) as client:
        await client.list(PODS, "default")
        assert fake.count("list") == 1


async def test_deletes_say_what_they_mean() -> None:
    async with running() as fake, client_of(fake) as client:
        await client.delete(
            PODS,
            "x",
            "default",
            uid="u",
            resource_version="7",
            propagation=Propagation.FOREGROUND,
            grace_seconds=0,
            dry_run=True,
        )
        assert fake.writes == [
            {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": "u", "resourceVersion": "7"},
                "propagationPolicy": "Foreground",
                "gracePeriodSeconds": 0,
                "dryRun": ["All"],
            }
        ]


async def test_apply_names_the_manager_and_fills_in_the_kind() -> None:
    async with running() as fake, client_of(fake) as client:
        await client.apply_status(NODESETS, {"metadata": {"name": "n", "namespace": "a"}, "status": {"replicas": 1}})
        assert fake.requests[0][1:] == (
            "/apis/slinky.slurm.net/v1alpha1/namespaces/a/nodesets/n/status",
            {"fieldManager": "test", "force": "true"},
        )
        assert fake.writes[0]["kind"] == "NodeSet"
        assert fake.writes[0]["apiVersion"] == "slinky.slurm.net/v1alpha1"


@pytest.mark.parametrize("name", ["..", "a/b", "a?b", "a b", "a%2e", "a\nb"])
def test_a_name_cannot_leave_its_place_in_the_url(name: str) -> None:
    with pytest.raises(ValueError, match="no object name"):
        PODS.path("default", name)


def test_paths() -> None:
    assert PODS.path("a", "b") == "/api/v1/namespaces/a/pods/b"
    assert PODS.path() == "/api/v1/pods"
    assert NODES.path(None, "n1") == "/api/v1/nodes/n1"
    assert STATEFULSETS.path("a", "b", "scale") == "/apis/apps/v1/namespaces/a/statefulsets/b/scale"
    with pytest.raises(ValueError, match="without a namespace"):
        PODS.path(None, "b")
