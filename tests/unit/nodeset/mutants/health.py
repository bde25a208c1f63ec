"""Mutants that drain nodes for the health of their Kubernetes Nodes wrongly, or give them back wrongly."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api.v1alpha1.nodeset.health import Health
from slinky_operator.nodeset.health import choice, node_states, rules
from slinky_operator.nodeset.health.choice import HealthChoice
from slinky_operator.nodeset.health.rules import Verdict
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes import drains, registration


def budget_ignored(patch: pytest.MonkeyPatch) -> None:
    """A check that is wrong everywhere drains everything."""
    patch.setattr(Health, "budget", lambda self, desired: desired)


def drained_already_is_not_counted(patch: pytest.MonkeyPatch) -> None:
    """Each pass has the whole budget for itself."""
    real = choice.choose

    def choose(snapshot: Snapshot, *rest: Any) -> HealthChoice:
        found = real(snapshot, *rest)
        more = {one.pod: one.verdict.words for one in found.waiting[: found.budget]}
        return HealthChoice({**found.drained, **more}, wake_up=found.wake_up)

    patch.setattr(choice, "choose", choose)


def overlooked(patch: pytest.MonkeyPatch) -> None:
    """Conditions of Nodes mean nothing to Slurm."""
    patch.setattr(choice, "choose", lambda *_: HealthChoice())


def _judging(patch: pytest.MonkeyPatch, change: Any) -> None:
    real = rules.judge

    def judge(host: KubernetesNode, table: Any, clear_seconds: int, now: Any) -> Verdict:
        table, clear_seconds = change(table, clear_seconds)
        return real(host, table, clear_seconds, now)

    patch.setattr(rules, "judge", judge)


def too_early(patch: pytest.MonkeyPatch) -> None:
    """A condition counts at once."""
    _judging(
        patch,
        lambda table, clear: (
            {kind: rule.model_copy(update={"for_seconds": 0}) for kind, rule in table.items()},
            clear,
        ),
    )


def given_back_too_early(patch: pytest.MonkeyPatch) -> None:
    """A Node is well at once."""
    _judging(patch, lambda table, _clear: (table, 0))


def unknown_is_well(patch: pytest.MonkeyPatch) -> None:
    """A condition that nobody knows counts as one that does not match."""
    patch.setattr(rules, "UNKNOWN", "")


def lost_is_well(patch: pytest.MonkeyPatch) -> None:
    """A Node that is not known has no trouble."""
    patch.setattr(Snapshot, "host_of", lambda self, pod: self.hosts.get(pod.host, KubernetesNode(pod.host)))


def reason_never_written_again(patch: pytest.MonkeyPatch) -> None:
    """What was cordoned first is not told from what is drained for its health."""

    def needs_write(node: Any, causes: Any) -> bool:
        if not node.is_drain or registration.is_stale_drain(node):
            return True
        before = drains.causes_in(node)
        return drains.is_ours(node) and drains.TIMED.isdisjoint(causes) != drains.TIMED.isdisjoint(before)

    patch.setattr(drains, "needs_write", needs_write)


def emptiness_not_proven(patch: pytest.MonkeyPatch) -> None:
    """A pod says that a drained node is empty where its state shows no work."""
    patch.setattr(node_states, "_is_proven", lambda *_, **__: True)


def states_stay(patch: pytest.MonkeyPatch) -> None:
    """What a pod once says of its node it says for ever."""
    real = node_states.wanted

    def wanted(member: Any, **given: Any) -> Any:
        states = real(member, **given)
        return states if states is None else {**member.pod.node_states, **states}

    patch.setattr(node_states, "wanted", wanted)
