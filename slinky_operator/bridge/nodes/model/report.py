"""What a Cluster shows of its Kubernetes Nodes that are nodes of Slurm. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from slinky_api.conditions import LONGEST_AS_EXPECTED, Reason
from slinky_api.v1alpha1.cluster.status import BridgeStatus
from slinky_operator.bridge.nodes.model.plan import Plan
from slinky_operator.bridge.nodes.model.wishes import Problem
from slinky_operator.reconcile.text import cut

LONGEST: Final = 1_000
"""Characters of the message."""

Word = Literal["True", "False", "Unknown"]


@dataclass(slots=True)
class Outcome:
    """What has become of a plan."""

    failures: list[Problem] = field(default_factory=list)
    """What was refused."""
    waiting: list[str] = field(default_factory=list)
    """What Slurm does not let go yet."""
    changed: bool = False
    """Whether Slurm was changed: another look is due."""


def shown(made: Plan, outcome: Outcome, remarks: Sequence[str], nodes: int) -> BridgeStatus:
    """The status of a Cluster whose Slurm answers.

    Parameters
    ----------
    remarks
        What administrators should know.
    nodes
        Nodes that the bridge has in Slurm.
    """
    problems = [*outcome.failures, *made.problems]
    waiting = [*outcome.waiting, *made.waiting]
    if problems:
        return _status("False", problems[0][0], [*(text for _, text in problems), *waiting, *remarks], nodes)
    if made.pending:
        text = f"{made.pending} Kubernetes Nodes are not nodes of Slurm yet"
        return _status("Unknown", Reason.NODES_PENDING, [text, *waiting, *remarks], nodes)
    return _status("True", Reason.AS_EXPECTED, [*remarks, *waiting], nodes)


def refused(problem: Problem, outcome: Outcome, waiting: Sequence[str], nodes: int) -> BridgeStatus:
    """The status of a Cluster that is to have no such nodes, although its spec wants some."""
    told = [problem[1], *(text for _, text in outcome.failures), *outcome.waiting, *waiting]
    return _status("False", problem[0], told, nodes)


def away(why: str, nodes: int, *, is_away: bool) -> BridgeStatus:
    """The status while Slurm does not answer."""
    reason = Reason.SLURM_UNREACHABLE if is_away else Reason.CONNECTING
    tail = f": {why}" if why else ""
    return _status("Unknown", reason, [f"Slurm does not show its nodes{tail}; until it does, none is changed"], nodes)


def _status(word: Word, reason: Reason, told: Sequence[str], nodes: int) -> BridgeStatus:
    longest = LONGEST_AS_EXPECTED if word == "True" else LONGEST
    ready = None if word == "Unknown" else word == "True"
    return BridgeStatus(ready=ready, reason=str(reason), message=cut("; ".join(told), longest), nodes=nodes)
