"""Nodes that take no jobs: which, Slurm's reason, who said so and since when. Pure.

Nodes with the same state, reason and person are one row, so that a rack that was drained at once is one.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from kubectl_slurm.facts.objects import Condition
from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.screen.blocks import Line, Mood, Row, Section, table
from kubectl_slurm.screen.words import ago, clip, nodes, number
from slinky_operator.slurm.nodes.drain_reasons import PARTING, PREFIX
from slurm_client.models import Node

MOST_GROUPS: Final = 15

ASLEEP: Final = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN", "POWER_UP"})
"""Flags of nodes that sleep to save energy: a job wakes them."""

_SHOWN: Final = ("DRAIN", "FAIL", "INVALID_REG", "NOT_RESPONDING", "MAINTENANCE", "REBOOT_ISSUED", "COMPLETING")


def is_out(node: Node) -> bool:
    """Whether a node takes no jobs, and not to save energy or for a reservation."""
    if node.state.base in {"FUTURE", "UNKNOWN"} or not node.state.flags.isdisjoint(ASLEEP):
        return False
    return not node.is_usable and (node.state.base in {"DOWN", "ERROR", "INVALID"} or _flags(node) != "")


def state(node: Node) -> str:
    """Its state in a few words: ``DOWN``, ``MIXED+DRAIN``."""
    flags = _flags(node)
    return f"{node.state.base}+{flags}" if flags else node.state.base


def who(node: Node) -> str:
    """Who took a node out of service."""
    if node.reason.startswith(PREFIX) or node.reason == PARTING:
        return "the operator"
    return node.reason_set_by or ("Slurm" if node.reason else "")


def section(slurm: SlurmPicture | None, now: datetime, reported: Condition | None) -> Section:
    """Nodes out of service; without Slurm, what the operator has reported."""
    title = "Nodes out of service"
    if slurm is None:
        if reported is None:
            return Section(f"{title}: none, by the operator's last report")
        return Section(f"{title}, by the operator's last report", (Line(clip(reported.message, 600), Mood.WARNING),))
    found = [node for node in slurm.nodes if is_out(node)]
    if not found:
        return Section(f"{title}: none of {number(len(slurm.nodes), 'node')}", mood=Mood.GOOD)
    groups: dict[tuple[str, str, str], list[Node]] = {}
    for node in found:
        groups.setdefault((state(node), node.reason, who(node)), []).append(node)
    rows = []
    for (word, reason, person), some in sorted(groups.items(), key=lambda one: (-len(one[1]), one[0])):
        times = [node.reason_changed_at for node in some if node.reason_changed_at is not None]
        cells = (str(len(some)), nodes(node.name for node in some), word, person, ago(min(times, default=None), now))
        rows.append(Row((*cells, clip(reason)), Mood.WARNING if person == "the operator" else Mood.BAD))
    head = ("COUNT", "NODES", "STATE", "SET BY", "SINCE", "REASON")
    shown = table(head, rows, "groups of nodes", numbers=("COUNT",), most=MOST_GROUPS)
    return Section(f"{title}: {len(found)} of {number(len(slurm.nodes), 'node')}", (shown,), Mood.WARNING)


def _flags(node: Node) -> str:
    return "+".join(flag for flag in _SHOWN if flag in node.state.flags)
