"""What a login pod needs to reach Slurm. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from slinky_operator.slurm.naming import KeySource


@dataclass(frozen=True, slots=True)
class Slurm:
    """The key of auth/slurm, and slurmctld."""

    key: KeySource
    server: str
    """`host:port` of slurmctld."""
