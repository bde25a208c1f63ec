"""What is asked of Slurm for a SlurmJob, and how much of it a dry run shows. Pure.

A submission and a dry run take the same job from here, and the client makes the same request of it.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.slurmjob.kind import MAX_REQUEST, JobRequest, SlurmJob
from slinky_operator.jobs.translation import Submission
from slinky_operator.slurmjob.model import dependencies
from slinky_operator.slurmjob.model.news import Conclusion, Note
from slinky_operator.slurmjob.model.slurm_records.allocations import Share
from slinky_operator.slurmjob.model.slurm_records.allocations import shares as shares_of
from slinky_operator.slurmjob.model.slurm_records.marks import Mark
from slinky_operator.slurmjob.model.steps import Plan
from slurm_client import JobSpec
from slurm_client.models import SubmissionRequest

DRY_RUN: Final = "DryRun"
"""State of a dry run that has come to its end."""


MOST_SHARES: Final = 64
"""Components with which the nodes of a job are asked for again; Slurm takes 128."""


def shares(job: SlurmJob) -> tuple[Share, ...]:
    """The parts in which the nodes of a job without a script are asked for again; nothing if that cannot be done."""
    external = job.spec.external
    parts = [(one.cpus_per_task, one.tasks) for one in (external.components if external is not None else None) or ()]
    found = shares_of(job.status.allocation or (), parts or [(job.spec.cpus_per_task or 1, job.spec.tasks)])
    # What is asked for once for the whole cannot be divided.
    is_whole = len(found) > 1 and "tres_per_job" in job.spec.parameters
    return () if is_whole or len(found) > MOST_SHARES else found


def wanted_again(job: SlurmJob, submission: Submission, attempt: int, now: datetime) -> tuple[JobSpec, ...]:
    """The job once more for the nodes that it had: each of its shares as a component, or as the whole.

    What runs there has had a part of its time.

    Parameters
    ----------
    now
        The time of slurmctld's clock, as that of its start.
    """
    mark = Mark(job.uid, attempt).text
    found: list[JobSpec] = []
    for share in shares(job):
        asked = (submission.components or (submission.job,))[share.component]
        once: dict[str, Any] = {"licenses": None, "mail_type": None} if found else {}
        left = _time_left(job, asked, now)
        if left is not None:
            # The whole is all that its time may be shortened to.
            once |= {"time_limit": left, "time_minimum": None}
        tasks = share.tasks * len(share.nodes)
        found.append(
            replace(
                asked,
                extra=mark,
                nodes=str(len(share.nodes)),
                minimum_nodes=None,
                tasks=tasks,
                # That of the whole is more than a node of this share has: Slurm would refuse it for ever.
                minimum_cpus=None if asked.minimum_cpus is None else tasks * (asked.cpus_per_task or 1),
                tasks_per_node=share.tasks,
                required_nodes=share.nodes,
                excluded_nodes=None,
                dependency=None,
                begin_time=None,
                deadline=None,
                hold=None,
                **once,
            )
        )
    return tuple(found)


def _time_left(job: SlurmJob, asked: JobSpec, now: datetime) -> timedelta | None:
    """What is left of the limit of a job that had started, in whole minutes; None if that is not known.

    A limit that somebody has raised meanwhile is that of the deadline. An earlier deadline is that of a preemption,
    which slurmctld has forgotten, too.
    """
    limit, start, deadline = asked.time_limit, job.status.start_time, job.status.deadline
    if not isinstance(limit, timedelta) or start is None:
        return None
    end = start + limit if deadline is None else max(start + limit, deadline)
    minutes = math.ceil(min(end - now, end - start) / timedelta(minutes=1))
    return timedelta(minutes=max(1, minutes))


def wanted(job: SlurmJob, submission: Submission, ready: dependencies.Ready, attempt: int) -> tuple[JobSpec, ...]:
    """The job, or each of its components, as Slurm is asked for it: with its mark, and what it waits for.

    Slurm starts components together, so the first one alone waits for other jobs.

    Parameters
    ----------
    job
        The SlurmJob.
    submission
        What its spec says.
    ready
        What it waits for.
    attempt
        Which submission it is.
    """
    mark = Mark(job.uid, attempt).text
    first, *others = submission.components or (submission.job,)
    dependency = dependencies.joined(first.dependency, ready.text)
    first = replace(first, extra=mark, dependency=dependency)
    return first, *(replace(one, extra=mark) for one in others)


def shown(request: SubmissionRequest) -> JobRequest:
    """A request as it is shown: all of it, or without the script that makes it too long, or its length and digest."""
    content = request.body.encode()
    known = JobRequest(method=request.method, path=request.path, size=len(content), sha256=_digest(content))
    if len(content) <= MAX_REQUEST:
        return known.model_copy(update={"body": request.body})
    body = json.loads(request.body)
    script = str(body.pop("script", "")).encode()
    rest = json.dumps(body, separators=(",", ":"))
    changes = {
        "script_size": len(script),
        "script_sha256": _digest(script),
        "body": rest if len(rest) <= MAX_REQUEST else None,
    }
    return known.model_copy(update=changes)


def ended(request: JobRequest, submission: Submission) -> Plan:
    """The end of a dry run, with what an Event about a submission would say."""
    what = f"{request.method} {request.path}"
    words = f"dry run: nothing is submitted; status.request has the request that would be sent, {what}"
    if request.body is None:
        words += f", without its body, which has {request.size} bytes, more than {MAX_REQUEST} also without the script"
    elif request.script_size is not None:
        words += f", without the script, since it has {request.size} bytes, more than {MAX_REQUEST}"
    notes = [*map(str, submission.conflicts), *submission.without_effect]
    note = Note(Reason.REQUEST_SHOWN, "; ".join([words, *notes]))
    return Plan(news=Conclusion(DRY_RUN, note, request=request))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
