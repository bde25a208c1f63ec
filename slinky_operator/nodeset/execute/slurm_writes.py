"""Writes to slurmctld what a plan wants: drains, features, records; a part of `executor`.

Slurm is queried again before each write, and the answer passed to the rules.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from slinky_api.conditions import Reason
from slinky_api.events import EventReason
from slinky_operator.metrics.changes import UNDRAINED
from slinky_operator.nodeset.drain import deadline
from slinky_operator.nodeset.execute import delete_pods, end_jobs
from slinky_operator.nodeset.execute.context import PassContext, listed
from slinky_operator.nodeset.execute.queries import slurm_queries
from slinky_operator.nodeset.model.actions import Drain, EndDrains
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.ports import Slurm
from slinky_operator.nodeset.slurm_nodes import drains, identity, kubernetes_features, records
from slinky_operator.nodeset.slurm_nodes.kubernetes_features import RefusedTraits, Traits
from slurm_client import errors as slurm_errors

CHANGES_AT_ONCE: Final = 20
"""Changes of features and places in one pass: slurmctld takes each one alone, and what drains nodes must not wait for
hundreds of them."""


async def drain_nodes(context: PassContext, action: Drain) -> None:
    """Drain nodes that are still to be drained."""
    slurm, names, reason = context.reach(), action.nodes, action.reason
    wanted = drains.to_drain(names, await slurm_queries.nodes(slurm, names), context.owner, action.causes)
    if wanted:
        context.unseen = True
        await slurm.client.drain_nodes(wanted, reason)
        context.changes.drains_started(action.causes, len(wanted))
        notes = dict(zip(action.nodes, action.notes, strict=False))
        told = listed([notes.get(name, name) for name in wanted])
        context.say(EventReason.DRAINING, f"{told}; reason: {reason}")
    context.outcome.acted = True
    await _read_back(context, slurm, names)


async def undrain_nodes(context: PassContext, names: Sequence[str]) -> None:
    """Undrain nodes whose drains are the operator's."""
    slurm = context.reach()
    fresh = await slurm_queries.nodes(slurm, names)
    wanted = drains.to_undrain(names, fresh, context.owner)
    if wanted:
        context.unseen = True
        await slurm.client.undrain_nodes(wanted)
        for node in filter(None, map(fresh.get, wanted)):
            if node.reason_changed_at is not None:
                waited = context.now() - node.reason_changed_at
                context.changes.drain_ended(drains.causes_in(node), UNDRAINED, waited.total_seconds())
        context.say(EventReason.UNDRAINED, f"resumed: {listed(wanted)}")
    context.outcome.acted = True
    await _read_back(context, slurm, names)


async def set_traits(context: PassContext, wanted: Mapping[str, Traits]) -> None:
    """Write features and topology from Kubernetes Nodes, a few changes at a time; the others in later passes.

    A change is for all nodes of one rack, or of one place by other labels: there may be as many as nodes.
    """
    slurm = context.reach()
    fresh = await slurm_queries.nodes(slurm, list(wanted))
    changes = list(kubernetes_features.to_write(wanted, fresh, context.owner).items())
    context.outcome.acted |= len(changes) > CHANGES_AT_ONCE
    for change, names in changes[:CHANGES_AT_ONCE]:
        refused: Mapping[str, RefusedTraits | None]
        try:
            taken, written = await _write_traits(context, slurm, names, change)
        except slurm_errors.InvalidRequest as error:
            why = f"{change} for {listed(names)}: {error.message}"
            context.warn(EventReason.TRAITS_REFUSED, f"Slurm refuses {why}")
            refused = {name: RefusedTraits(wanted[name], why) for name in names}
        else:
            context.outcome.acted |= written
            refused = {name: None if taken else RefusedTraits(wanted[name]) for name in names}
            if written:
                await _read_back(context, slurm, names)
        context.outcome.traits |= refused


async def _write_traits(
    context: PassContext, slurm: Slurm, names: Sequence[str], change: kubernetes_features.Change
) -> tuple[bool, bool]:
    """Write what this Slurm accepts; returns whether that is all, and whether it is anything."""
    is_all = True
    if change.topology is not None:
        try:
            await slurm.client.update_nodes(
                names, features=change.features, active_features=change.active, topology=change.topology
            )
        except slurm_errors.NotSupported as error:
            # This remains until Slurm is upgraded: it is reported, and the features are written without it.
            context.warn(EventReason.TOPOLOGY_NOT_SUPPORTED, f"{listed(names)}: {error.message}")
            is_all = False
        else:
            return True, True
    if change.features is None:
        return is_all, False
    await slurm.client.update_nodes(names, features=change.features, active_features=change.active)
    return is_all, True


async def mark_down(context: PassContext, names: Sequence[str]) -> None:
    """Mark nodes DOWN whose pods have ended, so that Slurm requeues or ends their jobs."""
    slurm = context.reach()
    standing = await delete_pods.standing(context, names)
    plain, foreign = records.to_down(names, await slurm_queries.nodes(slurm, names), standing, context.owner)
    context.outcome.kept += _standing(names, standing)
    context.unseen = True
    if plain:
        reason = f"{drains.PREFIX}pod has ended ({context.owner})"
        await slurm.client.update_nodes(plain, state="DOWN", reason=reason)
    if foreign:
        await slurm.client.update_nodes(foreign, state="DOWN")
    if plain or foreign:
        context.outcome.downed += [*plain, *foreign]
        told = listed([*plain, *foreign])
        context.warn(EventReason.NODES_DOWN, f"pods have ended with jobs: {told}; Slurm requeues or fails the jobs")
    context.outcome.acted = True
    await _read_back(context, slurm, names)


async def end_drains(context: PassContext, action: EndDrains) -> None:
    """Apply `spec.drain.onTimeout` to jobs that delay a drain for too long."""
    slurm, spec = context.reach(), context.nodeset.spec.drain
    names = [pod.node_name for pod, _ in action.pods]
    now = await slurm_queries.clock(slurm)
    answer = await slurm_queries.everything(slurm, names, context.clock)
    late = deadline.overdue([(answer.join(pod, context.owner), causes) for pod, causes in action.pods], spec, now)
    acting = [one for one in late if one.acts]
    if answer.is_slow:
        acting = await end_jobs.still_overdue(slurm, acting)
    if not acting:
        return
    told = listed([end_jobs.note(one, answer.jobs.get(one.pod.node_name, ())) for one in acting])
    context.warn(Reason.DRAIN_TIMED_OUT, f"{end_jobs.said(spec)}: {told}")
    context.changes.drains_timed_out(len(acting))
    forced = [one.pod for one in acting if one.force]
    if forced:
        await delete_pods.delete_overdue(context, forced)
    if len(forced) < len(acting):
        context.unseen = context.outcome.acted = True
        context.outcome.kept += await end_jobs.end_jobs(slurm.client, spec.on_timeout, acting)
        await _read_back(context, slurm, names)


async def delete_records(context: PassContext, names: Sequence[str]) -> None:
    """Delete records of nodes without a pod."""
    slurm = context.reach()
    standing = await delete_pods.standing(context, names)
    answer = await slurm_queries.about_records(slurm, names)
    wanted = records.to_delete(names, answer.nodes, answer.jobs, standing, context.owner, answer.named)
    context.outcome.kept += _standing(names, standing)
    context.outcome.named |= answer.named
    context.unseen = True
    context.outcome.acted = True
    try:
        # Their records were in the answer right before.
        await slurm.client.delete_nodes(wanted, are_nodes=True)
    except (slurm_errors.NotFound, slurm_errors.Conflict) as error:
        # Some records may be deleted now; the error does not say which ones are not.
        left = await slurm_queries.nodes(slurm, wanted)
        busy = [name for name in wanted if left.get(name) is not None]
        context.outcome.refusals += [f"record of node {name}: {error.message}" for name in busy]
    await _read_back(context, slurm, names, were_deleted=True)


def _standing(names: Sequence[str], standing: Collection[str]) -> list[str]:
    """Why records are kept: a cache does not show their pods, or not as the NodeSet's, and the API server does."""
    return [
        f"the record of node {name} is not touched: there is a pod for it which is not known as this NodeSet's"
        for name in names
        if name in standing
    ]


async def mark_records(context: PassContext, wanted: Sequence[Pod]) -> None:
    """Mark the records of pods that were taken over as this NodeSet's."""
    slurm, names = context.reach(), [pod.node_name for pod in wanted]
    fresh = await slurm_queries.nodes(slurm, names)
    namespace = context.nodeset.namespace
    found = [
        pod.node_name
        for pod in wanted
        if (node := fresh.get(pod.node_name)) is not None and identity.is_named_in(node, namespace, pod.name)
    ]
    if found:
        context.unseen = True
        await slurm.client.update_nodes(found, extra=context.owner)
    context.outcome.acted = True
    await _read_back(context, slurm, names)


async def _read_back(context: PassContext, slurm: Slurm, names: Sequence[str], *, were_deleted: bool = False) -> None:
    """Refresh the cache, so that the next pass does not repeat this one."""
    if len(names) <= slurm_queries.MAX_SINGLE_GETS:
        await slurm.refresh(names)
        context.unseen = False
    else:
        # One query for all; changes arrive as node events.
        context.written_at = context.clock()
        slurm.hurry(whole=were_deleted)
