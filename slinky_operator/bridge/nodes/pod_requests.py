"""Reads what pods that Slurm has not placed request on a Kubernetes Node: rarely, and few Nodes at a time.

Nobody watches all pods of a cluster for this. A Node's pods are listed when it is to become a node of Slurm, and again
each `EVERY_S`; each `URGENT_S` while it is none, as others may have left too little of it. For all Clusters together at
most `A_SECOND` lists are made a second: 5,000 Nodes are 5,000 lists in the first 17 minutes, and 1.4 a second later on.
The API server has an index of pods by Node.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from slinky_operator.bridge.nodes.model.hosts import Host
from slinky_operator.bridge.nodes.model.sizes import Requests, requests_of
from slinky_operator.kube.objects import Page
from slinky_operator.kube.resources import PODS, Resource
from slinky_operator.reconcile.batches import gather_limited

logger = logging.getLogger(__name__)

EVERY_S: Final = 3600.0
"""Seconds for which what was read counts of a Node that is a node of Slurm."""

URGENT_S: Final = 60.0
"""The same of one that is not."""

A_SECOND: Final = 5.0
"""Lists a second."""

AT_ONCE: Final = 20
"""Lists at a time."""

MOST: Final = 1000
"""Pods of a Node that are read; kubelets run 110 unless configured otherwise."""


class Kube(Protocol):
    """What is used of `kube.client.KubeClient`."""

    async def some(
        self, resource: Resource, namespace: str | None = None, *, field_selector: str | None = None, most: int
    ) -> Page:
        """Read the first objects of a collection."""
        ...


@dataclass(frozen=True, slots=True)
class _Read:
    at: float
    requests: Requests


class PodRequests:
    """What pods of others request, by the uid of their Kubernetes Node.

    Parameters
    ----------
    kube
        Lists pods.
    clock
        Monotonic seconds.
    """

    def __init__(self, kube: Kube, clock: Callable[[], float] = time.monotonic) -> None:
        self._kube = kube
        self._clock = clock
        self._known: dict[str, _Read] = {}
        self._room = float(AT_ONCE)
        self._room_at = clock()
        self.lists = 0
        """Lists that were made."""

    def known(self, host: Host) -> Requests | None:
        """What was read last; None if nothing was."""
        read = self._known.get(host.uid)
        return None if read is None else read.requests

    def keep(self, uids: Iterable[str]) -> None:
        """Forget all Nodes but these."""
        kept = frozenset(uids)
        for uid in self._known.keys() - kept:
            del self._known[uid]

    async def read(self, urgent: Sequence[Host], others: Sequence[Host], resources: Sequence[str]) -> float | None:
        """Read the pods of some Nodes, as many as may be read now.

        Parameters
        ----------
        urgent
            Nodes that are to become nodes of Slurm.
        others
            Nodes that are.
        resources
            Those that count.

        Returns
        -------
        float or None
            Seconds until more may be read, if any waits; None if none does.

        Raises
        ------
        KubeError
            The API server failed or refused for the first of them.
        """
        now = self._clock()
        due = [*self._due(urgent, now, URGENT_S), *self._due(others, now, EVERY_S)]
        self._room = min(AT_ONCE, self._room + (now - self._room_at) * A_SECOND)
        self._room_at = now
        some = due[: int(self._room)]
        self._room -= len(some)
        self.lists += len(some)
        answers = await gather_limited(self._ask(host, resources) for host in some)
        for error in answers:
            if isinstance(error, BaseException):
                raise error
        return max(1.0, (1.0 - self._room) / A_SECOND) if len(due) > len(some) else None

    def _due(self, hosts: Sequence[Host], now: float, valid_s: float) -> list[Host]:
        """Those that were never read, then those that were read long ago."""
        never = float("-inf")
        at = {host.uid: read.at if (read := self._known.get(host.uid)) is not None else never for host in hosts}
        return sorted(
            (host for host in hosts if now - at[host.uid] >= valid_s), key=lambda one: (at[one.uid], one.name)
        )

    async def _ask(self, host: Host, resources: Sequence[str]) -> None:
        running = f"spec.nodeName={host.name},status.phase!=Succeeded,status.phase!=Failed"
        page = await self._kube.some(PODS, field_selector=running, most=MOST)
        if page.next_page:
            logger.warning("Node %s has more than %d pods: those beyond are not counted", host.name, MOST)
        self._known[host.uid] = _Read(self._clock(), requests_of(page.items, resources))
