"""Devices of Kubernetes Nodes in the order in which Slurm numbers them. Pure.

Slurm numbers the devices of a node by their place in the line that made it, over all types of one name. The order is:
by generic resource with its type, driver, pool, and name, in which gpu-2 stands before gpu-10. It counts all devices
that ResourceSlices show of a Node. Of these some may be left out in Slurm, since pods that it has not placed have them.

So the node in Slurm has a feature that says what it was made of: `slurm-devices.<hash of the order>.<bits>`. As long as
the hash is that of the Node's devices, an index is a device for certain. It is a feature for the same reason as the
mark (`features`): Slurm takes it in the moment in which the node is made.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from slinky_api.v1alpha1.cluster.jobs import Bridge
from slinky_operator.bridge.features import DEVICES_PREFIX
from slinky_operator.kube.objects import Object

MOST: Final = 256
"""Devices of a Node that have a number; further ones are left out."""

LONGEST_VALUE: Final = 64
"""Characters of an attribute that may decide on the class of a device."""

_WORD: Final = re.compile(r"slurm-devices\.([0-9a-f]{12})\.([0-9a-f]{1,64})", re.ASCII)
_DIGITS: Final = re.compile(r"([0-9]+)", re.ASCII)
_KEEPS_AWAY: Final = frozenset({"NoSchedule", "NoExecute"})
_SPECIAL: Final = (
    "consumesCounters",
    "allowMultipleAllocations",
    "bindingConditions",
    "bindsToNode",
    "nodeName",
    "nodeSelector",
    "allNodes",
)
"""Fields of devices that Slurm cannot count one by one: parts of others, shared ones, and those of several Nodes."""

DeviceKey = tuple[str, str, str]
"""Driver, pool and name of a device, which nothing else has."""


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A class of devices as a generic resource of Slurm."""

    name: str
    kind: str
    """The generic resource, with its type if it has one."""
    driver: str
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a Node."""

    kind: str
    """The generic resource that it is, with its type if it has one."""
    driver: str
    pool: str
    name: str

    @property
    def key(self) -> DeviceKey:
        """What it is called in allocations."""
        return self.driver, self.pool, self.name


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices of a Node."""

    order: tuple[Device, ...] = ()
    """In the order of Slurm."""
    mark: str = ""
    """A hash of the order; empty without devices."""
    problem: str = ""
    """Why they are not known now; empty if they are."""

    @classmethod
    def of(cls, devices: Iterable[Device]) -> Self:
        """Put devices in order."""
        order = tuple(sorted(devices, key=_in_order)[:MOST])
        lines = "\n".join("/".join((one.kind, *one.key)) for one in order)
        return cls(order, hashlib.sha256(lines.encode()).hexdigest()[:12] if order else "")

    def word(self, left_out: Collection[DeviceKey] = ()) -> str:
        """The feature of a node of Slurm with these devices but some; empty if none is left."""
        bits = sum(1 << at for at, one in enumerate(self.order) if one.key not in left_out)
        return f"{DEVICES_PREFIX}{self.mark}.{bits:x}" if bits else ""

    def counts(self, left_out: Collection[DeviceKey] = ()) -> dict[str, int]:
        """How many of each generic resource, but for some."""
        found: dict[str, int] = {}
        for one in self.order:
            if one.key not in left_out:
                found[one.kind] = found.get(one.kind, 0) + 1
        return found

    def numbered(self, word: str, name: str) -> tuple[Device, ...] | None:
        """The devices that Slurm numbers from 0 on under one name; None if the node was made of others.

        Parameters
        ----------
        word
            The feature of the node of Slurm.
        name
            Of the generic resource, without its type.
        """
        match = _WORD.fullmatch(word)
        if match is None or self.problem or match[1] != self.mark:
            return None
        bits = int(match[2], 16)
        return tuple(one for at, one in enumerate(self.order) if bits >> at & 1 and one.kind.partition(":")[0] == name)


def classes_of(bridge: Bridge) -> tuple[DeviceClass, ...]:
    """The classes of devices that a Cluster wants Slurm to count."""
    return tuple(
        DeviceClass(one.device_class, one.gres, one.driver or one.device_class, one.attributes or {})
        for one in bridge.gres
        if one.device_class is not None
    )


def word_of(features: Iterable[str]) -> str:
    """The feature of a node of Slurm that says what its devices are; empty without."""
    return next((one for one in features if one.startswith(DEVICES_PREFIX)), "")


def readable_word(features: Iterable[str]) -> str:
    """That feature if it can be read; empty otherwise, since it numbers no device and may be of any length."""
    word = word_of(features)
    return word if _WORD.fullmatch(word) else ""


def mark_of_word(word: str) -> str:
    """The hash of the order in such a feature; empty if it is none."""
    match = _WORD.fullmatch(word)
    return "" if match is None else match[1]


def devices_of(slices: Iterable[Object], classes: Sequence[DeviceClass]) -> NodeDevices:
    """The devices of a Node.

    Parameters
    ----------
    slices
        All ResourceSlices that name the Node, shortened (`prune_slice`).
    classes
        What counts: a device is of the first class that fits.
    """
    drivers = {one.driver for one in classes}
    pools: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for obj in slices:
        spec = obj.get("spec") or {}
        if spec.get("driver") in drivers:
            pools.setdefault((spec["driver"], str((spec.get("pool") or {}).get("name"))), []).append(spec)
    found: dict[DeviceKey, Device] = {}
    for (driver, pool), specs in pools.items():
        newest = max(_number(spec, "generation") for spec in specs)
        current = [spec for spec in specs if _number(spec, "generation") == newest]
        count = max(_number(spec, "resourceSliceCount") for spec in current)
        if len(current) != count:
            words = f"its pool {pool[:100]} of driver {driver[:63]} has {len(current)} of {count} ResourceSlices"
            return NodeDevices(problem=words)
        for device in (one for spec in current for one in spec.get("devices") or ()):
            kind = _kind(device, driver, classes)
            if kind:
                name = str(device.get("name"))
                found[driver, pool, name] = Device(kind, driver, pool, name)
    return NodeDevices.of(found.values())


def prune_slice(obj: Object) -> None:
    """Shorten a ResourceSlice, in place, to the devices that Slurm may give away, and what their class depends on.

    One that nobody shall use (a taint), that is a part of others, or that several may share, is not kept.
    """
    spec = obj.get("spec") or {}
    kept = {key: spec[key] for key in ("driver", "pool", "nodeName") if key in spec}
    kept["devices"] = [
        {"name": one.get("name"), "attributes": _attributes(one, str(spec.get("driver")))}
        for one in spec.get("devices") or ()
        if _is_plain(one)
    ]
    obj["spec"] = kept


def by_node(obj: Object) -> list[str]:
    """Indexer: the Node whose devices a ResourceSlice shows; none for devices that several Nodes reach."""
    name = (obj.get("spec") or {}).get("nodeName")
    return [name] if isinstance(name, str) and name else []


def _is_plain(device: Mapping[str, Any]) -> bool:
    taints = device.get("taints") or ()
    return not any(device.get(key) for key in _SPECIAL) and not any(
        isinstance(one, dict) and one.get("effect") in _KEEPS_AWAY for one in taints
    )


def _attributes(device: Mapping[str, Any], driver: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in (device.get("attributes") or {}).items():
        given = next(iter(value.values()), None) if isinstance(value, dict) else None
        text = str(given).lower() if isinstance(given, bool) else str(given)
        if isinstance(given, str | int) and len(text) <= LONGEST_VALUE:
            found[str(key).removeprefix(f"{driver}/")] = text
    return found


def _kind(device: Mapping[str, Any], driver: str, classes: Sequence[DeviceClass]) -> str:
    attributes = device.get("attributes") or {}
    for one in classes:
        wanted = {key.removeprefix(f"{driver}/"): value for key, value in one.attributes.items()}
        if one.driver == driver and wanted.items() <= attributes.items():
            return one.kind
    return ""


def _number(spec: Mapping[str, Any], key: str) -> int:
    found = (spec.get("pool") or {}).get(key)
    return found if isinstance(found, int) else 0


def _in_order(one: Device) -> tuple[object, ...]:
    words = _DIGITS.split(one.name)
    natural = tuple(int(word) if at % 2 else word for at, word in enumerate(words))
    return one.kind, one.driver, one.pool, natural, one.name
