"""The client map, with a fake Slurm."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest

from slinky_operator.kube.errors import Fenced
from slinky_operator.kube.leadership.fence import DeadlineFence, OpenFence
from slinky_operator.runtime.controller import Controller, Result
from slinky_operator.slurm.connection.clients import ClientMap, OwnTokens
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slinky_operator.slurm.connection.contact import Contact, ContactState, Endpoint, Trouble
from slinky_operator.slurm.nodes import node_references
from slinky_operator.slurm.tokens import signing_keys
from slinky_operator.slurm.tokens.signing_keys import SigningKey
from slurm_client import StaticToken, errors
from slurm_client.connection.intake import Intake
from slurm_client.testing import FakeSlurmrestd
from slurm_client.watch import NodeEvent
from tests.support.rsa_keys import rsa_key


async def until(holds: Callable[[], Any]) -> None:
    while not holds():  # noqa: ASYNC110 - what is waited for belongs to others, who set no event
        await asyncio.sleep(0.005)


@pytest.fixture
async def slurm() -> AsyncIterator[FakeSlurmrestd]:
    async with FakeSlurmrestd() as fake:
        fake.add_node("a-0")
        yield fake


@pytest.fixture
async def clients() -> AsyncIterator[ClientMap]:
    one = ClientMap(OpenFence())
    yield one
    await one.close_all()


async def put(clients: ClientMap, url: str, uid: str = "u", fingerprint: str = "1") -> ClusterClient:
    # Long enough for any answer: what is silent here stays so, and a busy machine is not taken for a silent Slurm.
    endpoint = Endpoint(url, timeout=3600.0, poll_interval=0.02)
    return await clients.put(
        uid, "here", f"slurm-{uid}", endpoint=endpoint, token=StaticToken("t"), fingerprint=fingerprint
    )


async def test_nodes_and_contact_come_by_themselves(clients: ClientMap, slurm: FakeSlurmrestd) -> None:
    events: list[tuple[str, NodeEvent]] = []
    contacts: list[tuple[str, Contact]] = []
    clients.subscribe(lambda uid, event: events.append((uid, event)))
    clients.subscribe_contact(lambda uid, contact: contacts.append((uid, contact)))
    entry = await put(clients, slurm.url)
    assert (entry.contact.state, entry.nodes_at) == (ContactState.CONNECTING, None)
    await until(lambda: events)
    assert [(uid, event.key, event.kind) for uid, event in events] == [("u", "a-0", "added")]
    assert [(uid, contact.state) for uid, contact in contacts] == [("u", ContactState.READY)]
    assert set(entry.nodes) == {"a-0"}
    assert entry.nodes_at is not None
    assert clients.get("u") is clients.find("here", "slurm-u") is entry
    seen = entry.nodes_at
    await until(lambda: entry.nodes_at is not None and entry.nodes_at > seen)


async def test_refresh_asks_now_updates_the_picture_and_tells(slurm: FakeSlurmrestd, clients: ClientMap) -> None:
    events: list[NodeEvent] = []
    clients.subscribe(lambda _, event: events.append(event))
    entry = await clients.put(
        "u",
        "here",
        "slurm",
        endpoint=Endpoint(slurm.url, timeout=3600.0, poll_interval=3600.0),
        token=StaticToken("t"),
        fingerprint="1",
    )
    await until(lambda: entry.nodes)
    slurm.set_flags("a-0", add=["DRAIN"])
    found = await entry.refresh(["a-0", "nobody"])
    assert found["nobody"] is None
    assert found["a-0"] is not None
    assert entry.nodes["a-0"].is_drain
    await until(lambda: len(events) == 2)
    assert [event.new is not None and event.new.is_drain for event in events] == [False, True]


async def test_one_that_hangs_delays_no_other(clients: ClientMap, slurm: FakeSlurmrestd) -> None:
    async with FakeSlurmrestd() as other:
        other.faults.hang()
        stuck = await put(clients, other.url, uid="stuck")
        fine = await put(clients, slurm.url)
        await until(lambda: fine.contact.state is ContactState.READY)
        assert stuck.contact.state is ContactState.CONNECTING
        await clients.close_all()
        assert len(clients) == 0


async def test_trouble_has_a_kind_and_words(clients: ClientMap, slurm: FakeSlurmrestd) -> None:
    entry = await put(clients, slurm.url)
    await until(lambda: entry.contact.state is ContactState.READY)
    slurm.faults.controller_down()
    await until(lambda: entry.contact.state is ContactState.UNREACHABLE)
    assert entry.contact.trouble is Trouble.CONTROLLER_DOWN
    assert entry.contact.why
    assert set(entry.nodes) == {"a-0"}
    slurm.faults.clear()
    entry.hurry()
    await until(lambda: entry.contact.state is ContactState.READY)


async def test_a_refused_token_is_told_apart(clients: ClientMap) -> None:
    async with FakeSlurmrestd(key=b"k" * 32) as slurm:
        entry = await put(clients, slurm.url)
        await until(lambda: entry.contact.state is ContactState.UNREACHABLE)
        assert entry.contact.trouble is Trouble.UNAUTHORIZED


async def test_an_entry_is_replaced_only_by_a_different_one(clients: ClientMap, slurm: FakeSlurmrestd) -> None:
    first = await put(clients, slurm.url)
    assert await put(clients, slurm.url) is first
    second = await put(clients, slurm.url, fingerprint="2")
    assert second is clients.get("u") is not first
    assert first.closed
    assert not second.closed


async def test_an_override_takes_all_requests_of_its_cluster_and_of_no_other(slurm: FakeSlurmrestd) -> None:
    clients = ClientMap(OpenFence(), overrides={("here", "slurm-forwarded"): slurm.url})
    try:
        # Names that nothing here resolves: as a Service and a pod seen from a developer's machine.
        forwarded = await put(clients, "http://restapi.invalid:6820", uid="forwarded")
        other = await put(clients, "http://restapi.invalid:6820", uid="other")
        await until(lambda: forwarded.contact.state is ContactState.READY)
        assert set(forwarded.nodes) == {"a-0"}
        forwarded.replicas.use(["http://replica-0.invalid:6820", "http://replica-1.invalid:6820"])
        assert await forwarded.refresh(["a-0"]) == {"a-0": forwarded.nodes["a-0"]}
        assert await clients.why_refused("forwarded", StaticToken("t")) == ""
        await until(lambda: other.contact.state is ContactState.UNREACHABLE)
        assert other.contact.trouble is Trouble.NO_ANSWER
    finally:
        await clients.close_all()


async def test_a_broken_listener_keeps_nobody_from_hearing(clients: ClientMap, slurm: FakeSlurmrestd) -> None:
    heard: list[str] = []

    def broken(uid: str, event: NodeEvent) -> None:
        raise ValueError(uid)

    clients.subscribe(broken)
    clients.subscribe(lambda _, event: heard.append(event.key))
    await put(clients, slurm.url)
    await until(lambda: heard == ["a-0"])


async def test_no_write_leaves_once_the_fence_is_closed(slurm: FakeSlurmrestd) -> None:
    fence = DeadlineFence(clock=lambda: 0.0)
    clients = ClientMap(fence)
    entry = await put(clients, slurm.url)
    await until(lambda: entry.contact.state is ContactState.READY)
    with pytest.raises(Fenced):
        await entry.client.drain_nodes(["a-0"], "slurm-operator: test")
    with pytest.raises(Fenced):
        await entry.client.reconfigure()
    assert slurm.world.reconfigured == 0
    assert not slurm.nodes["a-0"].is_drain
    fence.extend(1.0)
    await entry.client.drain_nodes(["a-0"], "slurm-operator: test")
    assert slurm.nodes["a-0"].is_drain
    await clients.close_all()


async def test_jobs_are_asked_for_without_the_cores_of_their_nodes(slurm: FakeSlurmrestd, clients: ClientMap) -> None:
    entry = await put(clients, slurm.url)
    _ = await entry.fresh_jobs(), await entry.shared_jobs(math.inf), await entry.jobs_with_nodes()
    assert [call.query["flags"] for call in slurm.calls("get_jobs")] == ["ALL"] * 3


async def test_at_rest_whole_lists_of_nodes_are_rarer_the_more_nodes_there_are(
    slurm: FakeSlurmrestd, clients: ClientMap
) -> None:
    pace = (await put(clients, slurm.url))._watch._pace
    waits = [300.0]
    while len(waits) < 8:
        waits.append(pace.after_nothing_new(waits[-1], 5_000))
    assert waits == [300, 600, 1200, 2400, 4800, 6000, 6000, 6000]
    assert pace.after_nothing_new(300, 250) == 300


async def test_one_answer_about_jobs_serves_all_that_ask_within_a_second(
    clients: ClientMap, slurm: FakeSlurmrestd
) -> None:
    entry = await put(clients, slurm.url)
    await until(lambda: entry.contact.state is ContactState.READY)
    job = slurm.add_job(nodes=["a-0"])
    await until(lambda: not entry.nodes["a-0"].is_idle)

    answers = await asyncio.gather(*(entry.shared_jobs() for _ in range(5)))

    assert [[one.id for one in answer] for answer in answers] == [[job.id]] * 5
    assert len(slurm.calls("get_jobs")) == 1


async def test_an_answer_about_jobs_is_not_used_after_a_node_has_changed(
    clients: ClientMap, slurm: FakeSlurmrestd
) -> None:
    told: list[NodeEvent] = []
    clients.subscribe(lambda _, event: told.append(event))
    entry = await put(clients, slurm.url)
    await until(lambda: told)
    assert list(await entry.shared_jobs()) == []

    slurm.add_job(nodes=["a-0"])
    await until(lambda: len(told) > 1)

    assert len(await entry.shared_jobs()) == 1


async def test_a_question_for_jobs_that_failed_is_asked_again(clients: ClientMap, slurm: FakeSlurmrestd) -> None:
    entry = await put(clients, slurm.url)
    await until(lambda: "a-0" in entry.nodes)
    slurm.faults.add("/jobs", times=1, status=500, body="no", content_type="text/plain")
    with pytest.raises(errors.SlurmError):
        await entry.shared_jobs()

    assert list(await entry.shared_jobs()) == []


async def test_one_who_stops_waiting_for_jobs_takes_the_answer_from_nobody(
    clients: ClientMap, slurm: FakeSlurmrestd
) -> None:
    entry = await put(clients, slurm.url)
    await until(lambda: "a-0" in entry.nodes)
    impatient = asyncio.create_task(entry.shared_jobs())
    patient = asyncio.create_task(entry.shared_jobs())
    await asyncio.sleep(0)
    impatient.cancel()

    assert list(await patient) == []


async def test_who_shares_an_answer_hears_that_the_client_was_closed(clients: ClientMap, slurm: FakeSlurmrestd) -> None:
    entry = await put(clients, slurm.url)
    await until(lambda: entry.contact.state is ContactState.READY)
    slurm.faults.hang("jobs")
    asked = entry.client.calls
    waiting = [asyncio.create_task(entry.shared_jobs()) for _ in range(3)]
    await until(lambda: entry.client.calls > asked)
    leaving = waiting.pop()
    leaving.cancel()
    await asyncio.wait({leaving})
    assert leaving.cancelled()
    assert not any(task.done() for task in waiting)
    await clients.close("u")
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(one) for one in found] == [errors.ClientClosed] * 2
    with pytest.raises(errors.ClientClosed):
        await entry.shared_jobs()


async def test_workers_live_on_when_the_client_they_wait_for_is_closed(
    clients: ClientMap, slurm: FakeSlurmrestd, caplog: pytest.LogCaptureFixture
) -> None:
    first = await put(clients, slurm.url)
    await until(lambda: first.contact.state is ContactState.READY)
    slurm.faults.hang("jobs")
    passes: list[str] = []

    async def reconcile(key: str) -> Result:
        entry = clients.get("u")
        assert entry is not None
        passes.append(key)
        _ = await entry.shared_jobs()
        return Result()

    controller = Controller("nodeset", reconcile, workers=4)
    running = asyncio.create_task(controller.run())
    for key in ("a", "b", "c"):
        controller.queue.add(key)
    asked = first.client.calls
    await until(lambda: len(passes) == 3 and first.client.calls > asked)
    slurm.faults.clear()
    _ = await put(clients, slurm.url, fingerprint="2")
    # Those that were waiting have failed, and have come again.
    await until(lambda: len(passes) >= 6 and all(not controller.queue.failures(key) for key in "abc"))
    assert controller.unhealthy() is None
    assert "cancelled" not in caplog.text
    await controller.stop(60)
    await running


async def test_closing_a_client_does_not_swallow_a_cancellation(clients: ClientMap, slurm: FakeSlurmrestd) -> None:
    entry = await put(clients, slurm.url)
    await until(lambda: entry.contact.state is ContactState.READY)
    closing = asyncio.create_task(clients.close("u"))
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait({closing})
    assert closing.cancelled()
    await entry.close()


async def test_jobs_of_users_with_long_texts_stop_nothing(slurm: FakeSlurmrestd) -> None:
    clients = ClientMap(OpenFence(), intake=Intake(256 * 1024))
    entry = await put(clients, slurm.url)
    await until(lambda: entry.contact.state is ContactState.READY)
    mine = slurm.add_job(nodes=["a-0"])
    waiting = [slurm.add_job(dependency="afterany:1" + ":2" * 10_000).id for _ in range(40)]
    assert {job.id for job in await entry.fresh_jobs()} == {mine.id, *waiting}
    # To plan, and to delete a pod, those that hold nodes are enough: the others may name any node.
    read = len(slurm.calls("get_job"))
    shared = await entry.shared_jobs(math.inf)
    assert [job.id for job in shared if job.nodes] == [mine.id]
    named = node_references.find(shared, (), ["any"])
    assert named == {"any": ("perhaps required by a job, whose list of nodes cannot be read",)}
    assert [job.id for job in await entry.jobs_with_nodes() if job.nodes] == [mine.id]
    assert len(slurm.calls("get_job")) == read + 2
    # A list in part is none: nothing is deleted by it.
    slurm.faults.add(f"/job/{waiting[-1]}", status=500, times=None)
    with pytest.raises(errors.SlurmError):
        await entry.fresh_jobs()
    await clients.close_all()


async def test_the_trial_of_another_token_has_the_room_of_its_namespace(slurm: FakeSlurmrestd) -> None:
    intake = Intake(64 * 1024)
    clients = ClientMap(OpenFence(), intake=intake)
    entry = await put(clients, slurm.url)
    await until(lambda: entry.contact.state is ContactState.READY)
    assert not await clients.why_refused("u", StaticToken("other"))
    slurm.faults.add("/licenses/", body='{"licenses": [], "x": "' + "x" * 200_000 + '"}', times=None)
    assert await clients.why_refused("u", StaticToken("other"))
    await clients.close_all()
    assert intake.taken == 0


async def test_a_token_is_tried_by_what_slurmctld_answers_without_slurmdbd(slurm: FakeSlurmrestd) -> None:
    clients = ClientMap(OpenFence())
    entry = await put(clients, slurm.url)
    await until(lambda: entry.contact.state is ContactState.READY)
    # slurmrestd asks slurmdbd for these, which has another key.
    slurm.faults.add("/partitions/", status=511, times=None)
    slurm.faults.add("/slurmdb/", status=502, times=None)
    assert not await clients.why_refused("u", StaticToken("other"))
    slurm.faults.add("/licenses/", status=511, times=None)
    assert await clients.why_refused("u", StaticToken("other"))
    await clients.close_all()


KEYS = (signing_keys.private(rsa_key("a")), SigningKey(b"k" * 32))


async def test_each_refusal_brings_a_token_of_the_next_key() -> None:
    tokens = OwnTokens(KEYS, timedelta(minutes=5))
    for key in (*KEYS, *KEYS):
        token = await tokens.token()
        assert signing_keys.verify(token, key)["sun"] == "slurm"
        assert await tokens.token() == token
        # Several calls may be refused at once, with the same token.
        for _ in range(3):
            tokens.invalidate(token)
