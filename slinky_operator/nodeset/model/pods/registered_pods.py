"""Pods that have registered with Slurm, as the NodeSet's status records them: one write for many pods.

A pod of which that is recorded may have held a job, whatever Slurm shows later. Of many pods that come at once it is
recorded here first, as ranges of ordinals, in the status that a pass writes anyway; when all is quiet, it is written on
the pods (`planning.registrations`), and leaves the status.

An ordinal does not tell a pod from its successor. So the record has the time at which the youngest of the pods was
created: a pod created later is not one of them. A record that lags behind can at worst name a successor that was
created before that; then a slurmd that never registers is left alone, and nothing is deleted.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from slinky_api.v1alpha1.nodeset.status import LONGEST_ORDINALS, RegisteredPods
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.reconcile.text import moment

_RANGE: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Marking:
    """When it is written on pods themselves that they have registered."""

    at_once: int = 20
    """So many pods are marked as soon as they have registered, if no more are on their way."""
    quiet: timedelta = timedelta(seconds=30)
    """Time since the last pod was created after which more are marked."""


@dataclass(frozen=True, slots=True)
class RecordedPods:
    """The pods that a status names."""

    ranges: tuple[tuple[int, int], ...] = ()
    """First and last ordinals, ascending."""
    until: datetime | None = None
    """When the youngest of them was created."""

    def has(self, pod: Pod) -> bool:
        """Whether a pod is one of them."""
        if pod.ordinal is None or pod.created_at is None or self.until is None or pod.created_at > self.until:
            return False
        place = bisect_right(self.ranges, (pod.ordinal, 10**9)) - 1
        return place >= 0 and self.ranges[place][0] <= pod.ordinal <= self.ranges[place][1]


def read(stored: RegisteredPods | None) -> RecordedPods:
    """Read the record of a status; without one it names nothing."""
    if stored is None:
        return RecordedPods()
    found = [_RANGE.fullmatch(part) for part in stored.ordinals[:LONGEST_ORDINALS].split(",")]
    ranges = sorted((int(one[1]), int(one[2] or one[1])) for one in found if one is not None)
    until = moment(stored.created_until)
    return RecordedPods(tuple(ranges), until if until is not None and until.tzinfo is not None else None)


def record(pods: Iterable[Pod]) -> tuple[RegisteredPods | None, tuple[Pod, ...]]:
    """Record pods.

    Parameters
    ----------
    pods
        Pods that have registered.

    Returns
    -------
    tuple
        The record, None without any pod; and the pods that it cannot name: they have no ordinal, or there is no room.
    """
    given = tuple(pods)
    named = sorted((one for one in given if one.ordinal is not None and one.created_at is not None), key=_ordinal)
    texts: list[str] = []
    kept: list[Pod] = []
    length = 0
    for run in _runs(named):
        text = f"{run[0].ordinal}" if run[0].ordinal == run[-1].ordinal else f"{run[0].ordinal}-{run[-1].ordinal}"
        if length + len(text) + 1 > LONGEST_ORDINALS:
            break
        length += len(text) + 1
        texts.append(text)
        kept += run
    uids = {one.uid for one in kept}
    left = tuple(one for one in given if one.uid not in uids)
    if not kept:
        return None, left
    until = max(one.created_at for one in kept if one.created_at is not None).astimezone(UTC)
    return RegisteredPods(ordinals=",".join(texts), created_until=until.strftime("%Y-%m-%dT%H:%M:%SZ")), left


def _ordinal(pod: Pod) -> int:
    return pod.ordinal if pod.ordinal is not None else -1


def _runs(pods: Iterable[Pod]) -> list[list[Pod]]:
    """Pods with ordinals that follow each other, together."""
    found: list[list[Pod]] = []
    for pod in pods:
        if found and _ordinal(pod) - _ordinal(found[-1][-1]) <= 1:
            found[-1].append(pod)
        else:
            found.append([pod])
    return found
