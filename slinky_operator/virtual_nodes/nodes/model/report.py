"""What a Cluster shows of its virtual Nodes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from slinky_api.conditions import LONGEST_AS_EXPECTED, Reason
from slinky_api.v1alpha1.cluster.status import VirtualNodesStatus
from slinky_operator.reconcile.text import cut
from slinky_operator.virtual_nodes.nodes.model.outcome import Outcome
from slinky_operator.virtual_nodes.nodes.model.plan import Plan
from slinky_operator.virtual_nodes.nodes.model.snapshot import Problem, Snapshot

LONGEST: Final = 1_000
"""Characters of the message."""

Word = Literal["True", "False", "Unknown"]


def report(snapshot: Snapshot, made: Plan, outcome: Outcome) -> VirtualNodesStatus:
    """The status.

    Parameters
    ----------
    snapshot, made, outcome
        What the pass knew, what it has decided, and what has become of that.
    """
    problems = [*outcome.failures, *made.problems]
    nodes = len(snapshot.nodes) + outcome.created
    if problems:
        return _status("False", problems[0][0], [*(text for _, text in problems), *outcome.waiting], nodes)
    available = snapshot.availability
    if snapshot.facts is None or available.slurm is not True:
        stay = "Nodes stay as they are, and take no new pods" if nodes else "no Node is made"
        why = f": {available.slurm_message}" if available.slurm_message else ""
        reason = Reason.SLURM_UNREACHABLE if available.slurm is False else Reason.CONNECTING
        return _status("Unknown", reason, [f"Slurm does not show its partitions{why}; until it does, {stay}"], nodes)
    return _status("True", Reason.AS_EXPECTED, outcome.waiting, nodes)


def refused(refusal: Problem, snapshot: Snapshot, outcome: Outcome) -> VirtualNodesStatus:
    """The status of a Cluster that is to have no virtual Nodes, although its spec wants some."""
    reason, message = refusal
    told = [message, *(text for _, text in outcome.failures), *outcome.waiting]
    return _status("False", reason, told, len(snapshot.nodes))


def _status(word: Word, reason: Reason, told: Sequence[str], nodes: int) -> VirtualNodesStatus:
    longest = LONGEST_AS_EXPECTED if word == "True" else LONGEST
    ready = None if word == "Unknown" else word == "True"
    return VirtualNodesStatus(ready=ready, reason=str(reason), message=cut("; ".join(told), longest), nodes=nodes)
