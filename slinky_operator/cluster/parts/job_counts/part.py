"""What a Cluster shows of jobs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from slinky_operator.cluster.part import Part
from slinky_operator.cluster.parts.job_counts.question import JobsQuestion
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.slurm.connection.contact import ContactState


class JobCountsPart(Part):
    """Jobs by state."""

    name = "job_counts"

    @override
    def fields(self, state: PassState) -> Mapping[str, Any]:
        slurm, jobs = state.snapshot.slurm, state.snapshot.memory.answers.of(JobsQuestion)
        up = slurm is not None and slurm.contact.state is ContactState.READY
        before = state.snapshot.cluster.status.jobs
        return {"jobs": jobs.counts if jobs is not None and jobs.counts is not None and up else before}


JOB_COUNTS: Final = JobCountsPart()
