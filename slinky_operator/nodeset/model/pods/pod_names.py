"""The slots of a NodeSet's pods, and the names of the pods in Kubernetes and of their nodes in Slurm.

A pod and its Slurm node may have different names. With ordinals both are `<nodeset>-<n>`; with one pod per matching
Node the pod is `<nodeset>-<node>`, since several NodeSets may have a pod on one Node.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.spec import ScalingMode

LONGEST_NAME: Final = 63
"""The limit of a label's value, as which a pod's name is used too."""

_HASH_LENGTH: Final = 8
_NODE_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class PodSlot:
    """A slot for one pod."""

    pod: str
    """Name of the pod."""
    node: str
    """Name of its Slurm node, which is the pod's host name too."""
    ordinal: int | None = None
    host: str = ""
    """The Kubernetes Node it belongs to; empty if it may be any."""


def of_ordinal(nodeset: NodeSet, ordinal: int, host: str = "") -> PodSlot:
    """The slot of an ordinal; `host` is the Kubernetes Node it is pinned to, if any."""
    name = numbered(nodeset.name, ordinal, nodeset.spec.ordinal_padding)
    return PodSlot(name, name, ordinal, host)


def is_node_name(text: str) -> bool:
    """Whether a node can have this name: it is a pod's host name, and must have no other meaning to Slurm."""
    return _NODE_NAME.fullmatch(text) is not None and text not in {"all", "default", "localhost"}


def pod_name(nodeset: NodeSet, node: str) -> str:
    """Name of this NodeSet's pod for a Slurm node."""
    if nodeset.mode is ScalingMode.STATEFUL_SET:
        return node
    whole = f"{nodeset.name}-{node}"
    if len(whole) <= LONGEST_NAME:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{whole[: LONGEST_NAME - _HASH_LENGTH - 1].rstrip('-')}-{digest}"


def numbered(nodeset: str, ordinal: int, padding: int = 0) -> str:
    """Name of the pod with an ordinal, written with at least `padding` digits."""
    return f"{nodeset}-{ordinal:0{max(padding, 1)}d}"


def ordinal(nodeset: str, pod: str) -> int | None:
    """The ordinal in a name, or None if the name has none."""
    head, dash, digits = pod.rpartition("-")
    if not dash or head != nodeset or not digits.isascii() or not digits.isdigit():
        return None
    return int(digits)


def lowest_free(taken: Collection[int], count: int) -> list[int]:
    """The lowest free ordinals, in order."""
    held = frozenset(taken)
    found: list[int] = []
    candidate = 0
    while len(found) < count:
        if candidate not in held:
            found.append(candidate)
        candidate += 1
    return found
