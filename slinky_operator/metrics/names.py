"""How metrics of the operator are named, and how much may be in a page."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "slurm_operator"

MOST_OBJECTS: Final = 2_000
"""Objects of one kind with samples of their own, by namespace and name: more objects make the page no larger."""
