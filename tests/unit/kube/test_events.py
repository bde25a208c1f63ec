"""Events are few, never in the way, and say what happened."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from slinky_operator.kube import errors
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.errors import Target
from slinky_operator.kube.events import AT_ONCE, BURST, COMBINE_AFTER, IN_A_ROW, LONGEST_MESSAGE, REMEMBERED, Recorder
from slinky_operator.kube.objects import Object
from slinky_operator.runtime.logging import TextFormatter
from tests.unit.runtime.virtual_time import now, run_virtually

TARGET = Target("create", "events", "hpc", "x")
NODESET = {
    "apiVersion": "slinky.slurm.net/v1alpha1",
    "kind": "NodeSet",
    "metadata": {"name": "compute", "namespace": "hpc", "uid": "u1", "resourceVersion": "5"},
}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "u2"}}


class EventApi:
    def __init__(self) -> None:
        self.events: dict[str, Object] = {}
        self.writes = 0
        self.failures: list[errors.KubeError] = []

    async def create(self, _: object, body: Object) -> Object:
        self._write()
        if body["metadata"]["name"] in self.events:
            raise errors.AlreadyExists(TARGET, "there is one")
        self.events[body["metadata"]["name"]] = body
        return body

    async def merge_patch(self, _: object, name: str, patch: Object, namespace: str) -> Object:
        self._write()
        if name not in self.events:
            raise errors.NotFound(TARGET, "expired")
        assert self.events[name]["metadata"]["namespace"] == namespace
        self.events[name] |= patch
        return self.events[name]

    def _write(self) -> None:
        self.writes += 1
        if self.failures:
            raise self.failures.pop(0)


@asynccontextmanager
async def recording() -> AsyncIterator[tuple[Recorder, EventApi]]:
    api = EventApi()
    start = datetime(2026, 11, 21, tzinfo=UTC)
    recorder = Recorder(
        cast("KubeClient", api),
        component="slurm-operator",
        instance="pod-1",
        clock=now,
        now=lambda: start + timedelta(seconds=now()),
    )
    task = asyncio.create_task(recorder.run())
    yield recorder, api
    task.cancel()
    await asyncio.wait([task])


def test_an_event_names_its_object_and_who_says_it() -> None:
    async def body() -> None:
        async with recording() as (recorder, api):
            recorder.warning(NODESET, "SlurmUnreachable", "connection refused")
            await asyncio.sleep(1)
            [event] = api.events.values()
            assert event["metadata"]["name"].startswith("compute.")
            del event["metadata"]
            assert event == {
                "apiVersion": "v1",
                "kind": "Event",
                "involvedObject": {
                    "apiVersion": "slinky.slurm.net/v1alpha1",
                    "kind": "NodeSet",
                    "namespace": "hpc",
                    "name": "compute",
                    "uid": "u1",
                    "resourceVersion": "5",
                },
                "type": "Warning",
                "reason": "SlurmUnreachable",
                "message": "connection refused",
                "count": 1,
                "firstTimestamp": "2026-11-21T00:16:40Z",
                "lastTimestamp": "2026-11-21T00:16:40Z",
                "source": {"component": "slurm-operator"},
                "reportingComponent": "slurm-operator",
                "reportingInstance": "pod-1",
            }

    run_virtually(body())


def test_the_log_names_the_object_of_an_event(caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.setFormatter(TextFormatter())

    async def main() -> None:
        async with recording() as (recorder, _):
            recorder.warning(NODESET, "Full", "no room")
            recorder.warning(NODE, "Full", "no room")

    with caplog.at_level(logging.INFO):
        run_virtually(main())
    assert [line.partition("events ")[2] for line in caplog.text.splitlines() if "no room" in line] == [
        "NodeSet hpc/compute: Full: no room",
        "Node n1: Full: no room",
    ]


def test_the_same_again_raises_a_count_with_few_writes() -> None:
    async def body() -> None:
        async with recording() as (recorder, api):
            for _ in range(600):
                recorder.normal(NODESET, "Draining", "node compute-3 runs job 7")
                await asyncio.sleep(1)
            await asyncio.sleep(60)
            [event] = api.events.values()
            assert event["count"] == 600
            assert event["lastTimestamp"] == "2026-11-21T00:26:39Z"
            assert api.writes <= 25

    run_virtually(body())


def test_many_words_for_one_reason_are_combined() -> None:
    async def body() -> None:
        async with recording() as (recorder, api):
            for number in range(500):
                recorder.normal(NODESET, "Victim", f"node compute-{number}")
            await asyncio.sleep(60)
            assert len(api.events) == COMBINE_AFTER + 1
            last = list(api.events.values())[-1]
            assert last["message"] == "(combined from similar events): node compute-499"
            assert last["count"] == 490

    run_virtually(body())


def test_one_object_cannot_flood_but_recovers() -> None:
    async def body() -> None:
        async with recording() as (recorder, api):
            for number in range(100):
                recorder.normal(NODESET, f"Reason{number}", "words")
            recorder.normal(NODE, "Other", "words")
            await asyncio.sleep(60)
            assert len(api.events) == BURST + 1
            assert recorder.dropped == 100 - BURST
            recorder.normal(NODESET, "Later", "words")
            await asyncio.sleep(1)
            assert len(api.events) == BURST + 2

    run_virtually(body())


def test_events_on_cluster_scoped_objects_are_where_kubectl_looks() -> None:
    async def body() -> None:
        async with recording() as (recorder, api):
            recorder.normal(NODE, "Cordoned", "x" * 5000)
            await asyncio.sleep(1)
            [event] = api.events.values()
            assert event["metadata"]["namespace"] == "default"
            assert len(event["message"]) == 1024

    run_virtually(body())


def test_an_expired_event_is_made_anew() -> None:
    async def body() -> None:
        async with recording() as (recorder, api):
            recorder.normal(NODESET, "Draining", "words")
            await asyncio.sleep(3600)
            api.events.clear()
            recorder.normal(NODESET, "Draining", "words")
            await asyncio.sleep(60)
            [event] = api.events.values()
            assert event["count"] == 2

    run_virtually(body())


@pytest.mark.parametrize(
    ("failure", "arrives"),
    [
        (errors.Unavailable(TARGET, "scripted"), True),
        (errors.Fenced(TARGET, "scripted"), True),
        (errors.TooManyRequests(TARGET, "scripted", retry_after=5), True),
        (errors.AlreadyExists(TARGET, "scripted"), None),
        (errors.Forbidden(TARGET, "namespace is being terminated"), False),
    ],
)
def test_failures_pass_or_end_in_the_log_and_never_reach_the_caller(
    failure: errors.KubeError, arrives: bool | None
) -> None:
    async def body() -> None:
        async with recording() as (recorder, api):
            api.failures.append(failure)
            recorder.normal(NODESET, "Draining", "words")
            recorder.normal({"kind": "broken"}, "Draining", "words")
            await asyncio.sleep(60)
            assert recorder.dropped == (1 if arrives is False else 0)
            assert len(api.events) == (1 if arrives else 0)

    run_virtually(body())


def test_an_api_server_that_stays_away_costs_an_event_and_no_more() -> None:
    async def body() -> None:
        async with recording() as (recorder, api):
            api.failures.extend(errors.Unavailable(TARGET, "scripted") for _ in range(4))
            recorder.normal(NODESET, "Draining", "words")
            await asyncio.sleep(600)
            assert (api.writes, recorder.dropped) == (4, 1)
            recorder.normal(NODESET, "Draining", "words")
            await recorder.flush()
            [event] = api.events.values()
            assert event["count"] == 2

    run_virtually(body())


def test_the_last_events_of_a_process_are_written_side_by_side() -> None:
    async def body() -> None:
        async with recording() as (recorder, api):
            under_way = most = 0
            create = api.create

            async def slow(_: object, body: Object) -> Object:
                nonlocal under_way, most
                under_way += 1
                most = max(most, under_way)
                await asyncio.sleep(1)
                under_way -= 1
                return await create(_, body)

            api.create = slow  # type: ignore[method-assign]
            for number in range(40):
                nodeset = {**NODESET, "metadata": {**NODESET["metadata"], "uid": f"u{number}"}}  # type: ignore[dict-item]
                recorder.normal(nodeset, "Draining", "words")
            await recorder.flush()
            assert len(api.events) == 40
            # The task that writes all along takes part.
            assert AT_ONCE <= most <= 2 * AT_ONCE

    run_virtually(body())


def test_an_event_of_another_namespace_does_not_wait_for_thousands() -> None:
    async def body() -> None:
        async with recording() as (recorder, api):
            create = api.create
            written: list[str] = []

            async def slow(_: object, body: Object) -> Object:
                await asyncio.sleep(1)
                written.append(body["metadata"]["namespace"])
                return await create(_, body)

            api.create = slow  # type: ignore[method-assign]
            for number in range(1000):
                recorder.normal(_of("many", f"u{number}"), "Draining", "words")
            await asyncio.sleep(0.5)
            before = len(written)
            for namespace in ("one", "two"):
                recorder.normal(_of(namespace, namespace), "Draining", "words")
            await asyncio.sleep(1000)
            assert len(written) == 1002
            # Those that are under way are not interrupted.
            assert max(written.index("one"), written.index("two")) - before < IN_A_ROW + 3 * AT_ONCE

    run_virtually(body())


def test_an_event_is_still_known_after_thousands_of_another_namespace() -> None:
    async def body() -> None:
        async with recording() as (recorder, api):
            recorder.warning(_of("quiet", "q"), "SubmissionRefused", "over the limit")
            for number in range(REMEMBERED + 10):
                recorder.warning(_of("loud", f"l-{number}"), "SubmissionRefused", "over the limit")
            recorder.warning(_of("quiet", "q"), "SubmissionRefused", "over the limit")
            await recorder.flush()
            (event,) = [one for one in api.events.values() if one["metadata"]["namespace"] == "quiet"]
            assert event["count"] == 2

    run_virtually(body())


def _of(namespace: str, uid: str) -> Object:
    return {**NODESET, "metadata": {"name": "compute", "namespace": namespace, "uid": uid, "resourceVersion": "5"}}


async def test_a_text_of_others_prints_and_keeps_its_lines() -> None:
    async with recording() as (recorder, api):
        recorder.warning(NODESET, "Refused", "Slurm says: a\nWarning  Forged\x1b[2J\u202e" + "\x9b" * 2000)
        await recorder.flush()
        (event,) = api.events.values()
    first, second = event["message"].split("\n")
    assert first == "Slurm says: a"
    assert second.startswith("Warning  Forged\\x1b[2J\\u202e")
    assert second.isprintable()
    assert len(event["message"]) <= 1024


def test_a_long_message_is_cut_before_it_is_kept_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        async with recording() as (recorder, api):
            with caplog.at_level(logging.DEBUG):
                for number in range(BURST + 2):
                    recorder.warning(NODESET, "NodesOutOfService", f"{number} " + "x" * 1_000_000)
            await asyncio.sleep(1)
            assert {len(event["message"]) for event in api.events.values()} == {LONGEST_MESSAGE}
            kept = [*recorder._budgets.get("hpc", "u1").messages.values()]  # type: ignore[union-attr]
            assert max(len(one) for _, messages in kept for one in messages) == LONGEST_MESSAGE
            assert max(len(record.getMessage()) for record in caplog.records) < LONGEST_MESSAGE + 200

    run_virtually(body())
