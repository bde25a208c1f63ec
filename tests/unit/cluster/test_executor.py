"""What is carried out of a plan that is repeated at once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import EmitEvent, EndPreflight
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.executor import act
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.memory.rollout import Outcome, Verdict
from slinky_operator.kube.events import EventType
from slinky_operator.metrics.changes import Changes
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
