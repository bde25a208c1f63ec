"""The old status: the phase of a pod in one word, for every phase that a job can be in."""

from __future__ import annotations

from typing import get_args

import pytest

from slinky_api.sylabs.common import JobStatus, Word
from slinky_api.v1alpha1.common import Condition
from slinky_api.v1alpha1.slurmjob.kind import SlurmJobStatus
from slinky_operator.jobs.phases import Phase, shown
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.sylabs.translation.status import refused, status_of
from slurm_client.models.job import JobState

WORDS = {
    Phase.PENDING: "Pending",
    Phase.RUNNING: "Running",
    Phase.SUSPENDED: "Running",
    Phase.ENDING: "Running",
    Phase.SUCCEEDED: "Succeeded",
    Phase.FAILED: "Failed",
    Phase.UNKNOWN: "Unknown",
}


@pytest.mark.parametrize("phase", Phase)
def test_a_phase_is_said_in_the_old_word(phase: Phase) -> None:
    job = SlurmJobStatus(state=phase.value, reason="Queued", summary="why", job_id=7)
    status = status_of(job, generation=3)
    assert status == JobStatus(
        status=WORDS[phase],  # type: ignore[arg-type]
        job_id=7,
        reason="Queued",
        message="why",
        observed_generation=3,
    )
    assert status.status in get_args(Word)


@pytest.mark.parametrize("base", sorted(JobState.BASES))
def test_no_end_of_a_job_is_said_as_running(base: str) -> None:
    found = shown(JobState.from_words([base]))
    word = status_of(SlurmJobStatus(state=found.phase.value, job_id=7), generation=1).status
    assert (word in {"Succeeded", "Failed"}) == found.is_finished


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("", "Pending"),
        ("ClusterNotReady", "Pending"),
        ("SubmissionRefused", "Pending"),
        ("InvalidSpec", "Failed"),
        ("SubmissionUnknown", "Unknown"),
    ],
)
def test_a_job_that_slurm_does_not_have_waits_or_says_what_is_wrong_with_it(reason: str, word: str) -> None:
    condition = Condition(type="Submitted", status="False", reason=reason, message="the whole message")
    job = SlurmJobStatus(state="Waiting", reason=reason, summary="the mess…", conditions=(condition,))
    status = status_of(job, generation=1)
    assert (status.status, status.reason, status.message) == (word, reason, "the whole message")


def test_a_slurmjob_without_a_status_waits() -> None:
    assert status_of(SlurmJobStatus(), generation=1).status == "Pending"


def test_what_is_refused_has_failed_with_the_field_and_the_reason() -> None:
    status = refused(InvalidJob("spec.ssh", "leave it out"), generation=2)
    assert status == JobStatus(
        status="Failed", reason="InvalidSpec", message="spec.ssh: leave it out", observed_generation=2
    )


def test_a_message_has_a_bound() -> None:
    assert len(status_of(SlurmJobStatus(summary="x" * 5000), generation=1).message) == 1024
    assert len(refused(InvalidJob("spec." + "x" * 5000, "why"), generation=1).message) == 1024
