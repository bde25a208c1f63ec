"""CPUs, memory and generic resources of a Kubernetes Node that Slurm may give away. Pure.

What the kubelet has to give (`status.allocatable`), less what pods on the Node request that Slurm has not placed:
DaemonSets, slurmds of NodeSets, whatever else runs there. CPUs are rounded down to whole ones, memory to `STEP_MIB`.
When other pods come later, Slurm promises too much for a while: kube-scheduler, which is the judge of room, lets a pod
of the bridge wait with a reason of its own until there is room, and the node gets its new size when it is idle. What a
Node cannot have at all any more, by its allocatable, is another matter: then its node is drained.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from functools import lru_cache
from typing import Any, Final

from slinky_api import labels
from slinky_operator.bridge.devices import DeviceKey, NodeDevices, word_of
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.writes.children import quantity
from slurm_client.models import Node
from slurm_client.notation import gres

REMEMBERED: Final = 1024
"""Sizes that are read once."""

LONGEST_GRES: Final = 512
"""Characters of a text that is remembered with them."""

STEP_MIB: Final = 256
"""Memory is rounded down to this, so that small pods that come and go do not change it."""

MOST_CPUS: Final = 64_000
"""More are refused by Slurm (70,000, measured)."""

MOST_GRES: Final = 1024
"""Of one kind on one node."""

_MIB: Final = Decimal(2**20)
_NONE: Final = Decimal(0)

Requests = Mapping[str, Decimal]
"""By resource, in bytes and units."""


@dataclass(frozen=True, slots=True)
class Size:
    """What a node of Slurm offers."""

    cpus: int
    memory_mib: int
    gres: tuple[tuple[str, int], ...] = ()
    """Kinds, with their type if they have one, and how many: sorted."""
    devices: str = ""
    """The feature that says which devices these are, of those that ResourceClaims may ask for."""

    def fits_into(self, other: Size) -> bool:
        """Whether another size has all of this one."""
        there = dict(other.gres)
        enough = all(there.get(kind, 0) >= count for kind, count in self.gres)
        return self.cpus <= other.cpus and self.memory_mib <= other.memory_mib and enough

    @property
    def shown(self) -> str:
        """For messages."""
        return ", ".join(
            (f"{self.cpus} CPUs", f"{self.memory_mib} MiB", *(f"{kind}:{count}" for kind, count in self.gres))
        )


def size_of(
    allocatable: Requests,
    requests: Requests,
    kinds: Mapping[str, str],
    devices: NodeDevices | None = None,
    left_out: Collection[DeviceKey] = (),
) -> Size | None:
    """What is left of a Node; None if Slurm has no use for so little.

    Parameters
    ----------
    allocatable
        What the kubelet has to give.
    requests
        What others have of it.
    kinds
        Extended resources, with the generic resource that each is.
    devices
        Devices that ResourceClaims may ask for.
    left_out
        Those of them that Slurm does not give away.
    """
    left = {key: amount - requests.get(key, _NONE) for key, amount in allocatable.items()}
    cpus = min(_whole(left.get("cpu", _NONE)), MOST_CPUS)
    memory = _whole(left.get("memory", _NONE) / _MIB) // STEP_MIB * STEP_MIB
    if cpus < 1 or memory < 1:
        return None
    found: dict[str, int] = {}
    for resource, kind in kinds.items():
        count = _whole(left.get(resource, _NONE))
        if count > 0:
            found[kind] = min(found.get(kind, 0) + count, MOST_GRES)
    word = ""
    if devices is not None:
        found |= devices.counts(left_out)
        word = devices.word(left_out)
    return Size(cpus, memory, tuple(sorted(found.items())), word)


def size_in_slurm(node: Node) -> Size:
    """What Slurm shows of a node."""
    read = _size if len(node.gres) <= LONGEST_GRES else _size.__wrapped__
    size, word = read(node.cpus, node.real_memory_mib, node.gres), word_of(node.features)
    return replace(size, devices=word) if word else size


@lru_cache(maxsize=REMEMBERED)
def _size(cpus: int, memory_mib: int, text: str) -> Size:
    """A size from what Slurm shows; machines of one kind show the same."""
    found: dict[str, int] = {}
    try:
        parsed = gres.parse(text)
    except ValueError:
        parsed = ()
    for one in parsed:
        kind = f"{one.name}:{one.type}" if one.type else one.name
        found[kind] = found.get(kind, 0) + one.count
    return Size(cpus, memory_mib, tuple(sorted((kind, count) for kind, count in found.items() if count)))


def requests_of(pods: Iterable[Object], resources: Sequence[str]) -> Requests:
    """What pods request together that Slurm has not placed.

    Parameters
    ----------
    pods
        All pods of a Node that have not ended.
    resources
        Those that count.
    """
    total = dict.fromkeys(resources, _NONE)
    for pod in pods:
        if not is_placed(pod):
            for key in resources:
                total[key] += _request(pod.get("spec") or {}, key)
    return total


def is_placed(pod: Object) -> bool:
    """Whether Slurm has placed a pod: its job holds what it requests."""
    metadata = pod["metadata"]
    own, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return own.get(labels.LABEL_BRIDGE_POD) == "true" and labels.ANNOTATION_BRIDGE_SLURMJOB in annotations


def _request(spec: Mapping[str, Any], key: str) -> Decimal:
    """What a pod requests, as kube-scheduler counts: init containers one by one, sidecars beside all that follow."""
    overhead = quantity((spec.get("overhead") or {}).get(key, 0)) or _NONE
    whole = ((spec.get("resources") or {}).get("requests") or {}).get(key)
    if whole is not None:
        return (quantity(whole) or _NONE) + overhead
    sidecars = most = _NONE
    for container in spec.get("initContainers") or ():
        own = _of_container(container, key)
        if container.get("restartPolicy") == "Always":
            sidecars += own
            most = max(most, sidecars)
        else:
            most = max(most, sidecars + own)
    together = sum((_of_container(one, key) for one in spec.get("containers") or ()), sidecars)
    return max(most, together) + overhead


def _of_container(container: Mapping[str, Any], key: str) -> Decimal:
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return quantity(asked.get(key, 0)) or _NONE


def _whole(number: Decimal) -> int:
    return max(0, int(number.to_integral_value(ROUND_FLOOR)))
