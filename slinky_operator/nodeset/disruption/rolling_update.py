"""Which pods are replaced for an update: as many as the budget has left, and no more; and what a new pod is made from.

One budget covers everything that makes a node unavailable: missing, starting, unhealthy, on its way out. A node drained
by an administrator is healthy; were it counted, one drain of theirs would hold up every update for as long as it lasts.
A pod that is new and does not start takes its place in the budget until it does: a bad image stops there.

Pods that an update is not to reach, those below the partition or all while it is paused, are made anew as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from math import ceil

from slinky_api.v1alpha1.nodeset import NodeSet
from slinky_operator.nodeset.disruption.victims import Rank
from slinky_operator.nodeset.model import revision_records
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.revision_records import Revision


def budget(nodeset: NodeSet, desired: int) -> int:
    """How many nodes may be missing at a time: at least one, percentages rounded up."""
    value = nodeset.spec.update_strategy.rolling_update.max_unavailable
    number = ceil(desired * int(value.removesuffix("%")) / 100) if isinstance(value, str) else value
    return max(1, number)


def outdated(members: Iterable[Member], nodeset: NodeSet, revision: Revision, known: Collection[str]) -> list[Member]:
    """The pods an update is to replace, now or later.

    Parameters
    ----------
    members
        Those to choose from.
    nodeset, revision
        What is wanted, and what was before.
    known
        Names of pods that have not registered by what is written on them, and that Slurm knows.
    """
    strategy = nodeset.spec.update_strategy
    if strategy.type == "OnDelete" or strategy.rolling_update.paused:
        return []
    found, unnumbered = [], 0
    for member in sorted(members, key=lambda one: one.pod.name):
        pod = member.pod
        if pod.ordinal is None:
            place, unnumbered = unnumbered, unnumbered + 1
        else:
            place = pod.ordinal
        wanted = revision_records.target(place, nodeset, revision)
        # Below the partition a pod keeps what it has, unless that has never run.
        if pod.revision != wanted and (wanted == revision.hash or has_never_run(pod, known)):
            found.append(member)
    return found


def has_never_run(pod: Pod, known: Collection[str]) -> bool:
    """Whether no slurmd of the pod has ever come up: one stuck on a bad revision has not.

    Slurm may know of one before its kubelet has said that it runs.
    """
    return not pod.registered and pod.slurmd is Slurmd.NEVER and pod.name not in known


def choose(
    outdated: Iterable[Member],
    *,
    allowed: int,
    unavailable: int,
    under_way: int,
    begun: Collection[str],
    known: Collection[str],
    healthy: Callable[[Member], bool],
    rank: Callable[[Member], Rank],
) -> frozenset[str]:
    """Names of the pods to be replaced now.

    Parameters
    ----------
    outdated
        The pods that are to be replaced at all.
    allowed
        The budget.
    unavailable
        How many nodes are missing now, those in `begun` included.
    under_way
        How many pods are going, or are to come up in place of others, `outdated` left out.
    begun
        Names of the pods that are drained for an update already: they stay chosen.
    known
        Names of pods that have not registered by what is written on them, and that Slurm knows.
    healthy
        Whether a pod serves Slurm, or would if we did not drain its node.
    rank
        What goes first, among equals.
    """
    chosen: set[str] = set()
    waiting: list[Member] = []
    for member in outdated:
        if has_never_run(member.pod, known):
            # One that never ran is missing already: replacing it takes nothing from the budget.
            chosen.add(member.name)
        else:
            waiting.append(member)
    # A budget that has become smaller gives back what was begun beyond it.
    going_on = sorted((one for one in waiting if one.name in begun), key=rank)[:allowed]
    chosen.update(one.name for one in going_on)
    # Those that run and do not serve are missing already. But they may come back, all at once if it was slurmctld that
    # was away; those that never ran do not, and neither does what is under way. All together are not to be more than
    # the budget.
    within = max(0, allowed - len(chosen) - under_way)
    waiting = [one for one in waiting if one.name not in begun]
    room = max(0, allowed - unavailable)
    waiting.sort(key=rank)
    chosen.update([one.name for one in waiting if not healthy(one)][:within])
    chosen.update([one.name for one in waiting if healthy(one)][:room])
    return frozenset(chosen)
