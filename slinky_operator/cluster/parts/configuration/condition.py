"""What a pass has found out about the configuration. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from slinky_operator.cluster.rollout.config.draft import Rollout


@dataclass(frozen=True, slots=True)
class Configuration:
    """What is known of the configuration."""

    rollout: Rollout | None = None
    """Its state; `None` before its step, and for an external Cluster."""
