"""Which pods are replaced for an update, within the budget; and which revision a new pod is created from.

One budget covers everything that makes a node unavailable: missing, starting, unhealthy, being deleted. A node drained
by an administrator counts as healthy; otherwise one such drain would block every update for as long as it lasts. A new
pod that does not start uses its part of the budget until it does: so a bad image stops the update.

Pods that an update may not reach, those below the partition or all while it is paused, are recreated from their
revision.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from math import ceil

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.disruption.victims import Rank
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.revisions import revision_records
from slinky_operator.nodeset.model.revisions.revision_records import Revision


def budget(nodeset: NodeSet, desired: int) -> int:
    """How many nodes may be missing at a time: at least one, percentages rounded up."""
    value = nodeset.spec.update_strategy.rolling_update.max_unavailable
    number = ceil(desired * int(value.removesuffix("%")) / 100) if isinstance(value, str) else value
    return max(1, number)


def outdated(members: Iterable[Member], nodeset: NodeSet, revision: Revision, known: Collection[str]) -> list[Member]:
    """The pods an update replaces, now or later.

    Parameters
    ----------
    members
        Those to choose from.
    nodeset, revision
        The wanted spec, and its revisions.
    known
        Names of pods that Slurm knows although their registration is not recorded on them.
    """
    strategy = nodeset.spec.update_strategy
    if strategy.type == "OnDelete" or strategy.rolling_update.paused:
        return []
    numbered: list[tuple[int, Member]] = []
    others: list[Member] = []
    for member in members:
        if member.pod.ordinal is None:
            others.append(member)
        else:
            numbered.append((member.pod.ordinal, member))
    found = []
    for place, member in (*numbered, *enumerate(sorted(others, key=_name))):
        pod = member.pod
        wanted = revision_records.target(place, nodeset, revision)
        # Below the partition a pod keeps its revision, unless its slurmd has never run.
        if pod.revision != wanted and (wanted == revision.hash or has_never_run(pod, known)):
            found.append(member)
    return sorted(found, key=_name)


def _name(member: Member) -> str:
    return member.pod.name


def has_never_run(pod: Pod, known: Collection[str]) -> bool:
    """Whether no slurmd of the pod has ever started, as with a pod stuck on a bad revision.

    Slurm may know of one before its kubelet reports that it runs.
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
    """Names of the pods to replace now.

    Parameters
    ----------
    outdated
        The pods to replace now or later.
    allowed
        The budget.
    unavailable
        How many nodes are missing now, including those in `begun`.
    under_way
        How many pods are being deleted, or are starting in place of others, without those in `outdated`.
    begun
        Names of the pods that are drained for an update already: they stay chosen.
    known
        Names of pods that Slurm knows although their registration is not recorded on them.
    healthy
        Whether a pod serves Slurm, or would if the operator did not drain its node.
    rank
        Order of deletion among equals, lowest first.
    """
    chosen: set[str] = set()
    waiting: list[Member] = []
    for member in outdated:
        if has_never_run(member.pod, known):
            # One that never ran is missing already: replacing it uses nothing of the budget.
            chosen.add(member.name)
        else:
            waiting.append(member)
    # If the budget has become smaller, what was begun beyond it is undone.
    going_on = sorted((one for one in waiting if one.name in begun), key=rank)[:allowed]
    chosen.update(one.name for one in going_on)
    # Those that run and do not serve are missing already. But they may return, all at once if slurmctld was
    # unreachable; those that never ran do not, and neither do those being replaced. The sum of all must not exceed the
    # budget.
    within = max(0, allowed - len(chosen) - under_way)
    waiting = [one for one in waiting if one.name not in begun]
    room = max(0, allowed - unavailable)
    waiting.sort(key=rank)
    chosen.update([one.name for one in waiting if not healthy(one)][:within])
    chosen.update([one.name for one in waiting if healthy(one)][:room])
    return frozenset(chosen)
