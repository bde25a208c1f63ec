"""Asks the API server whether it reaches the kubelet API, beside the passes, which find the last answer here.

Passes bring the question about: so it is asked by the leader only, and only while a Cluster has virtual Nodes. A way
that works is rarely tried again; one that fails is tried twice before it counts as closed, and then every two minutes.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from slinky_api.v1alpha1.cluster.status import KubeletApiStatus
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Key, Store, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.virtual_nodes.arrival import PATH
from slinky_operator.virtual_nodes.nodes.model.reachability import Way, verdict
from slinky_operator.virtual_nodes.nodes.model.wishes import host_of

logger = logging.getLogger(__name__)

OPEN_EVERY_S: Final = 900.0
"""Seconds between questions while the API server arrives."""

CLOSED_EVERY_S: Final = 120.0
"""The same while it does not, or may not be asked: somebody may be about to mend it."""

AGAIN_S: Final = 30.0
"""Seconds until the next question after one without an answer: the API server is busy, or away."""

CONFIRM_S: Final = 15.0
"""Seconds after which a way that seems closed is tried once more: that of a pod that has just started opens late."""

PATIENCE_S: Final = 45.0
"""Seconds for an answer: API servers wait 30 s for a connection, and 10 s for TLS."""

LONGEST_ANSWER: Final = 4_096
"""Bytes of an answer; the operator's has 60."""


class Proxy(Protocol):
    """What is used of a client."""

    async def ask_pod(self, namespace: str, pod: str, port: int, path: str, *, most: int) -> Object:
        """Ask a pod through the API server."""
        ...


class ReachabilityPoll:
    """The last answer, and when the question is due again.

    Parameters
    ----------
    kube
        A client whose calls may take `PATIENCE_S`.
    way
        What is asked about; None if this process does not know its pod: then nothing is asked.
    clusters
        The cache of Clusters: those that have virtual Nodes are queued when the answer changes.
    clock, sleep
        Monotonic seconds, and how to let them pass.
    """

    def __init__(
        self,
        kube: Proxy,
        way: Way | None,
        clusters: Store,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._kube = kube
        self._way = way
        self._clusters = clusters
        self._clock, self._sleep = clock, sleep
        self._due = -math.inf
        self._woken = asyncio.Event()
        self._tell: Callable[[Key], None] = lambda _key: None
        self.known: KubeletApiStatus | None = None
        """The last answer; None before the first."""

    def subscribe(self, tell: Callable[[Key], None]) -> None:
        """Call `tell` with the key of each Cluster with virtual Nodes after another answer than the last."""
        self._tell = tell

    def ask(self) -> None:
        """Let the API server be asked if it is time."""
        if self._way is not None and self._clock() >= self._due:
            self._woken.set()

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            _ = await self._woken.wait()
            if self._way is not None:
                await self._question(self._way)
            # Passes that came meanwhile have asked for the answer that is there now.
            self._woken.clear()

    async def _question(self, way: Way) -> None:
        try:
            found = await self._asked(way)
            if found is not None and found.reachable is False and not self._is_closed:
                await self._sleep(CONFIRM_S)
                found = await self._asked(way)
        except Exception:
            # A bug; what is known stays, and the question is repeated.
            logger.exception("the API server was not asked whether it reaches %s", way.end)
            found = None
        self._due = self._clock() + _pause(found)
        if found is not None and found != self.known:
            self.known = found
            for cluster in self._clusters:
                if host_of(cluster) is not None:
                    self._tell(key_of(cluster))

    @property
    def _is_closed(self) -> bool:
        return self.known is not None and self.known.reachable is False

    async def _asked(self, way: Way) -> KubeletApiStatus | None:
        try:
            answer: Object | errors.KubeError = await self._kube.ask_pod(
                way.namespace, way.pod, way.port, PATH, most=LONGEST_ANSWER
            )
        except errors.KubeError as error:
            answer = error
        found = verdict(way, answer, PATIENCE_S)
        if found is None:
            logger.info("whether the API server reaches %s is not known: %s", way.end, answer)
        return found


def _pause(found: KubeletApiStatus | None) -> float:
    if found is None:
        return AGAIN_S
    return OPEN_EVERY_S if found.reachable else CLOSED_EVERY_S
