"""Mutants that update or repair too much at once, or what is held back, or lose revisions."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from datetime import datetime
from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.disruption import availability, maintenance_window, repairs, rolling_update
from slinky_operator.nodeset.drain import drain_causes
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.revisions import revision_records
from slinky_operator.nodeset.model.snapshot import Snapshot


def budget_ignored(patch: pytest.MonkeyPatch) -> None:
    """An update takes all pods at once."""

    def choose(outdated: Any, **rest: Any) -> frozenset[str]:
        return frozenset(pod.name for pod in outdated)

    patch.setattr(rolling_update, "choose", choose)


def windows_overlooked(patch: pytest.MonkeyPatch) -> None:
    """Updates do not wait for maintenance."""
    patch.setattr(maintenance_window, "wait_of", lambda *_: "")


def windows_for_ever(patch: pytest.MonkeyPatch) -> None:
    """An update that waits for maintenance waits while it is on, too."""

    def wait_of(cluster: Cluster, nodeset: str, _now: datetime) -> str:
        return "it begins" if cluster.spec.maintenance.holding(nodeset) else ""

    patch.setattr(maintenance_window, "wait_of", wait_of)


def one_more_than_the_budget(patch: pytest.MonkeyPatch) -> None:
    """An update takes one more than it may."""
    real = rolling_update.budget
    patch.setattr(rolling_update, "budget", lambda nodeset, desired: real(nodeset, desired) + 1)


def broken_pods_not_counted(patch: pytest.MonkeyPatch) -> None:
    """New pods that do not come up take nothing from the budget."""
    real = rolling_update.choose

    def choose(outdated: Any, *, unavailable: int, begun: Collection[str], **rest: Any) -> frozenset[str]:
        return real(outdated, unavailable=len(begun), begun=begun, **rest)

    patch.setattr(rolling_update, "choose", choose)


def under_way_overlooked(patch: pytest.MonkeyPatch) -> None:
    """A pod that does not answer for a moment is replaced beside one that has yet to come up."""
    real = rolling_update.choose
    patch.setattr(rolling_update, "choose", lambda outdated, **rest: real(outdated, **{**rest, "under_way": 0}))


def cordoned_pods_overlooked(patch: pytest.MonkeyPatch) -> None:
    """A pod that is cordoned before it has come up leaves its place in the budget to others."""
    real = availability.may_come_up

    def may_come_up(member: Member, snapshot: Snapshot, now: datetime) -> bool:
        return not drain_causes.cordons(snapshot, member) and real(member, snapshot, now)

    patch.setattr(drain_causes, "may_come_up", may_come_up)


def mended_nodes_count_as_broken(patch: pytest.MonkeyPatch) -> None:
    """A node that is to be given back by Slurm's drain is replaced as if it would not serve."""
    patch.setattr(drain_causes, "may_serve", availability.is_ready)


def impatient(patch: pytest.MonkeyPatch) -> None:
    """A pod that is Ready counts at once."""
    patch.setattr(availability, "has_come_up", lambda member, snapshot, now: availability.is_ready(member))


def partition_ignored(patch: pytest.MonkeyPatch) -> None:
    """An update reaches the pods below the partition."""
    patch.setattr(revision_records, "target", lambda place, nodeset, revision: revision.hash)


def on_delete_ignored(patch: pytest.MonkeyPatch) -> None:
    """An update takes pods that somebody is to delete."""
    real = rolling_update.outdated

    def outdated(pods: Any, nodeset: NodeSet, *rest: Any) -> list[Member]:
        strategy = nodeset.spec.update_strategy.model_copy(update={"type": "RollingUpdate"})
        spec = nodeset.spec.model_copy(update={"update_strategy": strategy})
        return real(pods, nodeset.model_copy(update={"spec": spec}), *rest)

    patch.setattr(rolling_update, "outdated", outdated)


def carried_revisions_dropped(patch: pytest.MonkeyPatch) -> None:
    """Revisions go although pods carry them."""
    real = revision_records.upkeep

    def upkeep(
        revision: str, recorded: Any, *, current: str, carried: Collection[str], limit: int
    ) -> revision_records.RevisionChanges:
        return real(revision, recorded, current=revision, carried=(), limit=limit)

    patch.setattr(revision_records, "upkeep", upkeep)


def revision_not_recorded(patch: pytest.MonkeyPatch) -> None:
    """Pods are made of a revision that is written down nowhere."""
    real = revision_records.upkeep

    def upkeep(revision: str, recorded: Any, **rest: Any) -> revision_records.RevisionChanges:
        return dataclasses.replace(real(revision, recorded, **rest), record=None)

    patch.setattr(revision_records, "upkeep", upkeep)


def repairs_without_budget(patch: pytest.MonkeyPatch) -> None:
    """Every pod that does not register in time is recreated at once."""

    def choose(snapshot: Any, waits: Collection[repairs.UnregisteredPod], live: Any, **rest: Any) -> frozenset[str]:
        return frozenset(one.pod.name for one in waits if one.is_over(rest["now"]))

    patch.setattr(repairs, "choose", choose)


def forgotten_pods_repaired(patch: pytest.MonkeyPatch) -> None:
    """A pod that had registered is recreated when Slurm does not know it, whatever it holds."""
    meant, why_kept = repairs.is_repair_candidate, pod_state.why_kept

    def unregistered(member: Member) -> Member:
        return dataclasses.replace(member, pod=dataclasses.replace(member.pod, registered=False))

    def kept(member: Member, now: datetime) -> str | None:
        jobs = () if member.record is None else member.jobs
        return why_kept(dataclasses.replace(unregistered(member), jobs=jobs), now)

    patch.setattr(repairs, "is_repair_candidate", lambda member: meant(unregistered(member)))
    patch.setattr(repairs.UnregisteredPod, "is_over", lambda self, now: self.until <= now)
    patch.setattr(pod_state, "why_kept", kept)
