"""The state of one pass of the plan: the snapshot, and the findings of its steps for later ones.

It knows no part: each part has a frozen type for what it finds out, with a default that says that nothing is known yet.
There is one finding of each type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias, TypeVar

from slinky_operator.cluster.actions import Action
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.view import View
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import ConfFiles

Finding = TypeVar("Finding")


@dataclass(slots=True)
class PassState:
    """What is known in one pass. A step notes its findings; only later steps may read them."""

    snapshot: Snapshot
    """With the settings of claims that can be carried out (`parts.claims`)."""

    images: Images
    """The operator's defaults; from the step `keep_images` on, the images of this Cluster."""

    now: float
    """Monotonic seconds."""

    wall: datetime
    """The time of day."""

    due: list[float] = field(default_factory=list)
    """Seconds until something is due without an event."""

    _findings: dict[type, object] = field(default_factory=dict)
    _mounted: ConfFiles | None = None

    def found(self, kind: type[Finding]) -> Finding:
        """The finding of this type; its default if no step has noted one."""
        known = self._findings.get(kind)
        return known if isinstance(known, kind) else kind()

    def note(self, finding: object) -> None:
        """Note a finding for later steps, in the place of an earlier one of its type."""
        self._findings[type(finding)] = finding

    @property
    def view(self) -> View:
        """What rules decide from."""
        return View(self.snapshot, self.images, self.now, self.wall)

    @property
    def config_map(self) -> Object | None:
        """The current ConfigMap with slurm.conf, even if somebody else wrote it."""
        return self.snapshot.children.get(("ConfigMap", naming.config(self.snapshot.cluster.name)))

    @property
    def mounted(self) -> ConfFiles:
        """What that ConfigMap holds, read once a pass; no files without one."""
        if self._mounted is None:
            self._mounted = ConfFiles.read((self.config_map or {}).get("data") or {})
        return self._mounted

    def wake_up(self, seconds: float | None) -> None:
        """Requeue after this many seconds at the latest."""
        if seconds is not None:
            self.due.append(seconds)


Step: TypeAlias = Callable[[PassState], Iterable[Action]]
