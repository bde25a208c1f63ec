"""What is remembered of the keys of daemons, and of the Secrets with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class SeenSecret:
    """Which version of a Secret was read, and since when."""

    version: str
    at: float
    """Monotonic seconds at which it was first read."""

    changed: bool = False
    """Whether another version was read before."""

    refused: bool = False
    """Whether what it holds has been refused."""

    suspect: bool = False
    """Whether kubelets may have mounted something else than this version and the accepted key: it follows one that was
    refused, or holds what was accepted before, so that there was another one in between."""


@dataclass(slots=True)
class KeyMemory:
    """About the keys of one Cluster."""

    known: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Keys that daemons run with, as long as the copy of them is lost."""

    troubled: bool = False
    """Whether something is wrong with a key, so that Secrets are read again soon."""

    asked: tuple[str, float] = ("", float("-inf"))
    """The purpose for which Secrets were last read again, before daemons read them, and when (monotonic seconds)."""

    seen: SeenSecret | None = None
    """The Secret with the user's key of auth/slurm."""

    staged: SeenSecret | None = None
    """The Secret from which pods mount it once it is accepted."""

    def frozen(self) -> KeyMemory:
        """A copy that later passes do not change."""
        return replace(self)
