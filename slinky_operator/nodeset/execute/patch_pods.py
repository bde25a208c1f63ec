"""Patches pods: that Slurm knows their nodes, whether they may be evicted, what their nodes show.

Each condition is applied under its own field manager, so that writing one never reverts the other, whatever the cache
shows. A pod that is gone or was replaced is not changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from itertools import chain
from typing import Final

from slinky_api import labels
from slinky_api.conditions import PodCondition
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.kube import errors
from slinky_operator.kube.cache.expectations import Expectations
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube
from slinky_operator.kube.resources import PODS
from slinky_operator.nodeset.model.actions import PodStates, PodStatusPatch
from slinky_operator.nodeset.model.pods import guard
from slinky_operator.nodeset.model.pods.pod_facts import DrainCondition, Pod
from slinky_operator.nodeset.pod_spec import machine_autoscalers
from slinky_operator.reconcile.batches import gather_limited
from slinky_operator.slurm import naming

DRAIN_MANAGER: Final = f"{labels.FIELD_MANAGER}-drain"
"""Field manager of the condition about drains."""

STATES_MANAGER: Final = f"{labels.FIELD_MANAGER}-node-states"
"""Field manager of the conditions about states of nodes."""

GUARD_MANAGER: Final = f"{labels.FIELD_MANAGER}-guard"
"""Field manager of the guard's owner reference."""


class Marks:
    """Patches the pods of one NodeSet.

    Parameters
    ----------
    kube
        The API server.
    nodeset
        The NodeSet.
    expectations
        Records every write, so that the next pass sees it.
    now
        The wall clock.
    """

    def __init__(self, kube: Kube, nodeset: NodeSet, expectations: Expectations, now: Callable[[], datetime]) -> None:
        self._kube = kube
        self._nodeset = nodeset
        self._expectations = expectations
        self._now = now

    async def registered(self, pods: Sequence[Pod]) -> list[Exception]:
        """Record on these pods that Slurm knows their nodes; returns the errors."""
        return await self._all(
            self._condition(
                pod,
                PodCondition.REGISTERED,
                DrainCondition("True", "NodeSeen", f"Slurm knows node {pod.node_name} as this pod's"),
                labels.FIELD_MANAGER,
                # A slurmd that has ended since has shown nothing: when it registered is not known, but not that late.
                since=pod.created_at if pod.unmarked and pod.last_ended_at is not None else None,
            )
            for pod in pods
        )

    async def protect(self, pods: Sequence[Pod]) -> list[Exception]:
        """Add these pods to the PodDisruptionBudget; returns the errors."""
        return await self._all(self._metadata(pod, self._budget(protected=True)) for pod in pods)

    async def adopt(self, pods: Sequence[Pod], cluster: Cluster) -> list[Exception]:
        """Set the labels of the existing Cluster on these pods; returns the errors."""
        wanted = {**naming.slurmd_labels(cluster.name), labels.LABEL_CLUSTER_UID: cluster.uid}
        return await self._all(self._metadata(pod, {"labels": wanted}) for pod in pods)

    async def unprotect(self, pods: Sequence[Pod]) -> list[Exception]:
        """Remove these pods from the PodDisruptionBudget; returns the errors."""
        return await self._all(self._metadata(pod, self._budget(protected=False)) for pod in pods)

    async def guard(self, pods: Sequence[Pod], guard_uid: str) -> list[Exception]:
        """Set the guard as an owner of these pods, in place of an earlier one; returns the errors."""
        return await self._all(self._owner(pod, guard_uid) for pod in pods)

    async def show(self, showings: Sequence[PodStatusPatch]) -> list[Exception]:
        """Write what nodes show on their pods; returns the errors."""
        conditions = (
            self._condition(showing.pod, PodCondition.SLURM_DRAINED, showing.told, DRAIN_MANAGER)
            for showing in showings
            if showing.told is not None
        )
        deadlines = (
            self._metadata(showing.pod, {"annotations": {labels.ANNOTATION_POD_DEADLINE: showing.deadline or None}})
            for showing in showings
            if showing.deadline is not None
        )
        return await self._all(chain(conditions, deadlines))

    async def states(self, pods: Sequence[PodStates]) -> list[Exception]:
        """Write the states of nodes on their pods, all of a pod at once; returns the errors."""
        return await self._all(self._states(one) for one in pods)

    async def announce(self, times: Sequence[tuple[Pod, str | None]]) -> list[Exception]:
        """Write on pods when they are recreated unless they register; returns the errors."""
        key = labels.ANNOTATION_POD_REGISTER_BY
        return await self._all(self._metadata(pod, {"annotations": {key: when}}) for pod, when in times)

    def _budget(self, *, protected: bool) -> Object:
        said = machine_autoscalers.told(self._nodeset, protected=protected)
        label = {labels.LABEL_POD_PROTECT: "true" if protected else None}
        return {"labels": label, **({"annotations": said} if said else {})}

    async def _all(self, calls: Iterable[Awaitable[None]]) -> list[Exception]:
        failures: list[Exception] = []
        for result in await gather_limited(calls):
            if isinstance(result, errors.NotFound | errors.Conflict):
                continue
            if isinstance(result, Exception):
                failures.append(result)
            elif isinstance(result, BaseException):
                raise result
        return failures

    async def _condition(
        self, pod: Pod, kind: PodCondition, told: DrainCondition, manager: str, since: datetime | None = None
    ) -> None:
        known = pod.told if kind is PodCondition.SLURM_DRAINED else None
        same = known is not None and known.status == told.status
        changed = since if since is not None else self._now()
        condition = {
            "type": kind.value,
            "status": told.status,
            "reason": told.reason,
            "message": told.message,
            "lastTransitionTime": known.since if known and same else changed.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        metadata = {"name": pod.name, "namespace": self._nodeset.namespace, "uid": pod.uid}
        body = {"metadata": metadata, "status": {"conditions": [condition]}}
        answer = await self._kube.apply(PODS, body, subresource="status", field_manager=manager)
        self._expectations.expect_version(self._nodeset.uid, answer)

    async def _states(self, wanted: PodStates) -> None:
        pod, now = wanted.pod, self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions = []
        for kind, told in sorted(wanted.states.items()):
            known = pod.node_states.get(kind)
            since = known.since if known is not None and known.since and known.status == told.status else now
            about = {"status": told.status, "reason": told.reason, "message": told.message}
            conditions.append({"type": kind, **about, "lastTransitionTime": since})
        metadata = {"name": pod.name, "namespace": self._nodeset.namespace, "uid": pod.uid}
        body = {"metadata": metadata, "status": {"conditions": conditions}}
        answer = await self._kube.apply(PODS, body, subresource="status", field_manager=STATES_MANAGER)
        self._expectations.expect_version(self._nodeset.uid, answer)

    async def _owner(self, pod: Pod, guard_uid: str) -> None:
        # Owners are merged by uid; with its own field manager, the next write removes an earlier one.
        owners = [guard.reference(self._nodeset, guard_uid)]
        metadata = {
            "name": pod.name,
            "namespace": self._nodeset.namespace,
            "uid": pod.uid,
            "ownerReferences": owners,
        }
        answer = await self._kube.apply(PODS, {"metadata": metadata}, field_manager=GUARD_MANAGER)
        self._expectations.expect_version(self._nodeset.uid, answer)

    async def _metadata(self, pod: Pod, patch: Object) -> None:
        answer = await self._kube.merge_patch(PODS, pod.name, {"metadata": patch}, self._nodeset.namespace, uid=pod.uid)
        self._expectations.expect_version(self._nodeset.uid, answer)
