"""Arrays of which slurmctld does not list all tasks any more. Pure.

slurmctld forgets each task some time after its end, and at once a task that is cancelled before it starts. Of the
latter slurmdbd has no record either (24.11 and 26.05).
"""

from __future__ import annotations

from dataclasses import replace

from slinky_api.v1alpha1.slurmjob.kind import ArrayTasks
from slinky_operator.jobs.phases import Phase, Shown
from slinky_operator.jobs.phases import Reason as ShownReason
from slinky_operator.jobs.task_sets import Array
from slinky_operator.slurmjob.model.slurm_records.records import Seen


def begun(array: Array | None) -> ArrayTasks | None:
    """What is noted of an array before its submission."""
    return ArrayTasks(total=array.count) if array is not None else None


def is_lacking(seen: Seen | None) -> bool:
    """Whether slurmctld does not list the job, or tasks of it, any more, of which slurmdbd must tell."""
    return seen is None or seen.unseen > 0


def awaited(seen: Seen) -> Seen:
    """What is shown until slurmdbd has answered about the other tasks."""
    words = f"all tasks that slurmctld lists have ended; the operator asks slurmdbd about the other {seen.unseen}"
    return replace(seen, shown=Shown(Phase.ENDING, ShownReason.COMPLETING, words), end_time=None)


def never_started(seen: Seen) -> Seen:
    """slurmdbd has no further records: the other tasks were cancelled before they started."""
    total = seen.tasks.total if seen.tasks is not None else None
    words = f"tasks of the array were cancelled before they started ({seen.unseen} of {total})"
    shown = seen.shown
    if shown.phase is Phase.FAILED:
        shown = replace(shown, message=f"{shown.message}; {words}")
    else:
        shown = Shown(Phase.FAILED, ShownReason.CANCELLED, words, shown.exit_code)
    counts = seen.array.model_copy(update={"failed": seen.array.failed + seen.unseen}) if seen.array else None
    return replace(seen, shown=shown, array=counts, is_cancelled=True)
