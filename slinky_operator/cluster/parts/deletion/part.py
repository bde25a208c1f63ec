"""The part about the deletion: sets the finalizer, plans the teardown, and shows what that waits for. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from typing_extensions import override

from slinky_api import labels
from slinky_api.conditions import ClusterCondition, Reason, find
from slinky_operator.cluster.actions import Action, SetFinalizer, TearDown
from slinky_operator.cluster.daemons.claim_templates import is_generated
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.part import Part, Shown
from slinky_operator.cluster.parts import daemons
from slinky_operator.cluster.parts.deletion.jobs_left import jobs_left
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.kube.resources import (
    CLUSTERS,
    CONFIGMAPS,
    DEPLOYMENTS,
    LOGINSETS,
    PODDISRUPTIONBUDGETS,
    PODS,
    SECRETS,
    SERVICES,
    STATEFULSETS,
    TOKENS,
)
from slinky_operator.reconcile.text import named
from slinky_operator.slurm import naming

LOOK_AGAIN_FOR_PODS: Final = 10.0
"""Seconds until the API server is queried again for slurmd pods of a Cluster that is being deleted."""

ORDER: Final = (LOGINSETS, DEPLOYMENTS, STATEFULSETS, SERVICES, PODDISRUPTIONBUDGETS, CONFIGMAPS, TOKENS)
"""In which order children are deleted."""


def set_finalizer(state: PassState) -> list[Action]:
    """Add the finalizer to a Cluster before anything is created for it."""
    cluster = state.snapshot.cluster
    if labels.FINALIZER_CLUSTER in cluster.metadata.finalizers or cluster.deleting:
        return []
    return [SetFinalizer(CLUSTERS, state.snapshot.raw, labels.FINALIZER_CLUSTER, present=True)]


def slurmd_pods_left(snapshot: Snapshot, now: float) -> tuple[str, ...]:
    """Pods of NodeSets: those in the cache, or that the API server has shown if labels are lost."""
    names, at = snapshot.memory.slurmd_pods_left
    return snapshot.pods.slurmd_names or (names if now - at < LOOK_AGAIN_FOR_PODS else ())


def tear_down(snapshot: Snapshot) -> TearDown:
    """Delete everything: no slurmd pod is left, and no job outside Kubernetes."""
    place = {resource.kind: (number, resource) for number, resource in enumerate(ORDER)}
    children = [
        (place[kind][1], name, obj["metadata"]["uid"])
        for (kind, name), obj in sorted(snapshot.children.items(), key=lambda item: (place[item[0][0]][0], item[0]))
    ]
    # The user's keys stay; so do claims and generated keys, if the spec retains them.
    generated = set(naming.generated_secrets(snapshot.cluster.name))
    if snapshot.cluster.spec.auth.keys_when_deleted == "Retain":
        generated -= set(naming.key_secrets(snapshot.cluster.name))
    secrets = [
        (SECRETS, source.name, source.object_uid)
        for source in snapshot.sources.values()
        # The label alone is not enough: a user's key, which the spec names, may have been given it.
        if source.exists
        and source.cluster_uid
        and source.cluster_name == snapshot.cluster.name
        and source.name in generated
    ]
    pods = [(PODS, name, pod["metadata"]["uid"]) for name, pod in sorted(snapshot.pods.preflights.items())]
    return TearDown((*pods, *children, *secrets), _claims(snapshot))


def _claims(snapshot: Snapshot) -> tuple[tuple[str, Mapping[str, str]], ...]:
    """Names of claims that go with the Cluster, and labels that they must have.

    They follow from the spec alone: a repeated pass no longer finds the StatefulSets.
    """
    cluster = snapshot.cluster
    return tuple(
        (daemon.claim_name(cluster), naming.selector_labels(cluster, daemon.component))
        for daemon in daemons.wanted(cluster)
        if (persistence := daemon.persistence(cluster)) is not None
        and is_generated(persistence)
        and persistence.when_deleted == "Delete"
    )


class DeletionPart(Part):
    """The deletion of a Cluster."""

    name = "deletion"
    condition = ClusterCondition.DELETING

    @override
    def shown(self, state: PassState) -> Shown | None:
        cluster = state.snapshot.cluster
        if not cluster.deleting:
            return None
        if not is_applied_while_deleting(state.snapshot):
            return "True", _reason(state), _waits_for(state)
        wait = f"kubectl wait --for=delete clusters.slinky.slurm.net/{cluster.name} --namespace {cluster.namespace}"
        words = (
            f"{_waits_for(state)}. The Cluster was changed after its deletion, and goes with that change. Wait until "
            f"it has gone ({wait}), then apply it again"
        )
        return "True", Reason.APPLIED_WHILE_DELETING, words

    @override
    def ongoing(self, state: PassState) -> Iterator[tuple[Reason, str]]:
        if state.snapshot.cluster.deleting:
            yield _reason(state), _waits_for(state)


def is_applied_while_deleting(snapshot: Snapshot) -> bool:
    """Whether a Cluster that is being deleted was changed after that: the change goes with it."""
    before = find(snapshot.cluster.status.conditions, ClusterCondition.DELETING)
    if not snapshot.cluster.deleting or before is None:
        return False
    was_changed = (before.observed_generation or 0) < snapshot.cluster.metadata.generation
    return was_changed or before.reason == Reason.APPLIED_WHILE_DELETING


def _reason(state: PassState) -> Reason:
    return Reason.DELETING if slurmd_pods_left(state.snapshot, state.now) else Reason.NODES_IN_USE


def _waits_for(state: PassState) -> str:
    pods = slurmd_pods_left(state.snapshot, state.now)
    return f"slurmd pods are left: {named(pods)}" if pods else jobs_left(state.snapshot, state.now)


DELETION: Final = DeletionPart()
