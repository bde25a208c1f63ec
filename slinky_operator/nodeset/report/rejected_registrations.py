"""What a NodeSet reports about nodes whose registrations Slurm rejects: which, Slurm's reason, and what to do."""

from __future__ import annotations

from slinky_operator.nodeset.drain import pod_condition
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.nodeset.slurm_nodes import drains, registration
from slurm_client.models import Node


def told(snapshot: Snapshot, found: Decisions) -> list[str]:
    """The nodes of registered pods that are out of use for their registration, each with Slurm's reason."""
    texts = []
    for member in snapshot.members:
        node = member.record
        if member.pod.deleting or node is None or not registration.is_rejected(node):
            continue
        if not isinstance(found.states.get(member.name), pod_state.Starting | pod_state.Unknown):
            texts.append(_one(member, node))
    return texts


def advised(nodes: str) -> str:
    """The same as one text, with what a person can do."""
    return (
        f"Slurm rejects what these nodes registered with, and gives them no jobs: {nodes}. Correct what the spec "
        "says of their memory, CPUs and GRES: the update replaces them. A pod that no update "
        "reaches: kubectl delete pod"
    )


def _one(member: Member, node: Node) -> str:
    text = f"{node.name}: {node.reason}"
    if drains.is_busy(node):
        text += "; jobs run on it"
    before = pod_condition.previous_foreign_reason(member)
    return f"{text}; somebody else had drained it before ({before}), so no update replaces it" if before else text
