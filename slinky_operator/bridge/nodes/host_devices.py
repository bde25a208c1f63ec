"""Devices of Kubernetes Nodes, and those of them that pods have which Slurm has not placed: from caches.

To look at the claims of 5,000 Nodes takes a quarter of a second. So what was found is kept until a claim changes there,
or for a while: a claim may be shown before the pod that names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from slinky_operator.bridge.caches import OF_NODE
from slinky_operator.bridge.device_claims import holders, is_of_bridge
from slinky_operator.bridge.devices import DeviceClass, DeviceKey, NodeDevices, devices_of
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object

EMPTY_S: Final = 300.0
"""Seconds for which it is believed that no other pod has a device of a Node, if no claim changes there."""

FOUND_S: Final = 10.0
"""The same if some has."""

REMEMBERED: Final = 20_000
"""Nodes of which it is kept."""


class HostDevices:
    """Reads devices of Nodes.

    Parameters
    ----------
    slices, claims, pods
        Caches of ResourceSlices, of ResourceClaims, and of pods that Slurm places.
    """

    def __init__(self, slices: Store, claims: Store, pods: Store) -> None:
        self._slices = slices
        self._claims = claims
        self._pods = pods
        self._known: dict[str, tuple[NodeDevices, float, frozenset[DeviceKey]]] = {}

    def changed(self, node: str) -> None:
        """A claim with devices of a Node has changed."""
        _ = self._known.pop(node, None)

    def slices(self, node: str) -> list[Object]:
        """ResourceSlices that name a Node."""
        return self._slices.find(OF_NODE, node)

    def of(self, slices: Sequence[Object], classes: Sequence[DeviceClass]) -> NodeDevices:
        """The devices that Slurm may give away."""
        return devices_of(slices, classes)

    def foreign(self, node: str, devices: NodeDevices, now: float) -> frozenset[DeviceKey]:
        """Those of the devices of a Node that a claim has which is not of the bridge."""
        known = self._known.get(node)
        if known is None or known[0] is not devices or now - known[1] >= (FOUND_S if known[2] else EMPTY_S):
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            known = self._known[node] = devices, now, self._foreign(devices)
        return known[2]

    def _foreign(self, devices: NodeDevices) -> frozenset[DeviceKey]:
        own = {one.key for one in devices.order}
        held = holders({(one.driver, one.pool) for one in devices.order}, self._claims)
        return frozenset(
            place
            for place, claims in held.items()
            if place in own and not all(is_of_bridge(claim, self._pods) for claim in claims)
        )
