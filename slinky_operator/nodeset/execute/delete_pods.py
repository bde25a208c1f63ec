"""Deletes pods and allows their eviction: the part of `executor` that may end what runs in them.

Slurm is queried again before each delete, and the answer passed to `pod_state.why_kept`, `repairs.recheck` and
`eviction.may_be_lifted`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from slinky_api import labels
from slinky_api.events import EventReason
from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS
from slinky_operator.metrics.changes import DELETED, label_of
from slinky_operator.nodeset.disruption import eviction, repairs
from slinky_operator.nodeset.execute.context import PassContext, listed
from slinky_operator.nodeset.execute.hosts.proof import PROOF_HOLDS
from slinky_operator.nodeset.execute.queries import pod_queries, slurm_queries
from slinky_operator.nodeset.execute.queries.registrations import with_registrations
from slinky_operator.nodeset.health import replacement
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.pods import pod_facts, pod_names
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.reconcile.batches import gather_limited
from slinky_operator.slurm.pods import pod_ownership
from slurm_client import errors as slurm_errors
from slurm_client.models import Job, Node

DELETE_BATCH: Final = 250
"""Maximum number of pods deleted on one answer from Slurm."""

JOBS_TOLD: Final = 5
"""Maximum number of jobs named per node."""

LONGEST_WHY: Final = 200
"""Maximum characters of why Slurm cannot be asked."""

NEVER_STARTED: Final = "never-started"
GIVEN_UP: Final = "given-up"
DRAIN_TIMEOUT: Final = "drain-timeout"
WITHOUT_DRAIN: Final = (NEVER_STARTED, GIVEN_UP, DRAIN_TIMEOUT)
"""Why pods are deleted that are not drained, for metrics; others are deleted for the causes of their drains."""

MAX_SINGLE_GETS: Final = 8
"""Up to this many pods are read individually; for more, those of the namespace are listed. Fewer than the nodes of
`slurm_queries.MAX_SINGLE_GETS`: this list is of one namespace, and slurmctld's is of the whole cluster."""


async def delete_checked(context: PassContext, wanted: Sequence[Pod], *, for_health: bool = False) -> None:
    """Delete pods that are empty according to a fresh answer from Slurm, and record why others are kept.

    Parameters
    ----------
    for_health
        Whether they are recreated because of their Nodes, and must still be drained for that.
    """
    why_kept = replacement.why_kept if for_health else pod_state.why_kept
    for start in range(0, len(wanted), DELETE_BATCH):
        batch = wanted[start : start + DELETE_BATCH]
        answer, batch = await _answer(context, batch)
        going: list[tuple[Pod, str | None]] = []
        records: dict[str, Node] = {}
        for pod in batch:
            member = answer.join(pod, context.owner)
            why = why_kept(member, context.now())
            if why is not None:
                context.outcome.kept.append(why)
                continue
            # Without a record the proof is that it has not registered: the NodeSet's status has shown that, and its own
            # must not have changed.
            going.append((pod, pod.resource_version if member.record is None else None))
            if member.record is not None:
                records[pod.uid] = member.record
        gone = await delete(context, going, until=answer.nodes_at + PROOF_HOLDS)
        for pod in gone:
            _count(context, records.get(pod.uid))
        if gone and for_health:
            named = listed([f"{pod.name} (Node {pod.host})" for pod in gone])
            context.say(EventReason.PODS_REPLACED, f"recreated, since their Nodes are bad: {named}")


def _count(context: PassContext, record: Node | None) -> None:
    """Count a pod that was deleted, with the drain of its node, if it had one."""
    if record is None:
        context.changes.pod_deleted(NEVER_STARTED)
        return
    causes = drains.causes_in(record)
    context.changes.pod_deleted(label_of(causes))
    if record.reason_changed_at is not None:
        waited = context.now() - record.reason_changed_at
        context.changes.drain_ended(causes, DELETED, waited.total_seconds())


async def repair(context: PassContext, wanted: Sequence[Pod]) -> None:
    """Delete pods whose slurmds have not registered according to a fresh answer from Slurm, and report them."""
    answer, wanted = await _answer(context, wanted)
    meant, kept = repairs.recheck([answer.join(pod, context.owner) for pod in wanted], context.now())
    context.outcome.kept += kept
    # The proof is that they run and have not registered: the NodeSet's status has shown that, and theirs is unchanged.
    gone = await delete(context, [(pod, pod.resource_version) for pod in meant])
    for _ in gone:
        context.changes.pod_deleted(drains.Cause.REPAIR)
    forgotten = [pod.name for pod in gone if pod.registered]
    if forgotten:
        context.warn(
            EventReason.PODS_REPAIRED,
            f"recreated, since Slurm has forgotten their nodes and slurmd shows that nothing runs: {listed(forgotten)}",
        )
    unregistered = [repairs.note(pod) for pod in gone if not pod.registered]
    if unregistered:
        why = f"recreated, since slurmd runs and does not register: {listed(unregistered)}; {repairs.LIKELY}"
        context.warn(EventReason.PODS_REPAIRED, why)


async def _answer(context: PassContext, pods: Sequence[Pod]) -> tuple[slurm_queries.Answer, list[Pod]]:
    """A fresh answer from Slurm, then from slurmds of nodes that it has forgotten; and which pods have registered."""
    answer = await slurm_queries.everything(context.reach(), [pod.node_name for pod in pods], context.clock)
    known = await _with_registrations(context, pods)
    lost = [pod for pod in known if pod.registered and answer.nodes.get(pod.node_name) is None]
    return replace(answer, idle=await pod_queries.still_idle(context, lost)), known


async def _with_registrations(context: PassContext, pods: Sequence[Pod]) -> list[Pod]:
    nodeset = context.nodeset
    return await with_registrations(context.kube, (nodeset.namespace, nodeset.name), nodeset.uid, pods)


async def give_up(context: PassContext, wanted: Sequence[Pod], blind: str) -> None:
    """Delete pods with their jobs, as the user has requested, and warn which jobs those are.

    Parameters
    ----------
    blind
        Why Slurm cannot be asked; empty if it can.
    """
    held: Mapping[str, tuple[Job, ...]] = {}
    if not blind:
        try:
            held = await slurm_queries.jobs_now(context.reach())
        except slurm_errors.SlurmError as error:
            # A user who gives up jobs does not wait for Slurm.
            blind = str(error)
    asked = f"{labels.ANNOTATION_SKIP_DRAIN}=true"
    losing = [f"{pod.node_name} (jobs {_some(held[pod.node_name])})" for pod in wanted if held.get(pod.node_name)]
    unknown = [pod.name for pod in wanted if not pod_state.may_delete_without_slurm(pod)] if blind else []
    if losing:
        context.warn(
            EventReason.JOBS_GIVEN_UP,
            f"{asked}: pods are deleted with their jobs: {listed(losing)}; once a pod has ended, its node is marked "
            "DOWN, and Slurm requeues or fails the jobs",
        )
    if unknown:
        context.warn(
            EventReason.JOBS_GIVEN_UP,
            f"{asked}: pods are deleted with whatever jobs they hold: {listed(unknown)}; Slurm cannot be asked which "
            f"these are, and may show them RUNNING until it misses the nodes: {blind[:LONGEST_WHY]}",
        )
    for _ in await delete(context, [(pod, None) for pod in wanted]):
        context.changes.pod_deleted(GIVEN_UP)


async def delete_idle(context: PassContext, wanted: Sequence[Pod]) -> None:
    """Delete pods in which no slurmd can have run, in exactly the version that shows it."""
    unsure = [pod for pod in wanted if pod.slurmd is not Slurmd.ENDED]
    had = {pod.uid for pod in await _with_registrations(context, unsure) if pod.registered}
    idle = [pod for pod in wanted if pod.uid not in had]
    context.outcome.kept += [f"slurmd of {pod.name} had registered" for pod in wanted if pod.uid in had]
    gone = await delete(context, [(pod, pod.resource_version) for pod in idle])
    for _ in gone:
        context.changes.pod_deleted(NEVER_STARTED)
    evicted = [f"{pod.name} on Node {pod.host} ({pod.eviction})" for pod in gone if pod.eviction]
    if evicted:
        context.warn(
            EventReason.PODS_EVICTED,
            f"evicted by the kubelet, with their jobs: {listed(evicted)}; their nodes are set DOWN, and Slurm requeues "
            "or fails the jobs",
        )


async def delete_overdue(context: PassContext, wanted: Sequence[Pod]) -> None:
    """Delete pods with their jobs, since their drains have taken longer than the spec allows."""
    for _ in await delete(context, [(pod, None) for pod in wanted]):
        context.changes.pod_deleted(DRAIN_TIMEOUT)


def _some(jobs: Sequence[Job]) -> str:
    shown = ", ".join(job.alone for job in jobs[:JOBS_TOLD])
    return shown if len(jobs) <= JOBS_TOLD else f"{shown} and {len(jobs) - JOBS_TOLD} more"


async def delete(
    context: PassContext, wanted: Sequence[tuple[Pod, str | None]], *, until: float = math.inf
) -> list[Pod]:
    """Delete pods with exactly these uids, and these versions if the version is part of the proof.

    Returns those that were deleted. If the proof expires, nothing is sent after `until`, in monotonic seconds.
    """
    if not wanted:
        return []
    context.outcome.acted = True
    context.expectations.expect_deletions(context.nodeset.uid, [pod.uid for pod, _ in wanted])
    results = await gather_limited(_delete_one(context, pod, version, until) for pod, version in wanted)
    done: list[Pod] = []
    for (pod, _), result in zip(wanted, results, strict=True):
        if not isinstance(result, BaseException):
            done.append(pod)
            continue
        context.expectations.deletion_failed(pod.uid)
        if isinstance(result, kube_errors.NotFound):
            continue
        if isinstance(result, TimeoutError):
            context.outcome.kept.append(f"the API server has not deleted pod {pod.name} in time: Slurm is asked again")
            continue
        if not isinstance(result, Exception):
            raise result
        context.outcome.errors.append(result)
    if done:
        context.say(EventReason.PODS_DELETED, f"deleted: {listed([pod.name for pod in done])}")
    return done


async def _delete_one(context: PassContext, pod: Pod, version: str | None, until: float) -> None:
    left = until - context.clock()
    if left <= 0:
        raise TimeoutError
    async with asyncio.timeout(left if left < math.inf else None):
        await context.kube.delete(PODS, pod.name, context.nodeset.namespace, uid=pod.uid, resource_version=version)


async def evictable(context: PassContext, wanted: Sequence[Pod]) -> Sequence[Pod]:
    """Of these pods, those that may be evicted."""
    if not context.nodeset.spec.workload_disruption_protection:
        return wanted
    answer = await slurm_queries.everything(context.reach(), [pod.node_name for pod in wanted], context.clock)
    return [pod for pod in wanted if eviction.may_be_lifted(answer.join(pod, context.owner))]


async def standing(context: PassContext, names: Sequence[str]) -> frozenset[str]:
    """Of these nodes, those for which the API server itself has a pod that may be running."""
    namespace, wanted, standing = context.nodeset.namespace, frozenset(names), set[str]()

    def note(obj: Object) -> None:
        node = pod_ownership.node_name(obj)
        if node in wanted and pod_facts.read(obj, context.nodeset.name).slurmd is not pod_facts.Slurmd.ENDED:
            standing.add(node)

    if len(names) > MAX_SINGLE_GETS:
        async for obj in context.kube.each(PODS, namespace):
            note(obj)
        return frozenset(standing)
    pods_of = [pod_names.pod_name(context.nodeset, name) for name in names]
    for result in await gather_limited(context.kube.get(PODS, name, namespace) for name in pods_of):
        if not isinstance(result, BaseException):
            note(result)
        elif not isinstance(result, kube_errors.NotFound):
            raise result
    return frozenset(standing)
