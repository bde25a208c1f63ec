"""Who may ask the kubelet API: certificates, tokens, rights, and how long their answers count."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

import pytest

from slinky_operator.kube import errors
from slinky_operator.kube.errors import Target
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import TOKEN_REVIEWS, Resource
from slinky_operator.virtual_nodes.kubelet.callers import ALLOWED_S, KNOWN_S, REFUSED_S, WAITING, Caller, Callers
from slinky_operator.virtual_nodes.kubelet.refusal import NotServed

ALICE = Caller("alice", ("system:authenticated",))


class Reviewer:
    """An API server that knows one token, and who may do what."""

    def __init__(self) -> None:
        self.asked: list[Object] = []
        self.may = {("alice", "n1")}
        self.fails = False
        self.hold = asyncio.Event()
        self.hold.set()

    async def create(self, resource: Resource, body: Object, namespace: str | None = None) -> Object:
        self.asked.append(body)
        await self.hold.wait()
        if self.fails:
            raise errors.Unavailable(Target("create", str(resource), None, None), body["spec"].get("token"), status=503)
        spec = body["spec"]
        if resource is TOKEN_REVIEWS:
            user = {"username": "alice", "groups": ["system:authenticated"]}
            return {"status": {"authenticated": True, "user": user} if spec["token"] == "secret" else {}}
        return {"status": {"allowed": (spec["user"], spec["resourceAttributes"]["name"]) in self.may}}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def subject(name: str, *groups: str) -> dict[str, Any]:
    parts = [(("organizationName", group),) for group in groups]
    return {"subject": (*parts, (("commonName", name),))}


async def refusal(callers: Callers, authorization: str = "", certificate: Any = None) -> NotServed:
    with pytest.raises(NotServed) as refused:
        await callers.identify(certificate, authorization)
    return refused.value


async def test_a_certificate_names_user_and_groups_and_nobody_is_asked() -> None:
    reviewer = Reviewer()
    found = await Callers(reviewer).identify(subject("kube-apiserver-kubelet-client", "system:masters"), "")
    assert found == Caller("kube-apiserver-kubelet-client", ("system:masters", "system:authenticated"))
    assert not reviewer.asked


async def test_nobody_and_an_unknown_token_are_not_authorized() -> None:
    callers = Callers(Reviewer())
    for authorization in ("", "Basic x", "Bearer ", "Bearer wrong", f"Bearer {'x' * 20_000}"):
        assert (await refusal(callers, authorization)).status is HTTPStatus.UNAUTHORIZED
    assert (await refusal(callers, certificate=subject(""))).status is HTTPStatus.UNAUTHORIZED


async def test_a_token_counts_for_two_minutes_and_a_wrong_one_for_half_a_minute() -> None:
    reviewer, clock = Reviewer(), Clock()
    callers = Callers(reviewer, clock=clock)
    for _ in range(3):
        assert await callers.identify(None, "Bearer secret") == ALICE
        await refusal(callers, "bearer wrong")
    assert len(reviewer.asked) == 2
    clock.now = REFUSED_S
    await refusal(callers, "Bearer wrong")
    assert len(reviewer.asked) == 3
    clock.now = KNOWN_S
    await callers.identify(None, "Bearer secret")
    assert len(reviewer.asked) == 4


async def test_a_right_is_that_of_one_node_and_one_verb() -> None:
    reviewer, clock = Reviewer(), Clock()
    callers = Callers(reviewer, clock=clock)
    for _ in range(2):
        await callers.permit(ALICE, "GET", "n1")
    (asked,) = reviewer.asked
    assert asked["spec"]["resourceAttributes"] == {
        "verb": "get",
        "version": "v1",
        "resource": "nodes",
        "subresource": "proxy",
        "name": "n1",
    }
    for method, node in (("GET", "n2"), ("GET", "")):
        with pytest.raises(NotServed, match="alice may not get nodes/proxy of") as refused:
            await callers.permit(ALICE, method, node)
        assert refused.value.status is HTTPStatus.FORBIDDEN
    await callers.permit(ALICE, "POST", "n1")
    assert reviewer.asked[-1]["spec"]["resourceAttributes"]["verb"] == "create"
    clock.now = ALLOWED_S
    reviewer.may.clear()
    with pytest.raises(NotServed):
        await callers.permit(ALICE, "GET", "n1")


async def test_a_right_that_is_given_counts_after_half_a_minute() -> None:
    reviewer, clock = Reviewer(), Clock()
    callers = Callers(reviewer, clock=clock)
    with pytest.raises(NotServed):
        await callers.permit(ALICE, "GET", "n2")
    reviewer.may.add(("alice", "n2"))
    with pytest.raises(NotServed):
        await callers.permit(ALICE, "GET", "n2")
    clock.now = REFUSED_S
    await callers.permit(ALICE, "GET", "n2")


async def test_an_api_server_that_does_not_answer_lets_nobody_in_and_no_token_out() -> None:
    reviewer = Reviewer()
    reviewer.fails = True
    callers = Callers(reviewer)
    refused = await refusal(callers, "Bearer secret")
    assert refused.status is HTTPStatus.SERVICE_UNAVAILABLE
    assert "secret" not in f"{refused.why} {refused!r} {refused.__cause__}"
    reviewer.fails = False
    assert await callers.identify(None, "Bearer secret") == ALICE


async def test_a_flood_of_tokens_keeps_a_bounded_number_of_answers_and_none_of_those_who_may() -> None:
    callers = Callers(Reviewer(), entries=10)
    await callers.identify(None, "Bearer secret")
    for number in range(100):
        await refusal(callers, f"Bearer {number}")
    reviewer = callers._kube
    assert isinstance(reviewer, Reviewer)
    before = len(reviewer.asked)
    await callers.identify(None, "Bearer secret")
    assert len(reviewer.asked) == before
    assert len(callers._unknown) == 10


async def test_those_who_are_too_many_to_be_reviewed_are_turned_away() -> None:
    reviewer = Reviewer()
    reviewer.hold.clear()
    callers = Callers(reviewer)
    waiting = [asyncio.create_task(refusal(callers, f"Bearer {number}")) for number in range(WAITING)]
    await asyncio.sleep(0)
    assert (await refusal(callers, "Bearer one more")).status is HTTPStatus.SERVICE_UNAVAILABLE
    reviewer.hold.set()
    assert {one.status for one in await asyncio.gather(*waiting)} == {HTTPStatus.UNAUTHORIZED}
    assert await callers.identify(None, "Bearer secret") == ALICE
