"""The status text of a NodeSet, as `kubectl get` shows it: troubles, else what is in progress, else the ready count.

It is short and has no more than one cause of each; the conditions have the rest. It contains times, not ages, so that
it is not rewritten without a change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from slinky_api.conditions import Reason
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.nodeset.report import out_of_service
from slinky_operator.nodeset.report.out_of_service import OutOfService
from slinky_operator.nodeset.report.progress import Counts
from slinky_operator.nodeset.report.troubles import Trouble, is_waiting
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.reconcile.failures import LONGEST_SUMMARY, Failure
from slinky_operator.reconcile.text import cut, named
from slinky_operator.slurm.jobs import job_facts
from slurm_client.models import Job

LONGEST: Final = LONGEST_SUMMARY
"""Maximum characters of the whole text."""


def text(
    snapshot: Snapshot,
    found: Decisions,
    counts: Counts,
    troubles: Sequence[Trouble],
    out: Sequence[OutOfService],
    failure: Failure | None,
    progress: tuple[Reason, str] | None,
    held_back: tuple[Reason, str] | None,
) -> str:
    """Build the status text.

    Parameters
    ----------
    snapshot, found, counts
        The snapshot, the findings of the plan, and the numbers.
    troubles, failure
        What blocks.
    out
        Nodes that get no jobs, as of `out_of_service.nodes`.
    progress, held_back
        What is in progress, and what is held back.
    """
    blocks = [trouble.brief or trouble.text for trouble in troubles] or ([failure.message] if failure else [])
    if snapshot.nodeset.deleting:
        return cut("; ".join([_deleting(snapshot, found), *blocks]), LONGEST)
    ready = _ready(snapshot, counts)
    if len(blocks) == 1 and not counts.desired and not snapshot.pods:
        return cut(blocks[0], LONGEST)
    if is_waiting(snapshot) and not blocks:
        return cut(f"waiting for Cluster {snapshot.nodeset.spec.cluster_name}", LONGEST)
    goes_on = _drains(snapshot, found) or _moves(snapshot, found, troubles, progress, held_back)
    aside = _out_of_service(snapshot, out, troubles)
    return cut("; ".join([ready, *blocks, *goes_on, *aside]), LONGEST)


def _ready(snapshot: Snapshot, counts: Counts) -> str:
    if not snapshot.slurm.readable and snapshot.pods:
        # Without Slurm it is not known which are ready.
        return f"{len(snapshot.pods)} {'pod' if len(snapshot.pods) == 1 else 'pods'}"
    if counts.ready > counts.desired:
        return f"{counts.ready} ready, {counts.desired} wanted"
    return f"{counts.ready} of {counts.desired} ready"


def _deleting(snapshot: Snapshot, found: Decisions) -> str:
    left = len(snapshot.pods)
    if not left:
        return (
            f"deleting, no pod left; records kept of {named(sorted(found.named))}"
            if found.named
            else "deleting, no pod left"
        )
    jobs = {} if found.skip_drain else _jobs(found)
    return f"deleting, {left} {'pod' if left == 1 else 'pods'} left{_held(jobs)}"


def _drains(snapshot: Snapshot, found: Decisions) -> list[str]:
    """Nodes that the operator drains, the causes, and how long that may take."""
    nodes = [s for s in found.states.values() if isinstance(s, pod_state.Draining | pod_state.Drained)]
    if not nodes:
        return []
    every = frozenset[drains.Cause]().union(*(state.causes for state in nodes))
    if every and every <= drains.CORDONS - {drains.Cause.HEALTH, drains.Cause.DRAIN_REQUEST}:
        return [f"{len(nodes)} cordoned and draining{_held(_jobs(found))}"]
    why = f" for {', '.join(sorted(every))}" if every else ""
    return [f"draining {len(nodes)} of {len(snapshot.pods)}{why}{_held(_jobs(found))}"]


def _moves(
    snapshot: Snapshot,
    found: Decisions,
    troubles: Sequence[Trouble],
    progress: tuple[Reason, str] | None,
    held_back: tuple[Reason, str] | None,
) -> list[str]:
    if progress is None:
        return [_HELD_BACK[held_back[0]]] if held_back is not None else []
    reason, said = progress
    told = frozenset[str]().union(*(trouble.names for trouble in troubles))
    coming = [name for name, state in found.states.items() if isinstance(state, pod_state.Starting)]
    starting = sum(1 for name in coming if name not in told)
    match reason:
        case Reason.NOT_IN_CONFIG:
            return [f"waiting for Cluster {snapshot.nodeset.spec.cluster_name}"]
        case Reason.SCALING_OUT | Reason.NOT_REGISTERED:
            taken = (
                [f"name conflict on {named(sorted(found.creation.conflicts), 2)}"] if found.creation.conflicts else []
            )
            blocked = found.creation.blocked.keys() - found.creation.conflicts.keys() - snapshot.stripped.keys()
            waits = [*taken, *([f"{len(blocked)} waiting for earlier pods to end"] if blocked else [])]
            held = [f"{found.creation.held} waiting to start"] if found.creation.held else []
            texts = [*([f"{starting} starting"] if starting else []), *waits, *held]
            return texts or ([] if coming else ["scaling out"])
        case Reason.SCALING_IN:
            return ["scaling in"]
        case _:
            return [f"updating: {said}"] if reason is Reason.UPDATING else [said]


_HELD_BACK: Final = {
    Reason.UPDATE_ON_DELETE: "update waits for pods to be deleted (OnDelete)",
    Reason.UPDATE_PAUSED: "update paused",
    Reason.UPDATE_WAITS_FOR_CLUSTER: "update waits for the Cluster",
    Reason.UPDATE_WAITS_FOR_MAINTENANCE: "update waits for maintenance",
    Reason.UPDATE_HELD_BACK: "update held back by partition",
}


def _out_of_service(snapshot: Snapshot, out: Sequence[OutOfService], troubles: Sequence[Trouble]) -> list[str]:
    """Nodes that get no jobs, unless they are reported as troubles already."""
    if not snapshot.slurm.readable:
        return []
    told = {trouble.reason for trouble in troubles}
    listed = [one for one in out if one.reason not in told]
    drained = [one for one in listed if one.reason is Reason.FOREIGN_DRAIN]
    silent = [one for one in listed if one.reason is Reason.NODE_NOT_RESPONDING]
    texts = []
    if silent:
        texts.append(f"{len(silent)} not responding: {named(out_of_service.names(silent), 2)}")
    if drained:
        users = Counter(one.node.reason_set_by for one in drained)
        by = f" by {next(iter(users))}" if len(users) == 1 and next(iter(users)) else " by others"
        reasons = {one.node.reason for one in drained}
        why = f" ({drained[0].node.reason})" if len(reasons) == 1 and drained[0].node.reason else ""
        texts.append(f"{len(drained)} drained{by}: {named(out_of_service.names(drained), 2)}{why}")
    return texts


def _jobs(found: Decisions) -> dict[int, Job]:
    states = found.states.values()
    return {job.id: job for state in states if isinstance(state, pod_state.Draining) for job in state.jobs}


def _held(jobs: dict[int, Job]) -> str:
    """How many jobs are waited for, and until when at most."""
    if not jobs:
        return ""
    end = job_facts.last(jobs.values())
    until = "" if end is None else f" until {end.strftime('%Y-%m-%d %H:%M')} UTC"
    if not all(map(job_facts.has_limit, jobs.values())):
        until = ", no time limit"
    return f", {len(jobs)} {'job' if len(jobs) == 1 else 'jobs'} left{until}"
