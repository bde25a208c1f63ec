"""The mark of a job: the SlurmJob and the attempt that it was submitted for, in the job's ``extra``.

slurmctld shows ``extra`` in each record of a job, with all data parsers; users may change it of their own jobs only.
So a mark is worth nothing without the user whose job it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from slinky_api import labels

_PREFIX: Final = labels.SLURMJOB_PREFIX + "uid="
_MARK: Final = re.compile(re.escape(_PREFIX) + r"([0-9a-zA-Z-]{1,64})\.([0-9]{1,4})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Mark:
    """Whose job it is."""

    uid: str
    """Of the SlurmJob."""
    attempt: int
    """Which submission, from 0 on."""

    @property
    def text(self) -> str:
        """As it is in the job."""
        return f"{_PREFIX}{self.uid}.{self.attempt}"


def read(extra: str) -> Mark | None:
    """Read the mark of a job; None if it has none of ours."""
    found = _MARK.fullmatch(extra)
    return Mark(found[1], int(found[2])) if found else None
