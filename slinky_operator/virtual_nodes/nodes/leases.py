"""The Leases of virtual Nodes: as long as they are renewed, Kubernetes takes the Nodes for alive.

Renewed in a task of its own, through a client of its own: neither Slurm, nor passes, nor requests of other controllers
delay it. Only the process that leads renews: another one's writes do not pass the fence.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Protocol

from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Creator, Patcher
from slinky_operator.kube.resources import LEASES, VIRTUAL_NODES
from slinky_operator.reconcile.batches import gather_limited
from slinky_operator.virtual_nodes.node_names import virtual_node

logger = logging.getLogger(__name__)

NAMESPACE: Final = "kube-node-lease"

DURATION_S: Final = 40
"""Seconds in the Lease: what kubelets write. Kubernetes waits 40 or 50 s, by its release, for a change."""

RENEW_S: Final = 10.0
"""Seconds between two renewals."""

AGAIN_S: Final = 2.0
"""Seconds until another try after a failure: five of them fit into a minute's patience of Kubernetes."""


class LeaseWriter(Patcher, Creator, Protocol):
    """What is used of a client."""


class NodeLeases:
    """Renews the Leases of all virtual Nodes.

    Parameters
    ----------
    kube
        A client that nobody else uses.
    nodes
        The cache of virtual Nodes.
    now
        The wall clock.
    renewed
        Takes when all were renewed, in seconds since the epoch.
    """

    def __init__(
        self,
        kube: LeaseWriter,
        nodes: Store,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        renewed: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._kube = kube
        self._nodes = nodes
        self._now = now
        self._renewed = renewed
        self._hurried = asyncio.Event()

    def hurry(self) -> None:
        """Renew now: a Node was made."""
        self._hurried.set()

    async def run(self) -> None:
        """Renew until cancelled."""
        while True:
            self._hurried.clear()
            pause = RENEW_S if await self.renew() else AGAIN_S
            try:
                async with asyncio.timeout(pause):
                    _ = await self._hurried.wait()
            except TimeoutError:
                # Nobody was in a hurry: it is time for the next renewal.
                continue

    async def renew(self) -> bool:
        """Renew each Lease once; whether that went well, also for a process that does not lead."""
        nodes = [obj for obj in self._nodes if virtual_node(obj) is not None]
        found = await gather_limited(self._renew(obj) for obj in nodes)
        failed = [error for error in found if isinstance(error, BaseException)]
        if not failed:
            self._renewed(self._now().timestamp())
        others = [error for error in failed if not isinstance(error, errors.Fenced)]
        for error in others[:1]:
            level = errors.level_of(error) if isinstance(error, errors.KubeError) else logging.ERROR
            logger.log(level, "%d of %d Leases of virtual Nodes were not renewed: %s", len(others), len(nodes), error)
        return not others

    async def _renew(self, node: Object) -> None:
        name = str(node["metadata"]["name"])
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": DURATION_S,
            "renewTime": self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        try:
            _ = await self._kube.merge_patch(LEASES, name, {"spec": spec}, NAMESPACE)
        except errors.NotFound:
            _ = await self._kube.create(LEASES, _lease(node, spec), NAMESPACE)


def _lease(node: Object, spec: Object) -> Object:
    """A Lease that is collected with its Node."""
    metadata = node["metadata"]
    owner = {
        "apiVersion": VIRTUAL_NODES.api_version,
        "kind": VIRTUAL_NODES.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": metadata["name"], "namespace": NAMESPACE, "ownerReferences": [owner]},
        "spec": spec,
    }
