"""Nodes that get no jobs although the operator does not drain them: which, Slurm's reason, who set it and when. Pure.

They are no fault of the Cluster: Slurm serves, and somebody may have drained them on purpose. So they have a condition
of their own, `NodesOutOfService`, and do not degrade the Cluster. Nodes that the operator drains, and those that are
powered down to save energy, are not included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from slinky_api.conditions import Reason
from slinky_operator.cluster.parts.nodes.counting import INVALID
from slinky_operator.reconcile.text import cut, named, stamp
from slinky_operator.slurm.nodes.drain_reasons import PARTING, PREFIX
from slurm_client.models import Node

LONGEST: Final = 120
"""Maximum characters of a node's reason."""

_WORDS: Final = {
    Reason.NODE_DOWN: "down",
    Reason.INVALID_REGISTRATION: "with an invalid registration",
    Reason.FOREIGN_DRAIN: "drained by others",
}
"""Reasons in the order of reporting."""

_ASLEEP: Final = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN", "POWER_UP", "REBOOT_ISSUED"})


def out_of_service(nodes: Iterable[Node]) -> Mapping[Reason, Sequence[Node]]:
    """Nodes that are out of service, by reason, the worst reason first; each in order of name."""
    found: dict[Reason, list[Node]] = {reason: [] for reason in _WORDS}
    for node in nodes:
        reason = _reason(node)
        if reason is not None:
            found[reason].append(node)
    return {reason: sorted(some, key=lambda one: one.name) for reason, some in found.items() if some}


def message(found: Mapping[Reason, Sequence[Node]]) -> str:
    """How many there are, and the first of them with Slurm's reasons."""
    nodes = [node for some in found.values() for node in some]
    return f"{brief(found)}: {named([_text(node) for node in nodes], separator='; ')}"


def brief(found: Mapping[Reason, Sequence[Node]]) -> str:
    """How many there are of each kind."""
    return ", ".join(f"{_number(some)} {_WORDS[reason]}" for reason, some in found.items())


def _number(some: Sequence[Node]) -> str:
    return f"{len(some)} node{'' if len(some) == 1 else 's'}"


def _reason(node: Node) -> Reason | None:
    ours = node.reason.startswith(PREFIX)
    if (node.state.base in {"DOWN", "ERROR"} or "FAIL" in node.state.flags) and not ours:
        return None if not node.state.flags.isdisjoint(_ASLEEP) else Reason.NODE_DOWN
    if INVALID in node.state.flags or node.state.base == "INVALID":
        return Reason.INVALID_REGISTRATION
    foreign = node.is_drain and not ours and node.reason != PARTING
    return Reason.FOREIGN_DRAIN if foreign else None


def _text(node: Node) -> str:
    """Name, state, and Slurm's reason with who set it and when."""
    state = "+".join([node.state.base, *sorted(node.state.flags - {"DYNAMIC_NORM"})])
    why = f": {cut(node.reason, LONGEST)}" if node.reason else ""
    by = f"set by {node.reason_set_by}" if node.reason_set_by else ""
    since = f"since {stamp(node.reason_changed_at)}" if node.reason_changed_at is not None else ""
    tail = " ".join(filter(None, (by, since))) if node.reason else ""
    return f"{node.name} ({state}{why}{f', {tail}' if tail else ''})"
