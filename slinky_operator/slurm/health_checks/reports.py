"""What the program has written into the comment of a node: which checks have not passed there. Pure.

`slurm-operator checks <revision> <time>|<check> failed <text>|<check> unknown <text>|<check> pending`: a check that is
not named has passed, or belongs to jobs and has not run yet. Who may update nodes could write such a comment, too; it
is read within bounds, and drains nothing beyond the budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from slinky_api.v1alpha1.nodeset.checks import MAX_CHECKS

PREFIX: Final = "slurm-operator checks "

LONGEST: Final = 4096
"""Characters of a comment that are read."""

_LATEST: Final = 253_402_300_799
"""The last second that a time can have."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a node says of its checks."""

    revision: str
    """Of the table that it has run."""
    since: datetime | None = None
    """When one of them began, or ceased, to pass; by the clock of the node."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Why, by name of the check."""
    unknown: Mapping[str, str] = field(default_factory=dict)
    """Why a check could not be run, by its name."""
    pending: frozenset[str] = frozenset()
    """Checks without a result yet."""


def read(comment: str) -> Report | None:
    """The report in a comment; None if there is none."""
    if not comment.startswith(PREFIX):
        return None
    head, *parts = comment[:LONGEST].removeprefix(PREFIX).split("|")
    revision, _, since = head.partition(" ")
    found: dict[str, dict[str, str]] = {"failed": {}, "unknown": {}, "pending": {}}
    for part in parts[:MAX_CHECKS]:
        name, _, rest = part.partition(" ")
        kind, _, text = rest.partition(" ")
        if name and kind in found:
            found[kind][name] = text.strip()
    return Report(revision, _time(since), found["failed"], found["unknown"], frozenset(found["pending"]))


def _time(text: str) -> datetime | None:
    if not text.isascii() or not text.isdigit() or len(text) > len(str(_LATEST)) or int(text) > _LATEST:
        return None
    return datetime.fromtimestamp(int(text), UTC)
