"""A configuration on its way to slurmctld, and what its next step can be. Pure.

`rendering` makes the candidate, `writing` and `settling` decide the step, and `outcome` says what follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.status import ConfigStatus
from slinky_operator.cluster.actions import Action
from slinky_operator.cluster.rollout.config import held_nodesets
from slinky_operator.cluster.rollout.config.addresses import Addresses
from slinky_operator.cluster.rollout.config.loading import Loading
from slinky_operator.cluster.rollout.config.stored import StoredConfig
from slinky_operator.cluster.rollout.in_use.removals import Kept
from slinky_operator.cluster.view import View
from slinky_operator.slurm.conf import ConfInputs, Rendered


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
        return self.stored.digest == self.rendered.hash

    @property
    def is_applied(self) -> bool:
        """Whether these files are known to run."""
        return self.status.applied_hash == self.rendered.hash

    @property
    def suspects(self) -> Mapping[str, str]:
        """NodeSets that are held back although they may not be the cause, and why."""
        return held_nodesets.suspects(self.view.snapshot, self.inputs)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The wanted configuration is in progress, or waits for somebody's help."""

    message: str
    actions: tuple[Action, ...] = ()
    wake_up: float | None = None
    """Seconds until something is due without an event."""

    reason: Reason = Reason.CONFIG_PENDING


@dataclass(frozen=True, slots=True)
class Refused:
    """The wanted configuration cannot be used; the running one stays, and so do the NodeSets in it."""

    message: str
    actions: tuple[Action, ...] = ()
    wake_up: float | None = None
    """Seconds until something is due without an event."""

    reason: Reason = Reason.CONFIG_REFUSED


@dataclass(frozen=True, slots=True)
class Live:
    """Everything that can be live is; what must stay for now is reported."""

    actions: tuple[Action, ...] = ()
    wake_up: float | None = None
    """Seconds until something is due without an event."""


Step: TypeAlias = Waiting | Refused | Live
"""The next step of a rollout."""
