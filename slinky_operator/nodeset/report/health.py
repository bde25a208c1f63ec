"""Whether the budget of `spec.health` lets all nodes be drained that its rules want drained; if not, which wait.

Nodes that are drained for it are in the condition `Draining`, as all are that the operator drains.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from slinky_api.conditions import NodeSetCondition, Reason
from slinky_api.v1alpha1.common import Condition
from slinky_api.v1alpha1.nodeset.health import Health
from slinky_api.v1alpha1.nodeset.status import MAX_REPLACEMENTS
from slinky_operator.nodeset.health.choice import WaitingNode
from slinky_operator.nodeset.health.replacement import ReplacementChoice
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.reconcile.text import joined, named, stamp
from slinky_operator.reconcile.writes.parts import condition

KIND: Final = NodeSetCondition.HEALTH_BUDGET_REACHED

REPLACED: Final = NodeSetCondition.REPLACEMENT_FAILED

REASONS: Final = frozenset(
    {
        Reason.HEALTH_BUDGET_REACHED,
        Reason.REPLACEMENT_FAILED,
        Reason.REPLACEMENT_REFUSED,
    }
)
"""Troubles with which a NodeSet is Ready: its nodes serve."""

MACHINES_TOLD: Final = 5
"""Kubernetes Nodes for which the condition says what they wait for."""

_FULL: Final = f"status.replacements has {MAX_REPLACEMENTS} Nodes"

Told = tuple[Reason, str, str, frozenset[str]]
"""Reason, text, a brief form, and the nodes concerned."""

_UNWATCHED: Final = (
    "nodeConditions and defaults of spec.health have no effect: the operator runs with --no-watch-nodes, and does not "
    "see Kubernetes Nodes"
)


def told(snapshot: Snapshot, found: Decisions) -> Iterable[Told]:
    """What there is to report."""
    health = snapshot.nodeset.spec.health
    if health is None or snapshot.nodeset.deleting:
        return
    if snapshot.hosts is None and health.rules():
        yield Reason.NODES_NOT_WATCHED, _UNWATCHED, "", frozenset()
    if found.health.waiting:
        nodes = [one.node for one in found.health.waiting]
        brief = f"health: {len(nodes)} of {len(nodes) + found.health.held} bad nodes not drained: {named(nodes, 2)}"
        yield Reason.HEALTH_BUDGET_REACHED, _text(found), brief, frozenset(nodes)
    choice = found.replacement
    if choice is None:
        return
    if choice.refused:
        yield Reason.REPLACEMENT_REFUSED, choice.refused, "health: replace has no effect", frozenset()
    if choice.given_up or choice.is_full:
        nodes = [one.node for one in choice.given_up]
        brief = f"health: not replaced any more: {named(nodes, 2)}" if nodes else _FULL
        yield Reason.REPLACEMENT_FAILED, joined(list(_given_up(choice))), brief, frozenset(nodes)


def _waits(choice: ReplacementChoice) -> str:
    """What machines wait for, of the first Nodes by name."""
    hosts = sorted(choice.waits)
    text = joined([choice.waits[host] for host in hosts[:MACHINES_TOLD]])
    return f"{text}; and {len(hosts) - MACHINES_TOLD} more Nodes" if len(hosts) > MACHINES_TOLD else text


def _given_up(choice: ReplacementChoice) -> Iterable[str]:
    for one in choice.given_up:
        tries = f"{one.record.tries} {'try' if one.record.tries == 1 else 'tries'}, the last one at {one.record.last}"
        yield (
            f"{one.node} stays drained, and is not replaced any more: Node {one.record.host} is bad after {tries}. "
            "Mend its machine, or raise spec.health.replace.maxTries"
        )
    if choice.is_full:
        yield f"{_FULL}, the most there may be: others wait until one is older than spec.health.replace.withinSeconds"


def conditions(snapshot: Snapshot, found: Decisions) -> Iterable[Condition]:
    """The conditions; none without rules, Unknown where nothing can be known."""
    health, choice = snapshot.nodeset.spec.health, found.replacement
    if health is not None:
        yield _of_budget(snapshot, health, found)
    if health is not None and health.replaces is not None:
        yield _of_replacement(snapshot, choice)
    elif choice is not None and choice.waits:
        # Machines that a policy of before has asked for.
        yield condition(REPLACED, Reason.REPLACEMENT_WAITS, _waits(choice), holds=False)


def _of_budget(snapshot: Snapshot, health: Health, found: Decisions) -> Condition:
    slurm = snapshot.slurm
    if snapshot.hosts is None and health.rules() and not health.checks:
        return condition(KIND, Reason.NODES_NOT_WATCHED, _UNWATCHED, holds=None)
    if not slurm.readable:
        return condition(KIND, slurm.reason, slurm.why, holds=None)
    if found.health.waiting:
        return condition(KIND, Reason.HEALTH_BUDGET_REACHED, _text(found), holds=True)
    return condition(KIND, Reason.AS_EXPECTED, _used(found), holds=False)


def _of_replacement(snapshot: Snapshot, choice: ReplacementChoice | None) -> Condition:
    slurm = snapshot.slurm
    if choice is None or not slurm.readable:
        return condition(REPLACED, slurm.reason, slurm.why, holds=None)
    if choice.refused:
        text = f"{choice.refused}. {_waits(choice)}" if choice.waits else choice.refused
        return condition(REPLACED, Reason.REPLACEMENT_REFUSED, text, holds=True)
    if choice.given_up or choice.is_full:
        return condition(REPLACED, Reason.REPLACEMENT_FAILED, joined(list(_given_up(choice))), holds=True)
    if choice.waits:
        return condition(REPLACED, Reason.REPLACEMENT_WAITS, _waits(choice), holds=False)
    return condition(REPLACED, Reason.AS_EXPECTED, "", holds=False)


def _text(found: Decisions) -> str:
    waiting = found.health.waiting
    what = "node is" if len(waiting) == 1 else "nodes are"
    by_check = any(match.is_check for one in waiting for match in one.verdict.matches)
    why = "checks fail or the Kubernetes Node is bad" if by_check else "the Kubernetes Node is bad"
    return (
        f"{len(waiting)} {what} not drained although {why}: {joined(list(map(_one, waiting)))}. "
        f"{_used(found)}. If the check is right, mend the Nodes, cordon them, or raise spec.health.maxUnhealthy"
    )


def _used(found: Decisions) -> str:
    health = found.health
    if health.budget is None:
        return ""
    what = "node" if health.held == 1 else "nodes"
    return f"spec.health keeps {health.held} {what} drained, and {health.budget} at most (maxUnhealthy)"


def _one(waiting: WaitingNode) -> str:
    """A node with its Kubernetes Node, and the conditions that match; what these say may change all the time."""
    matches = [
        f"{one.type} since {stamp(one.since)}" if one.since is not None else one.type for one in waiting.verdict.matches
    ]
    where = f"Node {waiting.host}: " if waiting.host else ""
    return f"{waiting.node} ({where}{named(matches, 3)})"
