"""What is carried out of a plan that is repeated at once."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import EmitEvent, EndPreflight, Reload
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.daemons.volumes import ANNOTATION, STATE
from slinky_operator.cluster.executor import act
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.memory.rollout import Outcome, Verdict
from slinky_operator.cluster.parts.volumes.question import VolumesQuestion, room_of_state
from slinky_operator.kube.events import EventType
from slinky_operator.metrics.changes import Changes
from slinky_operator.slurm.pods.volume_room import Room, Volumes
from tests.unit.cluster.world import cluster_object


async def test_an_event_about_the_status_is_recorded_in_the_round_that_writes_it() -> None:
    recorded: list[str] = []
    recorder = SimpleNamespace(event=lambda obj, kind, reason, message: recorded.append(reason))
    context, raw = (
        cast("PassContext", SimpleNamespace(recorder=recorder, changes=Changes(), clock=lambda: 0.0)),
        cluster_object(),
    )
    cluster, memory = Cluster.parse(raw), Memory("cluster-uid")
    learned: Any = EndPreflight("one", Verdict(Outcome.PASSED, "", 0.0))
    ready = EmitEvent(raw, EventType.NORMAL, "Ready", "well", with_status=True)
    other = EmitEvent(raw, EventType.NORMAL, "KeyReplaced", "well")
    assert await act((learned, other, ready), cluster, memory, context) is True
    assert recorded == ["KeyReplaced"]
    assert await act((ready,), cluster, memory, context) is False
    assert recorded == ["KeyReplaced", "Ready"]


POD = {"metadata": {"name": "slurm-controller-0", "uid": "pod", "annotations": {ANNOTATION: STATE}}}


@pytest.mark.parametrize(("free", "held"), [(0, True), (50, True), (5_000, False)])
async def test_a_reconfigure_asks_what_room_the_state_has_and_waits_while_there_is_none(
    monkeypatch: pytest.MonkeyPatch, free: int, held: bool
) -> None:
    asked: list[str] = []

    async def ask(question: VolumesQuestion, *_: object) -> Volumes:
        asked.append(question.about)
        return Volumes("pod", 0.0, {STATE: Room(10_000, free, 0, 0)})

    monkeypatch.setattr(VolumesQuestion, "ask", ask)
    clients = SimpleNamespace(get=lambda _: None)
    context = cast("PassContext", SimpleNamespace(clients=clients, clock=lambda: 0.0))
    cluster, memory = Cluster.parse(cluster_object()), Memory("cluster-uid")
    # What was known before was another time.
    memory.answers.note(VolumesQuestion, Volumes("pod", 0.0, {STATE: Room(10_000, 9_000, 0, 0)}), "slurm-controller-0")
    action = Reload("pod", "1", {}, room=room_of_state(POD))
    assert await act((action,), cluster, memory, context)
    assert memory.rollout.loaded is not None
    assert ("the reconfigure waits for room" in memory.rollout.loaded.why) is held
    assert asked == ["slurm-controller-0"]
    # One that was sent is only checked.
    sent = replace(action, before=replace(memory.rollout.loaded, asked=7))
    assert await act((sent,), cluster, memory, context)
    assert memory.rollout.loaded.why == "there is no connection with Slurm"
    assert asked == ["slurm-controller-0"]


def test_where_no_agent_looks_at_the_state_nothing_is_asked() -> None:
    assert room_of_state({"metadata": {"name": "slurm-controller-0"}}) is None
