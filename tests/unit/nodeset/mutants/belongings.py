"""Mutants that mistake where pods stand and what belongs to them: names, Nodes, claims, features, owners."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.nodeset import ClaimRetention, NodeSet
from slinky_operator.nodeset import (
    claims,
    controller,
    creation,
    guard,
    layout,
    matching,
    plan,
    pod_steps,
    traits,
)
from slinky_operator.nodeset.actions import AddFinalizer
from slinky_operator.nodeset.matching import Fit
from slinky_operator.nodeset.snapshot import Snapshot
from slurm_client.models import Node


def neighbours_overlooked(patch: pytest.MonkeyPatch) -> None:
    """The name of another NodeSet's node is taken."""
    patch.setattr(creation, "_whose", lambda place, snapshot: None)


def padding_overlooked(patch: pytest.MonkeyPatch) -> None:
    """An ordinal is another one when it is written with other digits."""
    real = creation.choose

    def choose(snapshot: Snapshot, *rest: Any) -> creation.Creation:
        pods = tuple(dataclasses.replace(pod, ordinal=None) if pod.deleting else pod for pod in snapshot.pods)
        return real(dataclasses.replace(snapshot, pods=pods), *rest)

    patch.setattr(creation, "choose", choose)


def mismatch_overlooked(patch: pytest.MonkeyPatch) -> None:
    """A pod stays on its Node whatever becomes of it."""
    real = layout.lay_out

    def lay_out(snapshot: Any, live: Any) -> layout.Layout:
        found = real(snapshot, live)
        return dataclasses.replace(found, misplaced=(), staying=(*found.staying, *found.misplaced))

    patch.setattr(plan, "lay_out", lay_out)


def cordoned_hosts_filled(patch: pytest.MonkeyPatch) -> None:
    """A cordon keeps no pod away."""
    real = matching.fit
    patch.setattr(matching, "fit", lambda spec, host: Fit.RUN if real(spec, host) is not Fit.NO else Fit.NO)


def limit_ignored(patch: pytest.MonkeyPatch) -> None:
    """Every matching Node gets a pod, whatever number was asked for."""
    real = layout.lay_out

    def lay_out(snapshot: Any, live: Any) -> layout.Layout:
        found = real(snapshot, live)
        return dataclasses.replace(found, missing=len(found.free)) if snapshot.hosts and found.free else found

    patch.setattr(plan, "lay_out", lay_out)


def claims_of_replaced_pods_deleted(patch: pytest.MonkeyPatch) -> None:
    """A claim goes with its pod, whatever the pod went for."""
    real = pod_steps.claims_to_delete

    def to_delete(snapshot: Snapshot, found: layout.Layout) -> Any:
        # As if no pod were missing, and none would come back.
        return real(snapshot, dataclasses.replace(found, missing=0, waiting=frozenset()))

    patch.setattr(pod_steps, "claims_to_delete", to_delete)


def foreign_claims_used(patch: pytest.MonkeyPatch) -> None:
    """A claim of the right name is used whoever made it."""
    patch.setattr(claims, "is_ours", lambda nodeset, obj: True)


def claims_always_deleted(patch: pytest.MonkeyPatch) -> None:
    """Claims go with a scale-in whatever the spec says."""
    real = pod_steps.claims_to_delete
    policy = ClaimRetention(when_scaled="Delete")

    def to_delete(snapshot: Snapshot, *rest: Any) -> Any:
        nodeset = snapshot.nodeset
        spec = nodeset.spec.model_copy(update={"persistent_volume_claim_retention_policy": policy})
        other = nodeset.model_copy(update={"spec": spec})
        return real(dataclasses.replace(snapshot, nodeset=other), *rest)

    patch.setattr(pod_steps, "claims_to_delete", to_delete)


def other_features_dropped(patch: pytest.MonkeyPatch) -> None:
    """A node has the features of its Node and no others."""
    real = traits.missing

    def missing(node: Node, host: Any) -> traits.Change | None:
        change = real(node, host)
        if change is None or change.features is None:
            return change
        ours = tuple(word for word in change.features if word.startswith(traits.PREFIX))
        return traits.Change(ours, ours, change.topology)

    patch.setattr(traits, "missing", missing)


def features_written_once(patch: pytest.MonkeyPatch) -> None:
    """A node that has features of its Node keeps them, whatever the Node says later."""
    real = traits.missing
    patch.setattr(traits, "missing", lambda node, host: None if len(node.features) > 1 else real(node, host))


def lost_guard_overlooked(patch: pytest.MonkeyPatch) -> None:
    """Pods that have lost their guard stay without it."""
    patch.setattr(guard, "without", lambda _pods, _guard_uid: ())


def guard_of_the_nodeset(patch: pytest.MonkeyPatch) -> None:
    """The guard belongs to the NodeSet, and goes with it."""
    real = guard.build

    def build(nodeset: NodeSet) -> dict[str, Any]:
        made = real(nodeset)
        made["metadata"]["ownerReferences"] = guard.owners(nodeset, "")[:1]
        return made

    patch.setattr(guard, "build", build)


def finalizer_after_the_pods(patch: pytest.MonkeyPatch) -> None:
    """Pods are made before the NodeSet is kept until they are gone."""
    real = plan.plan

    def late(snapshot: Snapshot, now: datetime) -> plan.Plan:
        metadata = snapshot.nodeset.metadata
        if snapshot.nodeset.deleting or labels.FINALIZER_NODESET_DRAIN in metadata.finalizers:
            return real(snapshot, now)
        kept = metadata.model_copy(update={"finalizers": (labels.FINALIZER_NODESET_DRAIN,)})
        other = snapshot.nodeset.model_copy(update={"metadata": kept})
        made = real(dataclasses.replace(snapshot, nodeset=other), now)
        return dataclasses.replace(made, actions=(*made.actions, AddFinalizer()))

    patch.setattr(controller, "plan", late)
