"""Why the node of each pod is drained: a scale-in, a cordon, an update and so on.

The list of causes is `slurm_nodes.drains.Cause`. Those that an administrator reverts, so that the pod stays, are found
by `cordons`; what is drained for its health is chosen by `health.choice`; the others are assigned in `assign_causes`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final

from slinky_operator.nodeset.disruption import repairs, rolling_update, victims
from slinky_operator.nodeset.disruption.availability import may_come_up, may_serve, serves
from slinky_operator.nodeset.drain import pod_condition
from slinky_operator.nodeset.model import drain_requests, pod_state
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.placement.layout import Layout
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause

_NOBODY: Final = frozenset[Cause]()


def scale_in_victims(snapshot: Snapshot, layout: Layout, now: datetime) -> tuple[Member, ...]:
    """The surplus pods, in order."""
    if snapshot.slurm.readable:
        return victims.choose(layout.staying, layout.excess, now)
    # Without Slurm only pods can be chosen that may be deleted without asking it.
    free = [member for member in layout.staying if pod_state.may_delete_without_slurm(member.pod)]
    return victims.choose_without_slurm(free, layout.excess)


def assign_causes(
    snapshot: Snapshot,
    live: Sequence[Member],
    layout: Layout,
    chosen: Sequence[Member],
    waits: Mapping[str, repairs.UnregisteredPod],
    awaited: int,
    unhealthy: Collection[str],
    now: datetime,
) -> dict[str, frozenset[Cause]]:
    """The causes for which the node of each pod is to be drained.

    Parameters
    ----------
    snapshot, live, layout
        The snapshot, the pods that are neither being deleted nor ended, and the slots of pods.
    chosen
        The surplus pods.
    waits
        Pods that run and have not registered, by name.
    awaited
        How many pods are missing and will be created.
    unhealthy
        Names of the pods whose nodes are drained for the health of their Kubernetes Nodes (`health.choice`).
    now
        The time.
    """
    causes: dict[str, set[Cause]] = {member.name: set() for member in live}
    if snapshot.nodeset.deleting:
        removal = Cause.DELETION
    elif snapshot.cluster.deleting:
        removal = Cause.CLUSTER_DELETION
    else:
        removal = Cause.SCALE_IN
    for member in chosen:
        causes[member.name].add(removal)
    for member in layout.misplaced:
        causes[member.name].add(Cause.NODE_MISMATCH)
    for member in live:
        causes[member.name] |= cordons(snapshot, member)
        if member.name in unhealthy:
            causes[member.name].add(Cause.HEALTH)
    staying = [member for member in live if not causes[member.name]]
    # They keep their slots, and are missing until they are available, as others are.
    cordoned = [one for one in live if causes[one.name] and drains.CORDONS.issuperset(causes[one.name])]
    if layout.desired and not snapshot.revision.problems:
        late = [waits[member.name] for member in staying if member.name in waits]
        repaired = repairs.choose(snapshot, late, live, awaited=awaited, desired=layout.desired, now=now)
        for name in repaired:
            causes[name].add(Cause.REPAIR)
        staying = [member for member in staying if member.name not in repaired]
        coming = awaited + sum(1 for member in cordoned if may_come_up(member, snapshot, now))
        for name in _updates(snapshot, staying, layout.able, len(repaired), coming, now):
            causes[name].add(Cause.UPDATE)
    return {name: frozenset(found) for name, found in causes.items() if found}


def cordons(snapshot: Snapshot, member: Member) -> frozenset[Cause]:
    """Who wants the node kept free: the pod's annotation, its Kubernetes Node, a request to drain that.

    What is drained for a request stays so while requests are not known, as after a start, and while NVSentinel works on
    the Node, which may delete a request that is complete: the machine may be about to be rebooted.
    """
    pod = member.pod
    host = snapshot.host_of(pod)
    is_in_work = host is not None and drain_requests.STATE_LABEL in host.labels
    is_open = not pod.cordoned and (host is None or not host.cordoned) and not is_in_work
    if is_open and snapshot.drain_requests is not None and not snapshot.drain_requests:
        return _NOBODY
    found = {Cause.CORDON} if pod.cordoned else set()
    is_kept = (snapshot.drain_requests is None or is_in_work) and Cause.DRAIN_REQUEST in member.drained_for
    if is_kept or snapshot.drain_request_of(pod) is not None:
        found.add(Cause.DRAIN_REQUEST)
    return frozenset(found | {Cause.NODE_CORDON} if host is not None and host.cordoned else found)


def _updates(
    snapshot: Snapshot, staying: Sequence[Member], desired: int, repaired: int, others: int, now: datetime
) -> frozenset[str]:
    known = pod_state.known(staying, snapshot.owner)
    outdated = [
        member
        for member in rolling_update.outdated(staying, snapshot.nodeset, snapshot.revision, known)
        # Its record would be deleted, and with it somebody else's drain, which the record no longer shows.
        if not pod_condition.previous_foreign_reason(member)
    ]
    if not outdated:
        return frozenset()
    begun = {member.name for member in outdated if Cause.UPDATE in member.drained_for}
    serving = sum(1 for member in staying if member.name not in begun and serves(member, snapshot, now))
    going = repairs.terminating_count(snapshot, now)
    old = {member.name for member in outdated}
    coming = sum(1 for member in staying if member.name not in old and may_come_up(member, snapshot, now))
    return rolling_update.choose(
        outdated,
        allowed=max(0, rolling_update.budget(snapshot.nodeset, desired) - repaired),
        unavailable=max(0, desired - repaired - serving),
        under_way=going + others + coming,
        begun=begun,
        known=known,
        # Not `serves`: a node that only a drain of the operator makes unavailable returns with an undrain, and is not
        # broken.
        healthy=may_serve,
        rank=lambda member: victims.rank(member, now),
    )
