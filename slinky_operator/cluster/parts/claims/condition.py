"""What a pass has found out about claims. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from slinky_operator.cluster.observe import Snapshot


@dataclass(frozen=True, slots=True)
class Claims:
    """What is known of claims."""

    asked: Snapshot | None = None
    """With the settings of claims that the spec asks for."""

    refused: tuple[str, ...] = ()
    """Settings that cannot be carried out, and why."""

    growing: tuple[str, ...] = ()
    """Claims whose volumes are still to grow."""
