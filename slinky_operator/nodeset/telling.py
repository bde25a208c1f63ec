"""Tells Slurm what a plan wants of it: drains, features, records; the part of `act` that writes to slurmctld.

Slurm is asked again before each write, and the answer put to the rules.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from slinky_api.conditions import Reason
from slinky_operator.nodeset import asking, deadline, drain, ending, records, removal, takeover, traits
from slinky_operator.nodeset.actions import Drain, EndDrains
from slinky_operator.nodeset.facts import Pod
from slinky_operator.nodeset.hosts import Host
from slinky_operator.nodeset.means import Means, listed
from slinky_operator.nodeset.ports import Slurm
from slurm_client import errors as slurm_errors


async def drain_nodes(means: Means, action: Drain) -> None:
    """Drain nodes that are still to be drained."""
    slurm, names, reason = means.reach(), action.nodes, action.reason
    wanted = drain.to_drain(names, await asking.nodes(slurm, names), means.owner, action.causes)
    if wanted:
        means.unseen = True
        await slurm.client.drain_nodes(wanted, reason)
        notes = dict(zip(action.nodes, action.notes, strict=False))
        told = listed([notes.get(name, name) for name in wanted])
        means.say("Draining", f"{told}; reason: {reason}")
    means.outcome.acted = True
    await _read_back(means, slurm, names)


async def undrain_nodes(means: Means, names: Sequence[str]) -> None:
    """Give nodes back whose drains are ours."""
    slurm = means.reach()
    wanted = drain.to_undrain(names, await asking.nodes(slurm, names), means.owner)
    if wanted:
        means.unseen = True
        await slurm.client.undrain_nodes(wanted)
        means.say("Undrained", f"given back to Slurm: {listed(wanted)}")
    means.outcome.acted = True
    await _read_back(means, slurm, names)


async def set_traits(means: Means, hosts: Mapping[str, Host]) -> None:
    """Write the features and the topology that Kubernetes Nodes give."""
    slurm = means.reach()
    wanted = traits.to_write(hosts, await asking.nodes(slurm, list(hosts)), means.owner)
    for change, names in wanted.items():
        try:
            written = await _write_traits(means, slurm, names, change)
        except slurm_errors.InvalidRequest as error:
            means.outcome.refusals.append(f"{listed(names)}: {error.message}")
            means.warn("TraitsRefused", f"{listed(names)}: {change}: {error.message}")
        else:
            means.outcome.acted |= written
            await _read_back(means, slurm, names)


async def _write_traits(means: Means, slurm: Slurm, names: Sequence[str], change: traits.Change) -> bool:
    """Write what this Slurm takes; gives whether that is anything."""
    if change.topology is not None:
        try:
            await slurm.client.update_nodes(
                names, features=change.features, active_features=change.active, topology=change.topology
            )
        except slurm_errors.NotSupported as error:
            # So it stays until Slurm is upgraded: it is told, and the features are written without it.
            means.warn("TopologyNotSupported", f"{listed(names)}: {error.message}")
        else:
            return True
    if change.features is None:
        return False
    await slurm.client.update_nodes(names, features=change.features, active_features=change.active)
    return True


async def mark_down(means: Means, names: Sequence[str]) -> None:
    """Mark nodes down whose pods have ended, so that Slurm takes their jobs back."""
    slurm = means.reach()
    standing = await removal.standing(means, names)
    plain, foreign = records.to_down(names, await asking.nodes(slurm, names), standing, means.owner)
    means.outcome.kept += _standing(names, standing)
    means.unseen = True
    if plain:
        reason = f"{drain.PREFIX}pod has ended ({means.owner})"
        await slurm.client.update_nodes(plain, state="DOWN", reason=reason)
    if foreign:
        await slurm.client.update_nodes(foreign, state="DOWN")
    if plain or foreign:
        means.outcome.downed += [*plain, *foreign]
        told = listed([*plain, *foreign])
        means.warn("NodesDown", f"pods have ended with jobs: {told}; Slurm takes the jobs back")
    means.outcome.acted = True
    await _read_back(means, slurm, names)


async def end_drains(means: Means, action: EndDrains) -> None:
    """Do what the spec says about jobs that hold up a drain for too long."""
    slurm, spec = means.reach(), means.nodeset.spec.drain
    names = [pod.node_name for pod, _ in action.pods]
    now = await asking.clock(slurm)
    answer = await asking.everything(slurm, names)
    late = deadline.overdue(action.pods, answer.nodes, answer.jobs, spec, means.owner, now)
    acting = [one for one in late if one.acts]
    if not acting:
        return
    told = listed([ending.note(one, answer.jobs.get(one.pod.node_name, ())) for one in acting])
    means.warn(str(Reason.DRAIN_TIMED_OUT), f"{ending.said(spec)}: {told}")
    forced = [(one.pod, None) for one in acting if one.force]
    if forced:
        await removal.delete(means, forced)
    if len(forced) < len(acting):
        means.unseen = means.outcome.acted = True
        means.outcome.kept += await ending.end_jobs(slurm.client, spec.on_timeout, acting)
        await _read_back(means, slurm, names)


async def delete_records(means: Means, names: Sequence[str]) -> None:
    """Delete records of nodes that no pod stands for."""
    slurm = means.reach()
    standing = await removal.standing(means, names)
    answer = await asking.about_records(slurm, names)
    wanted = records.to_delete(names, answer.nodes, answer.jobs, standing, means.owner)
    means.outcome.kept += _standing(names, standing)
    means.unseen = True
    means.outcome.acted = True
    try:
        await slurm.client.delete_nodes(wanted)
    except (slurm_errors.NotFound, slurm_errors.Conflict) as error:
        # What could be deleted is; which ones could not, the error does not tell.
        left = await asking.nodes(slurm, wanted)
        busy = [name for name in wanted if left.get(name) is not None]
        means.outcome.refusals += [f"record of node {name}: {error.message}" for name in busy]
    await _read_back(means, slurm, names)


def _standing(names: Sequence[str], standing: Collection[str]) -> list[str]:
    """Why records stay as they are: a cache does not show their pods, or not as ours, and the API server does."""
    return [
        f"the record of node {name} is not touched: there is a pod for it which is not known as this NodeSet's"
        for name in names
        if name in standing
    ]


async def mark_records(means: Means, wanted: Sequence[Pod]) -> None:
    """Mark the records of pods that were taken over as this NodeSet's."""
    slurm, names = means.reach(), [pod.node_name for pod in wanted]
    fresh = await asking.nodes(slurm, names)
    namespace = means.nodeset.namespace
    found = [
        pod.node_name
        for pod in wanted
        if (node := fresh.get(pod.node_name)) is not None and takeover.is_named_in(node, namespace, pod.name)
    ]
    if found:
        means.unseen = True
        await slurm.client.update_nodes(found, extra=means.owner)
    means.outcome.acted = True
    await _read_back(means, slurm, names)


async def _read_back(means: Means, slurm: Slurm, names: Sequence[str]) -> None:
    """Bring the cache up to date, so that the next pass does not repeat this one."""
    if len(names) <= asking.SINGLY:
        await slurm.refresh(names)
        means.unseen = False
    else:
        # One question for all; what has changed comes as node events.
        means.written_at = means.clock()
        slurm.hurry()
