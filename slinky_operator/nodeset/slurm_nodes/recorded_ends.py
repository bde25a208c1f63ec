"""What slurmdbd has recorded of the ends of jobs on nodes; `drain.forgotten_ends` decides what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from slurm_client.models.database.history import JobRecord


@dataclass(frozen=True, slots=True)
class RecordedEnd:
    """The end of one run of a job, as slurmdbd has it."""

    user: str
    started_at: datetime
    ended_at: datetime
    state: str


@dataclass(frozen=True, slots=True)
class RecordedEnds:
    """What slurmdbd has said of jobs that delay drains."""

    asked_at: datetime | None = None
    """None if it was not asked yet."""
    ends: Mapping[int, RecordedEnd] = field(default_factory=dict)
    """By job id; jobs without a recorded end are not in it."""


def of_record(record: JobRecord) -> RecordedEnd | None:
    """The end that a record shows; None if it shows none."""
    if not record.state.is_finished or record.start_time is None or record.end_time is None:
        return None
    return RecordedEnd(record.user, record.start_time, record.end_time, str(record.state.base))
