"""What a Cluster shows of jobs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from slinky_operator.cluster.part import Part
from slinky_operator.cluster.parts.job_counts.question import JobsQuestion
from slinky_operator.cluster.pass_state import PassState


class JobCountsPart(Part):
    """Jobs by state."""

    name = "job_counts"

    @override
    def fields(self, state: PassState) -> Mapping[str, Any]:
        snapshot, jobs = state.snapshot, state.snapshot.memory.answers.of(JobsQuestion)
        counts = jobs.counts if jobs is not None and snapshot.slurm_answers else None
        return {"jobs": counts or snapshot.cluster.status.jobs}


JOB_COUNTS: Final = JobCountsPart()
