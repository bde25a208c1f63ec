"""Mutants that confuse slots and owners: names, Nodes, claims, features, owner references."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset import controller
from slinky_operator.nodeset.model import claims
from slinky_operator.nodeset.model.actions import AddFinalizer
from slinky_operator.nodeset.model.claims import Retention
from slinky_operator.nodeset.model.pods import guard, pod_facts, scheduling
from slinky_operator.nodeset.model.pods.scheduling import Fit
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.placement import claim_retention, creation, layout
from slinky_operator.nodeset.planning import plan, survey
from slinky_operator.nodeset.slurm_nodes import kubernetes_features, topology
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.kubernetes_features import Traits
from slurm_client.models import Node

_SETTLE = claim_retention.settle


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

    patch.setattr(survey, "lay_out", lay_out)


def cordoned_hosts_filled(patch: pytest.MonkeyPatch) -> None:
    """A cordon keeps no pod away."""
    real = scheduling.fit
    patch.setattr(scheduling, "fit", lambda spec, host: Fit.RUN if real(spec, host) is not Fit.NO else Fit.NO)


def limit_ignored(patch: pytest.MonkeyPatch) -> None:
    """Every matching Node gets a pod, whatever number was asked for."""
    real = layout.lay_out

    def lay_out(snapshot: Any, live: Any) -> layout.Layout:
        found = real(snapshot, live)
        return dataclasses.replace(found, missing=len(found.free)) if snapshot.hosts and found.free else found

    patch.setattr(survey, "lay_out", lay_out)


def claims_of_replaced_pods_deleted(patch: pytest.MonkeyPatch) -> None:
    """A claim goes with its pod, whatever the pod went for."""

    def settle(snapshot: Snapshot, found: layout.Layout, live: Any, causes: Any) -> claim_retention.Keeping:
        # As if every pod that goes went for good, and none would come back.
        causes = {name: frozenset({Cause.SCALE_IN}) for name in causes}
        return _SETTLE(snapshot, dataclasses.replace(found, missing=0, waiting=frozenset()), live, causes)

    patch.setattr(claim_retention, "settle", settle)


def foreign_claims_used(patch: pytest.MonkeyPatch) -> None:
    """A claim of the right name is used, no matter who made it."""
    patch.setattr(claims, "is_ours", lambda nodeset, obj: True)


def claims_always_deleted(patch: pytest.MonkeyPatch) -> None:
    """Claims go with a scale-in whatever the spec says."""
    patch.setattr(claim_retention, "policy", lambda nodeset: Retention.DELETE)


def kept_claims_deleted(patch: pytest.MonkeyPatch) -> None:
    """A claim that an earlier scale-in has kept goes when the spec says so now."""

    def settle(snapshot: Snapshot, *rest: Any) -> claim_retention.Keeping:
        found = _SETTLE(snapshot, *rest)
        if claim_retention.policy(snapshot.nodeset) is not Retention.DELETE:
            return found
        marks = tuple((one, Retention.DELETE if wanted is not None else None) for one, wanted in found.marks)
        known = {one.uid for one, _ in found.marks}
        kept = [one for one in snapshot.claims if one.retention not in {None, Retention.DELETE}]
        return dataclasses.replace(
            found, marks=(*marks, *((one, Retention.DELETE) for one in kept if one.uid not in known))
        )

    patch.setattr(claim_retention, "settle", settle)


def marks_outlive_a_change_of_mind(patch: pytest.MonkeyPatch) -> None:
    """A claim that was to go still goes when the spec said meanwhile that it is to stay."""
    patch.setattr(claims, "stricter", lambda one, other: one)


def marks_outlive_a_scale_out(patch: pytest.MonkeyPatch) -> None:
    """A claim that was to go says so still when its pod stays, or has come back."""

    def settle(*given: Any) -> claim_retention.Keeping:
        found = _SETTLE(*given)
        return dataclasses.replace(found, marks=tuple(one for one in found.marks if one[1] is not None))

    patch.setattr(claim_retention, "settle", settle)


def kept_claims_deleted_with_the_nodeset(patch: pytest.MonkeyPatch) -> None:
    """A NodeSet takes all claims of its name with it, those too that had been kept from every deletion."""

    def goes(nodeset: NodeSet, claim: claims.VolumeClaim) -> bool:
        return nodeset.spec.persistent_volume_claim_retention_policy.when_deleted == "Delete"

    patch.setattr(claim_retention, "goes_with_nodeset", goes)


def other_features_dropped(patch: pytest.MonkeyPatch) -> None:
    """A node has the features of its Node and no others."""
    real = kubernetes_features.missing

    def missing(node: Node, host: Any) -> kubernetes_features.Change | None:
        change = real(node, host)
        if change is None or change.features is None:
            return change
        ours = tuple(word for word in change.features if word.startswith(kubernetes_features.PREFIX))
        return kubernetes_features.Change(ours, ours, change.topology)

    patch.setattr(kubernetes_features, "missing", missing)


def features_written_once(patch: pytest.MonkeyPatch) -> None:
    """A node that has features of its Node keeps them, whatever the Node says later."""
    real = kubernetes_features.missing
    patch.setattr(
        kubernetes_features, "missing", lambda node, host: None if len(node.features) > 1 else real(node, host)
    )


def _placed(patch: pytest.MonkeyPatch, change: Callable[[Any, Any, Traits], str | None]) -> None:
    real = kubernetes_features.traits

    def traits(host: Any, wanted: Any) -> Traits:
        found = real(host, wanted)
        return dataclasses.replace(found, topology=change(host, wanted, found))

    patch.setattr(kubernetes_features, "traits", traits)


def places_outlive_their_labels(patch: pytest.MonkeyPatch) -> None:
    """A node whose Node has lost its labels stays where it was."""
    _placed(patch, lambda _host, _wanted, found: found.topology or None)


def places_taken_unasked(patch: pytest.MonkeyPatch) -> None:
    """A Node that says nothing of its place takes away the one that somebody has given to its nodes."""
    _placed(patch, lambda _host, _wanted, found: found.topology or "")


def annotated_places_overlooked(patch: pytest.MonkeyPatch) -> None:
    """Labels count, whatever the annotation of the Node says."""

    def change(host: Any, wanted: Any, found: Traits) -> str | None:
        return topology.place(host.labels, wanted) if wanted else found.topology

    _placed(patch, change)


def lost_guard_overlooked(patch: pytest.MonkeyPatch) -> None:
    """Pods that have lost their guard stay without it."""
    patch.setattr(pod_facts, "unguarded", lambda _pods, _guard_uid: ())


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

    def late(seen: survey.Survey) -> plan.Plan:
        snapshot = seen.snapshot
        metadata = snapshot.nodeset.metadata
        if snapshot.nodeset.deleting or labels.FINALIZER_NODESET_DRAIN in metadata.finalizers:
            return real(seen)
        kept = metadata.model_copy(update={"finalizers": (labels.FINALIZER_NODESET_DRAIN,)})
        other = snapshot.nodeset.model_copy(update={"metadata": kept})
        made = real(survey.survey(dataclasses.replace(snapshot, nodeset=other), seen.now))
        return dataclasses.replace(made, actions=(*made.actions, AddFinalizer()))

    patch.setattr(controller, "plan", late)
