"""Nodes that Slurm has drained because their slurmd registered with less than their record says.

slurmctld compares what a slurmd finds on its machine with the record, which a dynamic node has from the `--conf` of its
first registration. Where memory, CPUs or GRES fall short it drains the node, sets INVALID_REG and writes its own words
as the reason, over any other, at each such registration. Such a drain is nobody's: neither ours nor an administrator's.
Until the slurmd registers well nothing gives the node back (UNDRAIN and RESUME are refused), and the record keeps its
values as long as it exists. After that Slurm takes back INVALID_REG and leaves the drain standing. Jobs on the node go
on all the while. Measured with 24.11 and 26.05.

An administrator who drains such a node writes other words: then it is their drain. One that was there before has its
words written over by slurmctld; what the pod shows of it (`pod_condition`) tells of it still, and it stays theirs.
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
"""What slurmctld says of one value that falls short, in both versions."""


def is_invalid(node: Node) -> bool:
    """Whether slurmctld does not take the node's last registration, whoever drains it: it gets no job."""
    return INVALID in node.state.flags


def has_slurms_words(reason: str) -> bool:
    """Whether a reason is what slurmctld itself writes about a registration."""
    return all(_SHORTFALL.fullmatch(part) for part in reason.split(", "))


def is_slurms_drain(node: Node) -> bool:
    """Whether slurmctld itself drained the node for a registration, and nobody has taken the drain over since."""
    return node.is_drain and has_slurms_words(node.reason)


def is_rejected(node: Node) -> bool:
    """Whether a node is out of use for its registration, or still is although it has been mended."""
    return is_invalid(node) or is_slurms_drain(node)


def is_outlived(node: Node) -> bool:
    """Whether such a drain stands although the slurmd has registered well since: the node may be given back."""
    return is_slurms_drain(node) and not is_invalid(node)
