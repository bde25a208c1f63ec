"""Whether the API server reaches the kubelet API: what follows from its answers, and when it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from slinky_operator.kube import errors
from slinky_operator.kube.errors import Target
from slinky_operator.kube.resources import CLUSTERS
from slinky_operator.virtual_nodes.arrival import FIELD, PATH, mark_of
from slinky_operator.virtual_nodes.nodes.model.reachability import Way, verdict
from slinky_operator.virtual_nodes.nodes.reachability_poll import (
    AGAIN_S,
    CLOSED_EVERY_S,
    CONFIRM_S,
    OPEN_EVERY_S,
    ReachabilityPoll,
)
from tests.unit.virtual_nodes.nodes.worlds import KEY, WAY, World, cluster

TARGET = Target("get", "pods/proxy", WAY.namespace, WAY.pod)
REFUSED = "error trying to reach service: dial tcp 10.0.0.7:10350: connect: connection refused"
OTHER = "something else than the operator answers there"


def of_status(status: int, message: str, reason: str = "") -> errors.KubeError:
    return errors.from_status(TARGET, {"message": message, "reason": reason}, status=status)


def without_answer(cause: BaseException, *, maybe_done: bool = True) -> errors.KubeError:
    error = errors.Unavailable(TARGET, "no answer", maybe_done=maybe_done)
    error.__cause__ = cause
    return error


CLOSED = of_status(503, REFUSED, "ServiceUnavailable")


def test_the_mark_of_this_process_is_proof() -> None:
    found = verdict(WAY, {FIELD: WAY.mark}, 45)
    assert found is not None
    assert (found.reachable, found.reason, found.message) == (True, "AsExpected", "")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (CLOSED, "dial tcp 10.0.0.7:10350: connect: connection refused"),
        (
            of_status(503, "error trying to reach service: dial tcp 10.0.0.7:10350: i/o timeout"),
            "dial tcp 10.0.0.7:10350: i/o timeout",
        ),
        (without_answer(TimeoutError()), "no answer within 45 s"),
        (without_answer(ValueError("no JSON")), OTHER),
        (errors.TooLong(TARGET, "too long"), OTHER),
        ({FIELD: mark_of("another process")}, OTHER),
        ({}, OTHER),
    ],
)
def test_a_way_that_is_closed_is_named_with_what_to_open(answer: Any, why: str) -> None:
    found = verdict(WAY, answer, 45)
    assert found is not None
    assert (found.reachable, found.reason) == (False, "KubeletApiUnreachable")
    assert f"does not reach 10.0.0.7:10350, the operator's pod slurm-operator/slurm-operator-1: {why}" in found.message
    assert "Let the control plane open TCP connections to port 10350" in found.message


@pytest.mark.parametrize(
    ("answer", "reason", "words"),
    [
        (of_status(403, 'User "op" cannot get pods/proxy', "Forbidden"), "Forbidden", "get on pods/proxy in namespace"),
        (of_status(404, 'pods "slurm-operator-1" not found', "NotFound"), "RequestRefused", "not found"),
        (of_status(400, "address not allowed", "BadRequest"), "RequestRefused", "address not allowed"),
    ],
)
def test_a_question_that_is_not_let_through_leaves_it_unknown_and_says_why(
    answer: Any, reason: str, words: str
) -> None:
    found = verdict(WAY, answer, 45)
    assert found is not None
    assert (found.reachable, found.reason) == (None, reason)
    assert words in found.message


@pytest.mark.parametrize(
    "answer",
    [
        of_status(503, "the server is currently unable to handle the request"),
        of_status(500, "etcdserver: request timed out"),
        of_status(429, "too many requests"),
        of_status(401, "Unauthorized"),
        without_answer(OSError("refused"), maybe_done=False),
        without_answer(TimeoutError(), maybe_done=False),
        without_answer(ConnectionResetError("lost")),
    ],
)
def test_nothing_follows_from_an_api_server_that_is_busy_or_away(answer: Any) -> None:
    assert verdict(WAY, answer, 45) is None


def test_what_the_api_server_says_is_cut() -> None:
    found = verdict(WAY, of_status(503, f"error trying to reach service: {'x' * 100_000}"), 45)
    assert found is not None
    assert len(found.message) < 1_000


def test_an_address_of_ipv6_is_readable() -> None:
    assert Way("a", "b", "fd00::7", 10350, "").end == "[fd00::7]:10350"


@asynccontextmanager
async def asking(world: World) -> AsyncIterator[list[Any]]:
    """The question under way; yields the keys of Clusters that get an answer."""
    told: list[Any] = []
    world.reachability.subscribe(told.append)
    task = asyncio.create_task(world.reachability.run())
    try:
        yield told
    finally:
        _ = task.cancel()
        await asyncio.wait({task})


async def step(world: World, *, seconds: float = 0.0) -> None:
    """A pass, the answer that it brings about, and the pass after that."""
    _ = await world.step(seconds=seconds)
    for _ in range(8):
        await asyncio.sleep(0)
    _ = await world.step()


async def test_it_is_asked_rarely_while_it_works_and_often_while_it_does_not() -> None:
    world = World(cluster())
    async with asking(world) as told:
        await step(world)
        assert world.proxy.asked == [("slurm-operator", "slurm-operator-1", 10350, PATH)]
        assert world.shown()["kubeletApi"] == {"reachable": True, "reason": "AsExpected", "message": ""}
        assert told == [KEY]
        await step(world, seconds=OPEN_EVERY_S - 1)
        assert len(world.proxy.asked) == 1
        world.proxy.answer = CLOSED
        await step(world, seconds=2)
        assert len(world.proxy.asked) == 3
        assert world.slept == [CONFIRM_S]
        assert "connection refused" in world.shown()["kubeletApi"]["message"]
        await step(world, seconds=CLOSED_EVERY_S)
        assert len(world.proxy.asked) == 4
        assert told == [KEY, KEY]
        world.proxy.answer = {FIELD: WAY.mark}
        await step(world, seconds=CLOSED_EVERY_S)
        assert world.shown()["kubeletApi"]["reachable"] is True


async def test_a_pod_that_has_just_started_may_be_late() -> None:
    world = World(cluster())
    sleep = world.sleep

    async def opened(seconds: float) -> None:
        world.proxy.answer = {FIELD: WAY.mark}
        await sleep(seconds)

    world.reachability._sleep = opened
    world.proxy.answer = CLOSED
    async with asking(world):
        await step(world)
    assert world.shown()["kubeletApi"]["reachable"] is True


async def test_what_is_known_stays_while_the_api_server_is_busy_and_after_a_restart() -> None:
    world = World(cluster())
    world.proxy.answer = CLOSED
    async with asking(world):
        await step(world)
        before = world.shown()["kubeletApi"]
        world.proxy.answer = of_status(429, "too many requests")
        await step(world, seconds=CLOSED_EVERY_S)
        await step(world, seconds=AGAIN_S)
        assert len(world.proxy.asked) == 4
        assert world.shown()["kubeletApi"] == before
    stored = world.kube.find(CLUSTERS, *reversed(KEY))
    assert stored is not None
    again = World(stored)
    _ = await again.step()
    assert again.shown()["kubeletApi"] == before


async def test_nothing_is_asked_without_virtual_nodes_or_where_they_are_not_allowed() -> None:
    for world in (World(), World(cluster(), allowed=["other/one"])):
        async with asking(world):
            await step(world)
        assert not world.proxy.asked
        if world.kube.find(CLUSTERS, *reversed(KEY)) is not None:
            assert "kubeletApi" not in world.shown()


async def test_a_process_that_does_not_know_its_pod_asks_nothing() -> None:
    world = World(cluster())
    poll = ReachabilityPoll(world.proxy, None, world.kube.caches["clusters"])
    poll.ask()
    assert not poll._woken.is_set()
