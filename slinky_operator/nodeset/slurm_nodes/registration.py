"""Nodes that Slurm has drained because their slurmd registered with less than their record says.

slurmctld compares what a slurmd finds on its machine with the record, which a dynamic node has from the `--conf` of its
first registration. If memory, CPUs or GRES fall short, it drains the node, sets INVALID_REG and writes its own text as
the reason, over any other, at each such registration. Such a drain has no owner: neither the operator nor an
administrator. Until the slurmd registers with sufficient values, the node cannot be undrained (UNDRAIN and RESUME are
rejected), and the record keeps its values as long as it exists. After that Slurm clears INVALID_REG and leaves the
drain. Jobs on the node continue throughout. Measured with 24.11 and 26.05.

An administrator who drains such a node writes another reason: then the drain is theirs. If the node was drained before,
slurmctld overwrites that reason; the pod condition (`pod_condition`) still shows it, and the drain stays theirs.
"""

from __future__ import annotations

import re
from typing import Final

from slurm_client.models import Node

INVALID: Final = "INVALID_REG"
"""The flag in a node's state."""

_SHORTFALL: Final = re.compile(
    r"Low socket\*core\*thread count"
    r"|Low CPUs"
    r"|Low TmpDisk"
    r"|Low RealMemory \(reported:[0-9]+ < [0-9.]+% of configured:[0-9]+\)"
    r"|[^ ,]+ count (?:reported lower than configured|too low) \([0-9]+ < [0-9]+\)"
)
"""slurmctld's text about one value that falls short, in both versions."""


def is_invalid(node: Node) -> bool:
    """Whether slurmctld rejects the node's last registration: it gets no jobs, whether it is drained or not."""
    return INVALID in node.state.flags


def has_slurms_words(reason: str) -> bool:
    """Whether a reason is slurmctld's own text about a registration."""
    return all(_SHORTFALL.fullmatch(part) for part in reason.split(", "))


def is_slurms_drain(node: Node) -> bool:
    """Whether slurmctld itself drained the node for a registration, and nobody has taken the drain over since."""
    return node.is_drain and has_slurms_words(node.reason)


def is_rejected(node: Node) -> bool:
    """Whether a node is out of use for its registration, or still is although the registration is valid again."""
    flags = node.state.flags
    # Of each node several times in a pass, and most have neither.
    return INVALID in flags or ("DRAIN" in flags and is_slurms_drain(node))


def is_stale_drain(node: Node) -> bool:
    """Whether such a drain remains although the slurmd has registered well since: the node may be undrained."""
    return is_slurms_drain(node) and not is_invalid(node)
