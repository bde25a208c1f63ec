"""Calls about jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from slurm_client import encode, error_numbers, errors
from slurm_client.answers import ListOf
from slurm_client.decode import objects, resources
from slurm_client.decode.read import items, mapping, number, text
from slurm_client.models.jobspec import JobResult, JobSpec, SubmittedJob
from slurm_client.operations.base import Listing, Operations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurm_client.answers import Answer
    from slurm_client.models import Job, JobStateEntry, NodeResources

__all__ = ["JobOperations"]

_JOBS = ListOf("jobs", objects.job)
_STATES = ListOf("jobs", objects.job_state)
_LAYOUT = ListOf("nodes", resources.node_resources)


class JobOperations(Operations):
    """List, get, submit, update, signal, cancel and requeue jobs."""

    @overload
    async def jobs(self, *, timeout: float | None = None) -> Listing[Job]: ...

    @overload
    async def jobs(self, update_time: int | None, *, timeout: float | None = None) -> Listing[Job] | None: ...

    async def jobs(self, update_time: int | None = None, *, timeout: float | None = None) -> Listing[Job] | None:
        """
        Return all jobs slurmctld remembers, finished ones included for ``MinJobAge`` seconds.

        Parameters
        ----------
        update_time
            ``last_update`` of an earlier list; the answer is then ``None`` if nothing has changed since. (slurmrestd
            says that by an empty list with a warning, which must not pass for "no jobs".)
        """
        found = await self._list("get_jobs", _JOBS, update_time=update_time, timeout=timeout)
        if found is not None and update_time is not None and not found.items and found.warnings:
            return None
        return found

    async def job(self, job_id: int, *, timeout: float | None = None) -> Job:
        """Return one job; NotFound if slurmctld does not know it (any more)."""
        found: Job = await self._one("get_job", _JOBS, f"job {job_id}", path={"job_id": int(job_id)}, timeout=timeout)
        return found

    async def job_states(self, *, timeout: float | None = None) -> Listing[JobStateEntry]:
        """Return ids and states of all jobs: a much smaller answer than :meth:`jobs`."""
        found = await self._list("get_jobs_state", _STATES, timeout=timeout)
        return found if found is not None else Listing(())

    async def jobs_on_nodes(self, names: Iterable[str], *, timeout: float | None = None) -> tuple[Job, ...]:
        """
        Return the jobs that hold any of these nodes: running, suspended, completing or staging out.

        A node without such a job may lose its slurmd. One list is asked for, whatever the number of names.
        """
        wanted = set(names)
        if not wanted:
            return ()
        return tuple(
            job for job in await self.jobs(timeout=timeout) if job.holds_nodes and not wanted.isdisjoint(job.nodes)
        )

    async def cancel_job(self, job: Job | int, *, signal: str | None = None, timeout: float | None = None) -> None:
        """
        End a job, or send it a signal; no error if it has ended already, NotFound if it is unknown.

        Parameters
        ----------
        job
            The job, which of an array means that task and no other; or an id, which of an array may mean all tasks.
        signal
            Name or number, e.g. ``TERM``; without one the job is cancelled.
        """
        if await self._session.negotiate() in _SILENT_ABOUT_UNKNOWN_JOBS:
            await self.job(job if isinstance(job, int) else job.id, timeout=timeout)
        answer = await self._session.call(
            "delete_job", path={"job_id": _alone(job)}, query={"signal": signal}, timeout=timeout
        )
        for entry in items(answer.fields.get("status")):
            found = _result(mapping(entry)).error
            if found is not None and found.number != _ALREADY_DONE:
                raise _error_of(found, answer, "delete_job")

    async def cancel_jobs(
        self,
        job_ids: Iterable[int] = (),
        *,
        nodes: Iterable[str] = (),
        user: str | None = None,
        partition: str | None = None,
        account: str | None = None,
        name: str | None = None,
        states: Iterable[str] = (),
        signal: str | None = None,
        timeout: float | None = None,
    ) -> tuple[JobResult, ...]:
        """
        End or signal many jobs in one call: those named, or all that match every filter.

        Returns what became of each. Without any id and filter nothing is sent: that would be every job there is.
        """
        body: dict[str, Any] = {
            "jobs": [str(int(job_id)) for job_id in job_ids],
            "nodes": list(nodes),
            "user_name": user,
            "partition": partition,
            "account": account,
            "job_name": name,
            "job_state": list(states),
        }
        body = {key: value for key, value in body.items() if value}
        if not body:
            return ()
        if signal is not None:
            body["signal"] = signal
        answer = await self._session.call("delete_jobs", body=body, timeout=timeout, tolerate=lambda _: True)
        results = tuple(_result(mapping(entry)) for entry in items(answer.fields.get("status")))
        if not results:
            self._session.refuse(answer, "delete_jobs")
        return results

    async def submit_job(self, spec: JobSpec, *, timeout: float | None = None) -> SubmittedJob:
        """
        Submit a batch job.

        Never repeated by itself once it was sent: after Timeout or Unreachable, look whether it is there (give it a
        name or comment to know it by).
        """
        version = await self._session.negotiate()
        body = encode.submission(spec)
        encode.fitted(version, "JobDescMsg", body["job"])
        answer = await self._session.call("post_job_submit", body=body, timeout=timeout)
        job_id = number(answer.fields.get("job_id"))
        if job_id is None:
            raise errors.DecodeError("the answer has no 'job_id'", request=errors.Request("POST", "/job/submit"))
        return SubmittedJob(job_id, text(answer.fields.get("job_submit_user_msg")), answer.warnings)

    async def update_job(self, job_id: int, spec: JobSpec, *, timeout: float | None = None) -> None:
        """Change a job; NotFound if it is unknown, InvalidRequest or InvalidTransition if Slurm will not."""
        answer = await self._session.call(
            "post_job", path={"job_id": int(job_id)}, body=encode.job(spec), timeout=timeout
        )
        _raise_for_entries(answer, "results", "post_job")

    async def hold_job(self, job_id: int, *, timeout: float | None = None) -> None:
        """Keep a pending job from starting."""
        await self.update_job(job_id, JobSpec(hold=True), timeout=timeout)

    async def release_job(self, job_id: int, *, timeout: float | None = None) -> None:
        """Let a held job start."""
        await self.update_job(job_id, JobSpec(hold=False), timeout=timeout)

    async def requeue_job(self, job: Job | int, *, hold: bool = False, timeout: float | None = None) -> None:
        """
        Put a running job back into the queue (v0.0.45 and newer). Never repeated by itself.

        Parameters
        ----------
        job
            As for :meth:`cancel_job`: of an array, an id may mean all tasks.
        """
        answer = await self._session.call(
            "get_job_requeue",
            path={"job_id": _alone(job)},
            query={"Hold": "true"} if hold else None,
            timeout=timeout,
        )
        _raise_for_entries(answer, "status", "get_job_requeue")

    async def job_resources(self, job_id: int, *, timeout: float | None = None) -> tuple[NodeResources, ...]:
        """Return what a job was given, node by node (v0.0.44 and newer)."""
        found = await self._list("get_resources", _LAYOUT, path={"job_id": int(job_id)}, timeout=timeout)
        return found.items if found is not None else ()


_ALREADY_DONE = 2021

_SILENT_ABOUT_UNKNOWN_JOBS = frozenset({"v0.0.40", "v0.0.41"})
"""Parsers whose answer to the end of a job is the same whether there is such a job or not."""


def _alone(job: Job | int) -> str:
    """How a job is named in an address."""
    return str(job) if isinstance(job, int) else job.alone


def _error_of(report: errors.Report, answer: Answer, operation: str) -> errors.SlurmError:
    kind = error_numbers.class_of(report.number) or errors.ServerError
    return kind(str(report), request=errors.Request("", operation), status=answer.status, reports=(report,))


def _result(raw: Any) -> JobResult:
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


def _raise_for_entries(answer: Answer, key: str, operation: str) -> None:
    """Raise the first error among the entries of a good answer about the tasks of one job."""
    for entry in items(answer.fields.get(key)):
        raw = mapping(entry)
        code = number(raw.get("error_code"))
        if not code:
            continue
        report = errors.Report(
            description=text(raw.get("why")),
            number=code,
            name=error_numbers.name_of(code),
            error=text(raw.get("error")),
        )
        raise _error_of(report, answer, operation)
