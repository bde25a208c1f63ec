"""Jobs that slurmctld shows as waiting or running although they had ended. Pure.

slurmctld writes its state every few seconds. One that is killed right after the end of a job has the job of some
seconds ago when it comes back, and runs it on. A job without a script then holds nodes that nobody uses, and one that
was cancelled goes on. Neither is meant by anybody: its SlurmJob has said so, and stays as it is.

A job with a script that has ended by itself is left alone: users may requeue it.
"""

from __future__ import annotations

from typing import Any

from slinky_api import labels
from slinky_api.conditions import Reason, SlurmJobCondition
from slinky_operator.kube.objects import Object
from slinky_operator.slurmjob.model.dependencies import has_ended
from slinky_operator.slurmjob.model.slurm_records import marks
from slinky_operator.slurmjob.model.slurm_records.marks import Mark
from slurm_client.models import Job
from slurm_client.models.job import FINISHED


def is_unwanted(obj: Object) -> bool:
    """Whether nobody wants the job of a SlurmJob any more, as the API server has it.

    Parameters
    ----------
    obj
        One that has ended, or is about to go.
    """
    about, spec = obj["metadata"], _part(obj, "spec")
    if not has_ended(obj):
        return bool(about.get("deletionTimestamp")) and spec.get("cancelPolicy") != "Keep"
    is_over = spec.get("external") is not None and not is_left_behind(obj)
    return is_over or labels.is_true(about.get("annotations"), labels.ANNOTATION_CANCEL)


def is_left_behind(obj: Object) -> bool:
    """Whether a SlurmJob has ended only because its Cluster was gone for long: its job may run on."""
    conditions = _part(obj, "status").get("conditions") or ()
    return any(
        one.get("type") == SlurmJobCondition.FINISHED and one.get("reason") == Reason.CLUSTER_GONE for one in conditions
    )


def is_back(obj: Object, mark: Mark, record: Job) -> bool:
    """Whether a record is that of a job which has ended, and which is in slurmctld's queue again.

    Parameters
    ----------
    obj
        The SlurmJob that the mark names.
    mark
        That of the record.
    record
        What slurmctld has.
    """
    status = _part(obj, "status")
    if record.state.base in FINISHED or record.user != (status.get("user") or ""):
        return False
    last, number = (status.get("submission") or {}).get("attempt") or 0, marks.number_of(record)
    if mark.attempt == last:
        return number == status.get("jobId") and is_unwanted(obj)
    # One before the last has ended before the next was submitted; a user may requeue one that has a script.
    is_external = _part(obj, "spec").get("external") is not None
    return is_external and mark.attempt < last and number in (status.get("failedAttempts") or ())


def _part(obj: Object, name: str) -> dict[str, Any]:
    found = obj.get(name)
    return found if isinstance(found, dict) else {}
