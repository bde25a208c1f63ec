"""A drain and what ends it are counted once Slurm or the API server has done it, with Slurm's time of the drain."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry

from slinky_operator.kube.cache.expectations import Expectations
from slinky_operator.kube.cache.store import Store
from slinky_operator.metrics.changes import Changes
from slinky_operator.nodeset.execute import delete_pods, slurm_writes
from slinky_operator.nodeset.execute.context import PassOutcome
from slinky_operator.nodeset.model.actions import Drain
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slurm_client import errors
from slurm_client.models import Node
from slurm_client.models.node import NodeState
from tests.unit.nodeset.builders import ANSWERS

OWNER = "ns/a"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
BEGAN = NOW - timedelta(seconds=90)
REASON = drains.reason([Cause.SCALE_IN], OWNER)
POD = Pod("a-0", "a-0", "u", registered=True, slurmd=Slurmd.RUNNING)


class Slurm:
    """One node, in the state that a test sets."""

    contact = ANSWERS

    def __init__(self, *, drained: bool, fails: bool = False) -> None:
        self.client = self
        self.fails = fails
        self.words = ["IDLE", "DRAIN", "DYNAMIC_NORM"] if drained else ["IDLE", "DYNAMIC_NORM"]

    async def refresh(self, names: Any) -> dict[str, Node]:
        given: dict[str, Any] = {"reason": REASON, "reason_changed_at": BEGAN} if "DRAIN" in self.words else {}
        node = Node(name="a-0", extra=OWNER, instance_id="u", state=NodeState.from_words(self.words), **given)
        return dict.fromkeys(names, node)

    async def jobs_with_nodes(self) -> list[Any]:
        return []

    async def drain_nodes(self, names: Any, reason: str) -> None:
        if self.fails:
            raise errors.Timeout("no answer")
        self.words.append("DRAIN")

    async def undrain_nodes(self, names: Any) -> None:
        self.words.remove("DRAIN")


class Kube:
    async def get(self, *given: Any) -> Any:
        return {"metadata": {"uid": "set"}}

    async def delete(self, *given: Any, **named: Any) -> None:
        """Delete whatever it is."""


def context_with(slurm: Slurm, registry: CollectorRegistry) -> Any:
    return SimpleNamespace(
        reach=lambda: slurm,
        kube=Kube(),
        owner=OWNER,
        nodeset=SimpleNamespace(uid="set", name="a", namespace="ns"),
        expectations=Expectations(Store()),
        outcome=PassOutcome(),
        changes=Changes(registry),
        say=lambda *words: None,
        now=lambda: NOW,
        clock=lambda: 0.0,
        unseen=False,
    )


def counted(registry: CollectorRegistry) -> dict[str, float]:
    """Everything that is not zero."""
    return {
        f"{sample.name.removeprefix('slurm_operator_')} {' '.join(sample.labels.values())}".strip(): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.value and sample.name.endswith(("_total", "_sum"))
    }


async def test_a_drain_is_counted_once() -> None:
    registry, slurm = CollectorRegistry(), Slurm(drained=False)
    context = context_with(slurm, registry)
    drain = Drain(("a-0",), REASON, frozenset({Cause.SCALE_IN}))
    for _ in range(2):
        await slurm_writes.drain_nodes(context, drain)
    assert counted(registry) == {"drains_started_total scale-in": 1}


async def test_a_drain_without_an_answer_is_not_counted() -> None:
    registry = CollectorRegistry()
    context = context_with(Slurm(drained=False, fails=True), registry)
    try:
        await slurm_writes.drain_nodes(context, Drain(("a-0",), REASON, frozenset({Cause.SCALE_IN})))
    except errors.Timeout:
        assert counted(registry) == {}
    else:
        raise AssertionError("Slurm's failure has been swallowed")


async def test_an_undrain_ends_a_drain_and_so_does_a_deletion() -> None:
    registry, slurm = CollectorRegistry(), Slurm(drained=True)
    await slurm_writes.undrain_nodes(context_with(slurm, registry), ["a-0"])
    assert counted(registry) == {"drain_duration_seconds_sum scale-in undrained": 90}

    registry = CollectorRegistry()
    await delete_pods.delete_checked(context_with(Slurm(drained=True), registry), [POD])
    assert counted(registry) == {
        "pods_deleted_total scale-in": 1,
        "drain_duration_seconds_sum scale-in deleted": 90,
    }


async def test_a_pod_that_is_kept_is_not_counted() -> None:
    registry = CollectorRegistry()
    context = context_with(Slurm(drained=False), registry)
    await delete_pods.delete_checked(context, [POD])
    assert context.outcome.kept
    assert counted(registry) == {}


async def test_pods_that_are_given_up_or_never_ran_have_causes_of_their_own() -> None:
    registry = CollectorRegistry()
    context = context_with(Slurm(drained=True), registry)
    await delete_pods.give_up(context, [POD], "")
    await delete_pods.delete_idle(context, [replace(POD, registered=False, slurmd=Slurmd.NEVER)])
    await delete_pods.delete_overdue(context, [POD])
    assert counted(registry) == {
        "pods_deleted_total given-up": 1,
        "pods_deleted_total never-started": 1,
        "pods_deleted_total drain-timeout": 1,
    }
