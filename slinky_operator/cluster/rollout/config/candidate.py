"""A configuration on its way to slurmctld, and the results that all steps of its rollout share. Pure.

`rendering` makes the candidate; `writing` and `settling` take it further.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slinky_api.conditions import LONGEST_AS_EXPECTED, Reason
from slinky_api.v1alpha1.cluster.status import ConfigStatus, RefusedNodeSet
from slinky_operator.cluster.actions import Action
from slinky_operator.cluster.rollout.config import held_nodesets, manual_changes
from slinky_operator.cluster.rollout.config.addresses import Addresses
from slinky_operator.cluster.rollout.config.loading import Loading
from slinky_operator.cluster.rollout.config.stored import StoredConfig
from slinky_operator.cluster.rollout.in_use.removals import Kept
from slinky_operator.cluster.rollout.preflight import decision
from slinky_operator.cluster.rollout.preflight.decision import Untried
from slinky_operator.cluster.view import View
from slinky_operator.reconcile.text import cut, named
from slinky_operator.slurm.conf import ConfInputs, Rendered


@dataclass(frozen=True, slots=True)
class Rollout:
    """What the configuration needs."""

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

    unaddressed: str = ""
    """Nodes outside Kubernetes that do not resolve in slurmctld's pod, for people."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration on its way to slurmctld."""

    view: View
    stored: StoredConfig
    load: Loading
    """How far slurmctld has loaded what it mounts now."""

    status: ConfigStatus
    """What is known to run: from the Cluster's status, or as slurmctld has shown if that is lost."""

    inputs: ConfInputs
    wanted: Rendered
    """According to the spec alone."""

    rendered: Rendered
    """Including what must stay for now: what is tried and written."""

    kept: Kept
    addresses: Addresses
    joining: tuple[Action, ...]
    """Done before everything else: finalizers are set before anything is rendered for their owners."""

    asking: tuple[Action, ...]
    """Queries to Slurm that are due."""

    first: str = ""
    """What has to happen before anything is tried; empty if nothing."""

    @property
    def is_mounted(self) -> bool:
        """Whether slurmctld mounts these files already."""
        return self.stored.holds(self.rendered.hash)

    @property
    def is_applied(self) -> bool:
        """Whether these files are known to run."""
        return self.status.applied_hash == self.rendered.hash

    @property
    def suspects(self) -> Mapping[str, str]:
        """NodeSets that are held back although they may not be the cause, and why."""
        return held_nodesets.suspects(self.view.snapshot, self.inputs)

    def waiting(
        self, message: str, *actions: Action, wake_up: float | None = None, reason: Reason = Reason.CONFIG_PENDING
    ) -> Rollout:
        """The wanted configuration is in progress, or waits for somebody's help."""
        return self._rollout(reason, message, actions, wake_up)

    def refused(
        self, message: str, *actions: Action, wake_up: float | None = None, reason: Reason = Reason.CONFIG_REFUSED
    ) -> Rollout:
        """The wanted configuration cannot be used; the running one stays, and so do the NodeSets in it."""
        if self.suspects:
            message = f"{message}; changes of NodeSet {named(sorted(self.suspects))} wait for that"
        return self._rollout(reason, message, actions, wake_up, self._status(self.status.node_sets))

    def live(self, *actions: Action, wake_up: float | None = None) -> Rollout:
        """Everything that can be live is; what must stay for now is reported."""
        status = self._status(tuple(sorted(self.rendered.node_sets)), self.rendered.hash)
        if self.suspects:
            return self._rollout(Reason.CONFIG_PENDING, self._tried_singly(), actions, wake_up, status)
        if not self.kept.why:
            return self._rollout(Reason.AS_EXPECTED, self._remarks(), actions, wake_up, status)
        words = "; ".join((*self.kept.why, *filter(None, (self._remarks(),))))
        return self._rollout(self.kept.reason, words, actions, wake_up, status)

    def _tried_singly(self) -> str:
        """The progress of NodeSets that are tried one by one to find the cause."""
        names = sorted(self.suspects)
        return f"with the changes of NodeSets {named(names)}: {self.suspects[names[0]]}; each is tried alone now"

    def _remarks(self) -> str:
        """The remarks for people about a configuration that is live: `Degraded` and the NodeSets say more."""
        wanted, unreadable = self.wanted, self.view.snapshot.invalid_node_sets
        left_out = [f"{one.node_set}: {one.problem.field}" for one in wanted.refused]
        left_out += [f"{error.name}: {error.problems[0].field}" for _, error in unreadable]
        words = [f"left as it was: NodeSet {named(left_out, 1)} (see its conditions)"] if left_out else []
        words += manual_changes.words(wanted)
        if wanted.undefined:
            words.append(f"partitions name NodeSets that do not exist: {named(wanted.undefined, 2)}")
        if self.addresses.message:
            words.append("not every node outside Kubernetes has an address (see Degraded)")
        return _in_short(words)

    def _status(self, node_sets: tuple[str, ...], applied: str | None = None) -> ConfigStatus:
        return ConfigStatus(
            hash=self.wanted.hash,
            applied_hash=self.status.applied_hash if applied is None else applied,
            node_sets=node_sets,
            refused=tuple(RefusedNodeSet(name=one.node_set, message=str(one.problem)) for one in self.wanted.refused),
        )

    def _rollout(
        self,
        reason: Reason,
        message: str,
        actions: tuple[Action, ...],
        wake_up: float | None,
        status: ConfigStatus | None = None,
    ) -> Rollout:
        if status is None:
            status = self._status(tuple(sorted(set(self.status.node_sets) & set(self.rendered.node_sets))))
        return Rollout(
            (*self.joining, *actions),
            status,
            reason is Reason.AS_EXPECTED,
            reason,
            message,
            self.wanted,
            decision.untried(self.view, self.rendered),
            wake_up,
            self.addresses.message,
        )


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
