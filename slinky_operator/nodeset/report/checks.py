"""Whether all nodes run the health checks of `spec.health`, and what stands in the way.

What a check says of a node is in the reason of its drain, in `Draining` and in `HealthBudgetReached`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from slinky_api.conditions import NodeSetCondition, Reason, find
from slinky_api.v1alpha1.common import Condition
from slinky_operator.nodeset.health.check_trial import CheckTrial
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.reconcile.text import joined, named
from slinky_operator.reconcile.writes.parts import condition
from slinky_operator.slurm.health_checks import programs

KIND: Final = NodeSetCondition.HEALTH_CHECKS_RUN

REASONS: Final = frozenset({Reason.CHECK_FAILED_ON_TRIAL, Reason.CHECK_NOT_RUN})
"""Troubles with which a NodeSet is Ready: its nodes serve."""

Told = tuple[Reason, str, str, frozenset[str]]
"""Reason, text, a brief form, and the nodes concerned."""

_OWN_PROGRAM: Final = (
    "This takes some three minutes. If slurm.conf has a HealthCheckProgram of its own, that has to run "
    f"{programs.HEALTH_CHECK}; and slurmd's image needs flock, timeout and scontrol"
)


def told(found: Decisions) -> Iterable[Told]:
    """What there is to report as a trouble."""
    trial = found.checks
    if trial.failed:
        brief = f"checks fail on {trial.node}, which tries them: {named(list(trial.failed), 2)}"
        yield Reason.CHECK_FAILED_ON_TRIAL, _failed(trial), brief, frozenset({trial.node})
    if trial.not_run:
        nodes = frozenset(node for by_node in trial.not_run.values() for node in by_node)
        yield Reason.CHECK_NOT_RUN, _not_run(trial), f"checks cannot be run: {named(list(trial.not_run), 2)}", nodes


def conditions(snapshot: Snapshot, found: Decisions) -> Iterable[Condition]:
    """The condition; none without checks. Until it is known which nodes run which, the last one stands."""
    trial, health = found.checks, snapshot.nodeset.spec.health
    if health is None or not health.checks or snapshot.nodeset.deleting:
        return
    if not trial.is_wanted or snapshot.checks is None:
        stored = find(snapshot.nodeset.status.conditions, KIND)
        yield from (stored,) if stored is not None else ()
    elif trial.failed:
        yield condition(KIND, Reason.CHECK_FAILED_ON_TRIAL, _failed(trial), holds=False)
    elif trial.not_run:
        yield condition(KIND, Reason.CHECK_NOT_RUN, _not_run(trial), holds=False)
    elif trial.changed and not trial.approves:
        yield condition(KIND, Reason.CHECKS_ON_TRIAL, _on_trial(trial), holds=False)
    else:
        count = len(health.checks)
        what = "check runs" if count == 1 else "checks run"
        yield condition(KIND, Reason.AS_EXPECTED, f"{count} {what} on all nodes", holds=True)


def _on_trial(trial: CheckTrial) -> str:
    what = f"new, changed or removed checks: {named(trial.changed)}"
    if not trial.node:
        return f"{what}. They wait for a node to be tried on: one that is up, and drained by nobody"
    if not trial.has_reported:
        return f"{what}. {trial.node} tries them first, and has not reported yet. {_OWN_PROGRAM}"
    return f"{what}. {trial.node} tries them first, and some have no result yet"


def _failed(trial: CheckTrial) -> str:
    texts = [f"check {name}: {text}" for name, text in sorted(trial.failed.items())]
    return (
        f"on {trial.node}, which tries new or changed checks first: {joined(texts)}. No other node runs them, and "
        "they drain nothing. If the check is wrong, correct it; if the node is bad, drain it, and another one tries"
    )


def _not_run(trial: CheckTrial) -> str:
    texts = [f"check {name} on {_nodes(by_node)}" for name, by_node in sorted(trial.not_run.items())]
    first = f", and no other node than {trial.node} runs them" if trial.node else ""
    return f"could not be run: {joined(texts)}. This drains no node{first}"


def _nodes(by_node: Mapping[str, str]) -> str:
    """Some nodes with what the first of them says."""
    return f"{named(list(by_node), 3)}: {next(iter(by_node.values()))}"
