"""What has become of a plan, and when the next pass is due. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from slinky_operator.virtual_nodes.nodes.model.snapshot import Problem

AGAIN_S: Final = 5.0
"""Seconds until the next look at what waits: a Node that is to go, or a refusal."""

OVERTAKEN_S: Final = 0.5
"""Seconds until the pass after one whose Node has changed meanwhile."""


@dataclass(slots=True)
class Outcome:
    """What has become of a plan."""

    waiting: list[str] = field(default_factory=list)
    """Of Nodes that are to go: what each waits for."""
    failures: list[Problem] = field(default_factory=list)
    """What was refused."""
    created: int = 0
    """Nodes that were made."""
    overtaken: bool = False
    """Whether a Node has changed meanwhile."""

    def pause(self, due: float | None) -> float | None:
        """Seconds until the next pass, if nothing else brings one."""
        if self.overtaken:
            return OVERTAKEN_S
        return min(due or AGAIN_S, AGAIN_S) if self.waiting or self.failures else due
