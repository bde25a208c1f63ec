"""Which pods are replaced for an update: as many as the budget has left, and no more.

One budget covers everything that makes a node unavailable: missing, starting, unhealthy, on its way out. A node drained
by an administrator is healthy; were it counted, one drain of theirs would hold up every update for as long as it lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from math import ceil

from slinky_api.v1alpha1.nodeset import NodeSet
from slinky_operator.nodeset.facts import Pod, Slurmd
from slinky_operator.nodeset.victims import Rank


def budget(nodeset: NodeSet, desired: int) -> int:
    """How many nodes may be missing at a time: at least one, percentages rounded up."""
    value = nodeset.spec.update_strategy.rolling_update.max_unavailable
    number = ceil(desired * int(value.removesuffix("%")) / 100) if isinstance(value, str) else value
    return max(1, number)


def is_outdated(pod: Pod, revision: str, nodeset: NodeSet) -> bool:
    """Whether an update is to replace the pod, now or later."""
    strategy = nodeset.spec.update_strategy
    if strategy.type == "OnDelete" or strategy.rolling_update.paused or pod.revision == revision:
        return False
    return pod.ordinal is None or pod.ordinal >= strategy.rolling_update.partition


def choose(
    outdated: Iterable[Pod],
    *,
    allowed: int,
    unavailable: int,
    begun: Collection[str],
    available: Callable[[Pod], bool],
    rank: Callable[[Pod], Rank],
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
    begun
        Names of the pods that are drained for an update already: they stay chosen.
    available
        Whether a pod serves Slurm.
    rank
        What goes first, among equals.
    """
    chosen: set[str] = set()
    waiting: list[Pod] = []
    for pod in outdated:
        if not pod.registered and pod.slurmd is Slurmd.NEVER:
            # One that never ran is missing already: replacing it takes nothing from the budget.
            chosen.add(pod.name)
        else:
            waiting.append(pod)
    # A budget that has become smaller gives back what was begun beyond it.
    going_on = sorted((pod for pod in waiting if pod.name in begun), key=rank)[:allowed]
    chosen.update(pod.name for pod in going_on)
    waiting = [pod for pod in waiting if pod.name not in begun]
    room = max(0, allowed - unavailable)
    # Those that do not serve are counted as missing already, but may come back: they go one for one, like the others.
    waiting.sort(key=lambda pod: (available(pod), rank(pod)))
    broken = [pod for pod in waiting if not available(pod)]
    within = allowed - len(going_on)
    chosen.update(pod.name for pod in broken[:within])
    healthy = [pod for pod in waiting if available(pod)]
    chosen.update(pod.name for pod in healthy[:room])
    return frozenset(chosen)
