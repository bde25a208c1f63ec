"""What became of jobs, as calls about them say it; an error about one of many is a result, not an exception."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

from slurm_client import errors
from slurm_client.connection import error_numbers
from slurm_client.decode.read import items, mapping, number, text
from slurm_client.models.jobspec import JobResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slurm_client.connection.answers import Answer
    from slurm_client.operations.jobs.resolve import JobNames

_ALREADY_DONE = 2021
_PENDING = 2024
_ABOUT = re.compile(r"Requeue JobI[dD]=(\S{1,40}) failed")


def of_each(error: errors.SlurmError) -> bool:
    """Whether an error may be about one of many jobs, so that the answer has to be read for the others."""
    return not isinstance(error, errors.Unauthorized | errors.Unreachable)


def raise_first(results: Iterable[JobResult], operation: str, status: int | None = None) -> None:
    """Raise the first error about a job, but for one that has ended already."""
    for result in results:
        if result.error is not None and result.error.number != _ALREADY_DONE:
            raise error_of(result.error, operation, status)


def error_of(report: errors.Report, operation: str, status: int | None = None) -> errors.SlurmError:
    """Return the error that a report about one job is."""
    kind = error_numbers.class_of(report.number) or errors.ServerError
    return kind(str(report), request=errors.Request("", operation), status=status, reports=(report,))


def killed(raw: Mapping[str, Any]) -> JobResult:
    """Read what became of a job that was to be ended or signalled."""
    error = mapping(raw.get("error"))
    code = number(error.get("code"))
    report = None
    if code:
        report = errors.Report(
            description=text(error.get("message")),
            number=code,
            name=error_numbers.name_of(code),
            error=text(error.get("string")),
        )
    return JobResult(text(raw.get("step_id")) or text(raw.get("job_id")), report)


def of_all(meant: Iterable[str], told: Iterable[JobResult]) -> tuple[JobResult, ...]:
    """
    Return what became of all jobs that were meant, of which slurmrestd tells the failures; those last.

    Parameters
    ----------
    meant
        Names of jobs. A job with results for single tasks is left out: what became of its other tasks is not known.
    told
        What the answer says.
    """
    results = list(told)
    named = {result.id for result in results}
    parts = {name.partition("_")[0].partition("+")[0] for name in named}
    silent = [JobResult(name) for name in meant if name not in named and name not in parts]
    return (*silent, *sorted(results, key=lambda result: result.error is not None))


def changed(raw: Mapping[str, Any]) -> JobResult:
    """Read what became of a job, or of some tasks of an array, that were to be changed or requeued."""
    code = number(raw.get("error_code"))
    report = None
    if code:
        report = errors.Report(
            description=text(raw.get("why")),
            number=code,
            name=error_numbers.name_of(code),
            error=text(raw.get("error")),
        )
    return JobResult(text(raw.get("step_id")) or text(raw.get("job_id")), report)


def raise_for_entries(answer: Answer, key: str, operation: str) -> None:
    """Raise the first error among the entries of a good answer about the tasks of one job."""
    for entry in items(answer.fields.get(key)):
        report = changed(mapping(entry)).error
        if report is not None:
            raise error_of(report, operation, answer.status)


def not_started(names: JobNames) -> JobResult:
    """Return the result of requeueing tasks that wait together: slurmctld says no more of them."""
    return JobResult(
        str(names),
        errors.Report(
            description="it has not started: there is nothing to requeue",
            number=_PENDING,
            name=error_numbers.name_of(_PENDING),
        ),
    )


class Requeued:
    """
    What became of the jobs of one bulk requeue.

    slurmrestd says it in two places: of arrays in ``status``, a list for each of them; of other jobs in ``errors``, by
    their names in the text, and nothing of those that went well.

    Parameters
    ----------
    answer
        The answer, with any status.

    Attributes
    ----------
    told
        Whether all that it says is about single jobs; else it is about the call as a whole.
    """

    def __init__(self, answer: Answer) -> None:
        self._refused: dict[str, JobResult] = {}
        self._arrays: dict[int, deque[tuple[JobResult, ...]]] = defaultdict(deque)
        self.told = answer.status == 200 or "status" in answer.fields
        for raw in map(mapping, items(answer.fields.get("errors"))):
            found = _ABOUT.fullmatch(text(raw.get("description")))
            if found is None:
                self.told = False
                continue
            code = number(raw.get("error_number"))
            report = errors.Report(
                description=errors.said(text(raw.get("description"))),
                number=code,
                name=error_numbers.name_of(code),
                error=errors.said(text(raw.get("error"))),
                source=errors.said(text(raw.get("source"))),
            )
            self._refused[found[1]] = JobResult(found[1], report)
        for entries in items(answer.fields.get("status")):
            group = [mapping(entry) for entry in items(entries)]
            if group:
                self._arrays[number(group[0].get("job_id")) or 0].append(tuple(map(changed, group)))

    def of(self, names: JobNames) -> tuple[JobResult, ...]:
        """Return what became of one job that was named; asked for in the order in which they were named."""
        if names.waiting:
            return (not_started(names),)
        refused = self._refused.get(str(names))
        if refused is not None:
            return (refused,)
        groups = self._arrays.get(names.id.id)
        return groups.popleft() if groups else (JobResult(str(names)),)
