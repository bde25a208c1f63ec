"""A node selector as partition and features.

The old operators submitted a job from, or to, the virtual node that the selector chose. Which partition that stood for
is in a label of theirs, or the site says it, or the label has the name of a partition: a virtual node was called
``slurm-<host>-<partition>``. A label of which none of that is known is refused, since a job that ignores it might run
anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.sylabs.translation.site import Placement

FIELD: Final = "spec.nodeSelector"

_PARTITION: Final = "wlm.sylabs.io/partition"
_EVERYWHERE: Final = frozenset(
    {
        "type=virtual-kubelet",
        "slurm.sylabs.io/workload-manager=slurm",
        "slurm.sylabs.io/integration-type=local",
    }
)
"""Labels that all virtual nodes had."""

_HOSTNAME: Final = "kubernetes.io/hostname"
_VIRTUAL_NODE: Final = "slurm-"
"""What names of virtual nodes began with."""
_OWN: Final = "wlm.sylabs.io/"

_LIMITS: Final = frozenset(f"wlm.sylabs.io/{name}" for name in ("nodes", "cpu-per-node", "mem-per-node", "wall-time"))


@dataclass(frozen=True, slots=True)
class Selected:
    """What a node selector asks Slurm for.

    Parameters
    ----------
    partition
        The partition, if one is chosen.
    features
        Features that nodes must have, if any.
    without_effect
        Labels that change nothing about the job.
    """

    partition: str | None
    features: str | None
    without_effect: tuple[str, ...]


def possible_partitions(selector: Mapping[str, str], labels: Mapping[str, Placement]) -> frozenset[str]:
    """Names of partitions that labels may stand for, if there are such: whether there are, Slurm says."""
    return frozenset(
        name
        for label, value in selector.items()
        if not _is_known(label, value, labels)
        for name in _possible(label, value)
    )


def selected(
    selector: Mapping[str, str],
    labels: Mapping[str, Placement],
    partitions: Collection[str] = (),
    cluster: str = "",
) -> Selected:
    """Translate a node selector.

    Parameters
    ----------
    selector
        Labels and the values they must have.
    labels
        What the site says about ``label=value``.
    partitions
        Of `possible_partitions`, those that Slurm has.
    cluster
        Namespace and name of the Cluster whose labels these are; empty if it is not known.

    Raises
    ------
    InvalidJob
        For a label of which nobody has said what it means, and for two partitions.
    """
    partition = ""
    features: list[str] = []
    idle = []
    for name, value in selector.items():
        placement = _placement(name, value, labels, partitions, cluster)
        if placement.partition and partition not in {"", placement.partition}:
            reason = f"chooses the partitions {partition[:60]} and {placement.partition[:60]}: remove one of them"
            raise InvalidJob(_path(name), reason)
        partition = placement.partition or partition
        if placement.features and placement.features not in features:
            features.append(placement.features)
        if placement == Placement():
            idle.append(f"{_path(name)}: all nodes are meant by {value[:60]}")
    return Selected(partition or None, _joined(features), tuple(idle))


def _is_known(name: str, value: str, labels: Mapping[str, Placement]) -> bool:
    return f"{name}={value}" in labels or f"{name}={value}" in _EVERYWHERE or name == _PARTITION


def _possible(name: str, value: str) -> tuple[str, ...]:
    """Partitions that a label may stand for, the most likely first."""
    if name == _HOSTNAME and value.startswith(_VIRTUAL_NODE):
        # Both the host and the partition may have dashes in their names.
        parts = value.removeprefix(_VIRTUAL_NODE).split("-")
        return tuple("-".join(parts[first:]) for first in range(1, len(parts)))
    if name.startswith(_OWN) and name not in _LIMITS:
        return (value,)
    return ()


def _placement(
    name: str, value: str, labels: Mapping[str, Placement], partitions: Collection[str], cluster: str
) -> Placement:
    label = f"{name}={value}"
    if label in labels:
        return labels[label]
    if label in _EVERYWHERE:
        return Placement()
    if name == _PARTITION:
        return Placement(partition=value)
    possible = _possible(name, value)
    for one in possible:
        if one in partitions:
            return Placement(partition=one)
    if name in _LIMITS:
        reason = f"names a partition by its limits, which may change: write {_PARTITION}"
    elif name == "slurm.sylabs.io/integration-type":
        reason = "jobs are not submitted by ssh: remove the label"
    else:
        looked = f"Slurm has no partition {possible[-1][:60]}, and " if possible else ""
        whose = f" of Cluster {cluster}" if cluster else ""
        reason = (
            f"{looked}the administrator has not said what {value[:60]} means to Slurm (spec.jobs.sylabs.labels{whose}):"
            f" write {_PARTITION}, or --constraint in the script"
        )
    raise InvalidJob(_path(name), reason)


def _joined(features: list[str]) -> str | None:
    if len(features) > 1:
        # Each may be an expression of its own: a100|h100.
        return "&".join(f"({each})" if "|" in each else each for each in features)
    return features[0] if features else None


def _path(name: str) -> str:
    return f"{FIELD}[{name[:100]}]"
