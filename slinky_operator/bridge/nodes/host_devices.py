"""Devices of Kubernetes Nodes, and those of them that pods have which Slurm has not placed: from caches."""

from __future__ import annotations

from collections.abc import Sequence

from slinky_operator.bridge.caches import OF_NODE
from slinky_operator.bridge.device_claims import holders, is_of_bridge
from slinky_operator.bridge.devices import DeviceClass, DeviceKey, NodeDevices, devices_of
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object


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

    def slices(self, node: str) -> list[Object]:
        """ResourceSlices that name a Node."""
        return self._slices.find(OF_NODE, node)

    def of(self, slices: Sequence[Object], classes: Sequence[DeviceClass]) -> NodeDevices:
        """The devices that Slurm may give away."""
        return devices_of(slices, classes)

    def foreign(self, devices: NodeDevices) -> frozenset[DeviceKey]:
        """Those of some devices that a claim has which is not of the bridge."""
        if not devices.order:
            return frozenset()
        own = {one.key for one in devices.order}
        held = holders({(one.driver, one.pool) for one in devices.order}, self._claims)
        return frozenset(
            place
            for place, claims in held.items()
            if place in own and not all(is_of_bridge(claim, self._pods) for claim in claims)
        )
