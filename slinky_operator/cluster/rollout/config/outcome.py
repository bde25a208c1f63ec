"""What follows from the next step of a configuration: actions, its part of the status, and what is reported. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slinky_api.conditions import LONGEST_AS_EXPECTED, Reason
from slinky_api.v1alpha1.cluster.status import ConfigStatus, RefusedNodeSet
from slinky_operator.cluster.actions import Action
from slinky_operator.cluster.rollout.config import manual_changes
from slinky_operator.cluster.rollout.config.candidate import Candidate, Live, Refused, Step, Waiting
from slinky_operator.cluster.rollout.preflight import decision
from slinky_operator.cluster.rollout.preflight.decision import Untried
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import cut, named
from slinky_operator.slurm.conf import Rendered


@dataclass(frozen=True, slots=True)
class Rollout:
    """The state of the configuration, and what it needs."""

    actions: tuple[Action, ...]
    status: ConfigStatus
    applied: bool
    """Whether the wanted configuration is live."""

    reason: Reason
    message: str
    rendered: Rendered
    untried: tuple[Untried, ...] = ()
    """NodeSets whose slurmd is left out of preflights."""

    wake_up: float | None = None
    """Seconds until something is due without an event."""

    runs: Object | None = None
    """The ConfigMap with what slurmctld has last shown to run, or is to run first."""

    unaddressed: str = ""
    """Nodes outside Kubernetes that do not resolve in slurmctld's pod, for people."""


def outcome(candidate: Candidate, step: Step) -> Rollout:
    """What follows from a step of a configuration."""
    reason, message = _reported(candidate, step)
    return Rollout(
        (*candidate.joining, *step.actions),
        _status(candidate, step),
        reason is Reason.AS_EXPECTED,
        reason,
        message,
        candidate.wanted,
        decision.untried(candidate.view, candidate.rendered),
        step.wake_up,
        _runs(candidate),
        candidate.addresses.message,
    )


def _runs(candidate: Candidate) -> Object | None:
    """The ConfigMap with what slurmctld runs; that which is known to run, if the last good one could not be written."""
    stored = candidate.stored
    is_live = stored.current is not None and stored.digest == candidate.status.applied_hash
    return stored.current if is_live else stored.last or stored.current


def _reported(candidate: Candidate, step: Step) -> tuple[Reason, str]:
    """Reason and message of the condition."""
    suspects, kept = candidate.suspects, candidate.kept
    match step:
        case Waiting():
            return step.reason, step.message
        case Refused():
            words = f"; changes of NodeSet {named(sorted(suspects))} wait for that" if suspects else ""
            return step.reason, f"{step.message}{words}"
        case Live() if suspects:
            # They are tried one by one to find the cause.
            names = sorted(suspects)
            words = f"with the changes of NodeSets {named(names)}: {suspects[names[0]]}; each is tried alone now"
            return Reason.CONFIG_PENDING, words
        case Live() if kept.why:
            return kept.reason, "; ".join((*kept.why, *filter(None, (_remarks(candidate),))))
        case Live():
            return Reason.AS_EXPECTED, _remarks(candidate)


def _status(candidate: Candidate, step: Step) -> ConfigStatus:
    known, rendered, wanted = candidate.status, candidate.rendered, candidate.wanted
    applied, listed, leaving = known.applied_hash, set(known.node_sets), set(known.leaving_node_sets)
    match step:
        case Live():
            applied, listed = rendered.hash, set(rendered.node_sets)
            leaving = set(candidate.kept.node_sets) - listed
        case Waiting():
            # What is running still has them.
            leaving |= listed - set(rendered.node_sets)
            listed &= set(rendered.node_sets)
        case Refused():
            pass
    return ConfigStatus(
        hash=wanted.hash,
        applied_hash=applied,
        node_sets=tuple(sorted(listed)),
        leaving_node_sets=tuple(sorted(leaving)),
        refused=tuple(RefusedNodeSet(name=one.node_set, message=str(one.problem)) for one in wanted.refused),
    )


def _remarks(candidate: Candidate) -> str:
    """The remarks for people about a configuration that is live, in short: `Degraded` and the NodeSets say more."""
    wanted, unreadable = candidate.wanted, candidate.view.snapshot.invalid_node_sets
    left_out = [f"{one.node_set}: {one.problem.field}" for one in wanted.refused]
    left_out += [f"{error.name}: {error.problems[0].field}" for _, error in unreadable]
    words = [f"left as it was: NodeSet {named(left_out, 1)} (see its conditions)"] if left_out else []
    words += manual_changes.words(wanted)
    if wanted.undefined:
        words.append(f"partitions name NodeSets that do not exist: {named(wanted.undefined, 2)}")
    if candidate.addresses.message:
        words.append("not every node outside Kubernetes has an address (see Degraded)")
    return _in_short(words)


def _in_short(words: Sequence[str]) -> str:
    """As many of some sentences as the message of a good condition may have, at least one."""
    told = ""
    for number, one in enumerate(words):
        longer = "; ".join(filter(None, (told, one)))
        after = len(words) - number - 1
        if told and len(longer) + len(f"; and {after} more") > LONGEST_AS_EXPECTED:
            return f"{told}; and {after + 1} more"
        told = longer
    return cut(told, LONGEST_AS_EXPECTED)
