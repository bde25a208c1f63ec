"""What wakes a group of pods: its pods, its SlurmJobs, and Clusters that may place it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from slinky_operator.bridge.clusters import wants_bridge
from slinky_operator.bridge.device_claims import OF_CLAIM
from slinky_operator.bridge.pods.model import membership, slurmjobs
from slinky_operator.bridge.pods.model.membership import GroupKey
from slinky_operator.bridge.pods.observation import Singles
from slinky_operator.kube.cache.informer import Handler
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import BRIDGE_PODS, CLUSTERS, RESOURCECLAIMS, SLURMJOBS
from slinky_operator.reconcile.triggers import Subscribe, Triggers, is_same, written_by_users


class GroupTriggers:
    """Handlers of caches: each returns the keys of groups.

    Parameters
    ----------
    pods, jobs
        Caches of pods and SlurmJobs.
    singles
        Jobs whose pods are groups each.
    """

    def __init__(self, pods: Store, jobs: Store, singles: Singles) -> None:
        self._pods = pods
        self._jobs = jobs
        self._singles = singles

    def table(
        self, *others: Subscribe, seen: Handler, left_out: Handler | None = None, reads_claims: bool = False
    ) -> Triggers:
        """All handlers, by their source.

        Parameters
        ----------
        others
            Other sources of keys.
        seen
            What must see SlurmJobs first: own writes.
        left_out
            What must see pods for which there is no room.
        reads_claims
            Whether ResourceClaims are watched.
        """
        return Triggers(
            objects={
                BRIDGE_PODS: self.pod,
                SLURMJOBS: self.job,
                CLUSTERS: self.cluster,
                **({RESOURCECLAIMS: self.claim} if reads_claims else {}),
            },
            observers={SLURMJOBS: seen, **({BRIDGE_PODS: left_out} if left_out is not None else {})},
            others=others,
        )

    def pod(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of pods: their group, as they look and as they were placed."""
        if is_same(old, new, _state):
            return
        found: dict[Key, None] = {}
        for obj in (old, new):
            if obj is None:
                continue
            namespace = str(obj["metadata"].get("namespace") or "")
            found[namespace, str(self._singles.group_of(obj))] = None
            job = self._jobs.get(namespace, membership.placed_by(obj))
            placed = None if job is None else GroupKey.read(slurmjobs.members_of(job))
            if placed is not None:
                found[namespace, str(placed)] = None
        yield from found

    def job(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of SlurmJobs: the group that one is for."""
        if is_same(old, new, _of_interest):
            return
        found: dict[Key, None] = {}
        for obj in (old, new):
            group = None if obj is None else GroupKey.read(slurmjobs.members_of(obj))
            if obj is not None and group is not None:
                found[str(obj["metadata"].get("namespace") or ""), str(group)] = None
        yield from found

    def claim(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of ResourceClaims: groups of pods that wait and name it."""
        if is_same(old, new, _of_claim):
            return
        found: dict[Key, None] = {}
        for obj in (old, new):
            about = obj["metadata"] if obj is not None else {}
            for pod in self._pods.find(OF_CLAIM, f"{about.get('namespace')}/{about.get('name')}"):
                if membership.is_gated(pod):
                    found[str(about.get("namespace") or ""), str(self._singles.group_of(pod))] = None
        yield from found

    def cluster(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of Clusters: groups that wait, wherever they are."""
        if is_same(old, new, written_by_users) or not any(wants_bridge(obj) for obj in (old, new) if obj is not None):
            return
        found: dict[Key, None] = {}
        for pod in self._pods:
            if membership.is_gated(pod):
                found[str(pod["metadata"].get("namespace") or ""), str(self._singles.group_of(pod))] = None
        yield from found


def _state(pod: Object) -> tuple[Any, ...]:
    metadata = pod["metadata"]
    about = (metadata.get(one) for one in ("uid", "labels", "annotations", "ownerReferences", "deletionTimestamp"))
    status = pod.get("status") or {}
    claims = status.get("resourceClaimStatuses")
    return (*about, membership.gates_of(pod), status.get("phase"), status.get("conditions"), claims)


def _of_claim(claim: Object) -> tuple[Any, ...]:
    metadata, status = claim["metadata"], claim.get("status") or {}
    return metadata.get("uid"), metadata.get("deletionTimestamp"), status.get("allocation"), status.get("reservedFor")


def _of_interest(job: Object) -> tuple[Any, ...]:
    about = (job["metadata"].get(one) for one in ("uid", "ownerReferences", "deletionTimestamp", "labels"))
    return (*about, job.get("spec"), job.get("status"))
