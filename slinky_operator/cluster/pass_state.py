"""The state of one pass of the plan: the snapshot, and the findings of its steps for later ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from slinky_operator.cluster.actions import Action
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.connection.slurm_connection import Missing, Pace
from slinky_operator.cluster.parts.daemons import Made
from slinky_operator.cluster.parts.exporter.condition import Workload
from slinky_operator.cluster.parts.keys.lifecycle import Keys
from slinky_operator.cluster.parts.upgrade.order import Upgrade
from slinky_operator.cluster.rollout.config.draft import Rollout
from slinky_operator.cluster.rollout.preflight.replacement import Replacement, Stage
from slinky_operator.cluster.trials.engine import Stage as StageOfTrial
from slinky_operator.cluster.trials.engine import Trial
from slinky_operator.identity import users
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming


@dataclass(slots=True)
class Progress:
    """What is known in one pass. A step writes its findings; only later steps may read them."""

    snapshot: Snapshot
    """With the settings of claims that can be carried out (`steps.claims`)."""

    pace: Pace
    images: Images
    """The operator's defaults; from the step `images` on, those of this Cluster."""

    now: float
    """Monotonic seconds."""

    wall: datetime
    """The time of day."""

    asked: Snapshot
    """With the settings of claims that the spec asks for."""

    keys: Keys = field(default_factory=Keys)
    missing: Missing | None = None
    """Why there is no connection."""

    replacement: Replacement = Replacement(Stage.FREE)  # noqa: RUF009 - frozen
    """Whether slurmctld's pod may be replaced."""

    slurmdbd: Trial = Trial(StageOfTrial.PASSED)  # noqa: RUF009 - frozen
    """Whether slurmdbd may take its next configuration."""

    identity: users.Trouble | None = None
    """What is wrong with the source of users."""

    rollout: Rollout | None = None
    """The state of the configuration; `None` before its step, and for an external Cluster."""

    made: Made = Made()  # noqa: RUF009 - frozen
    """The written objects, except ConfigMaps and Secrets."""

    claims_refused: tuple[str, ...] = ()
    """Settings of claims that cannot be carried out, and why."""

    claims_growing: tuple[str, ...] = ()
    """Claims whose volumes are still to grow."""

    upgrade: Upgrade = Upgrade()  # noqa: RUF009 - frozen
    """Which daemons wait for others with their images."""

    exporter: Workload = Workload()  # noqa: RUF009 - frozen
    """What is known of the exporter's pod."""

    due: list[float] = field(default_factory=list)
    """Seconds until something is due without an event."""

    @property
    def config_map(self) -> Object | None:
        """The current ConfigMap with slurm.conf, even if somebody else wrote it."""
        return self.snapshot.children.get(("ConfigMap", naming.config(self.snapshot.cluster.name)))

    def wake_up(self, seconds: float | None) -> None:
        """Requeue after this many seconds at the latest."""
        if seconds is not None:
            self.due.append(seconds)


Step: TypeAlias = Callable[[Progress], Iterable[Action]]
