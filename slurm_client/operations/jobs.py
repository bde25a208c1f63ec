"""Calls about jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from slurm_client import errors
from slurm_client.connection import error_numbers
from slurm_client.connection.answers import ListOf
from slurm_client.decode import jobs as decode
from slurm_client.decode import resources
from slurm_client.decode.read import items, mapping, number, text
from slurm_client.encode import jobs as encode
from slurm_client.encode.values import fitted
from slurm_client.models.jobspec import JobResult, JobSpec, SubmittedJob
from slurm_client.operations import resolve
from slurm_client.operations.base import Listing, Operations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurm_client.connection.answers import Answer
    from slurm_client.models import Job, JobStateEntry, NodeResources
    from slurm_client.operations.arguments import BaseState, JobRef, Name, NodeName, NodeNames, Signal, Text

__all__ = ["JobOperations"]

_JOBS = ListOf("jobs", decode.job)
_STATES = ListOf("jobs", decode.job_state)
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
        return await self._all_jobs(_JOBS, update_time, timeout)

    async def _all_jobs(self, wanted: ListOf, update_time: int | None, timeout: float | None) -> Listing[Job] | None:
        found = await self._list("get_jobs", wanted, update_time=update_time, timeout=timeout)
        if found is not None and update_time is not None and not found.items and found.warnings:
            return None
        return found

    async def job(self, job_id: JobRef, *, timeout: float | None = None) -> Job:
        """
        Return one job; NotFound if slurmctld does not know it (any more).

        Parameters
        ----------
        job_id
            A number means the record of that number, under which a watch has it too: of an array, that is one task or
            those that still wait together, and never another task. ``7_3`` is that task of array 7, ``7+1`` that
            component of the heterogeneous job 7. :meth:`job_parts` returns them all.
        """
        wanted = resolve.job_id(job_id)
        found: Job = await self._one(
            "get_job",
            _JOBS,
            f"job {wanted}",
            pick=lambda records: resolve.pick(wanted, records),
            path={"job_id": wanted.id},
            timeout=timeout,
        )
        return resolve.part(wanted, found)

    async def job_parts(self, job_id: JobRef, *, timeout: float | None = None) -> tuple[Job, ...]:
        """
        Return all records of a job: the tasks of an array, the components of a heterogeneous job, or itself.

        Tasks that wait together are one record, with their indices in ``array_tasks``.
        """
        answer = await self._list("get_job", _JOBS, path={"job_id": resolve.job_id(job_id).id}, timeout=timeout)
        return answer.items if answer is not None else ()

    async def job_states(self, *, timeout: float | None = None) -> Listing[JobStateEntry]:
        """Return ids and states of all jobs: a much smaller answer than :meth:`jobs`."""
        found = await self._list("get_jobs_state", _STATES, timeout=timeout)
        return found if found is not None else Listing(())

    async def jobs_on_nodes(self, names: NodeNames, *, timeout: float | None = None) -> tuple[Job, ...]:
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

    async def cancel_job(self, job: JobRef, *, signal: Signal | None = None, timeout: float | None = None) -> None:
        """
        End a job, or send it a signal; no error if it has ended already, NotFound if it is unknown.

        Parameters
        ----------
        job
            A job as it was read, which of an array means that task (or those that wait together) and no other; or an
            id: ``7_3`` is one task of an array, ``7+1`` one component of a heterogeneous job, and the number of an
            array means all of its tasks.
        signal
            Name or number, e.g. ``TERM``; without one the job is cancelled.
        """
        named = resolve.names(job)
        if named.waiting:
            results = await self._kill({"jobs": [str(named)]}, signal, timeout)
            _raise_first(results, "delete_jobs")
            return
        wanted = named.id
        if wanted.component is not None or await self._session.negotiate(timeout) in _SILENT_ABOUT_UNKNOWN_JOBS:
            # slurmrestd adds an offset to the number of any job, heterogeneous or not.
            if wanted.task is None and wanted.component is None:
                await self.job_parts(wanted, timeout=timeout)
            else:
                await self.job(wanted, timeout=timeout)
        answer = await self._session.call(
            "delete_job", path={"job_id": str(wanted)}, query={"signal": signal}, timeout=timeout
        )
        for entry in items(answer.fields.get("status")):
            found = _result(mapping(entry)).error
            if found is not None and found.number != _ALREADY_DONE:
                raise _error_of(found, "delete_job", answer.status)

    async def cancel_jobs(
        self,
        job_ids: Iterable[JobRef] | None = None,
        *,
        nodes: Iterable[NodeName] | None = None,
        user: Name | None = None,
        partition: Name | None = None,
        account: Name | None = None,
        name: Text | None = None,
        states: Iterable[BaseState] | None = None,
        signal: Signal | None = None,
        timeout: float | None = None,
    ) -> tuple[JobResult, ...]:
        """
        End or signal many jobs in one call: of those named, or else of all there are, the ones that match every filter.

        Returns what became of each.

        Parameters
        ----------
        job_ids
            Jobs, as for :meth:`cancel_job`.
        nodes, user, partition, account, name, states
            Filters. States are base states such as ``PENDING``.

        Raises
        ------
        InvalidArgument
            For an empty list or name beside or as a filter, and for no id and no filter at all: that would be every
            job there is. An empty list of ids and nothing else ends nothing.
        """
        body: dict[str, Any] = {
            "jobs": None if job_ids is None else [str(resolve.names(job)) for job in job_ids],
            "nodes": None if nodes is None else list(nodes),
            "user_name": user,
            "partition": partition,
            "account": account,
            "job_name": name,
            "job_state": None if states is None else [word.upper() for word in states],
        }
        body = {key: value for key, value in body.items() if value is not None}
        if body == {"jobs": []}:
            return ()
        for key, field in (("jobs", "job_ids"), ("nodes", "nodes"), ("job_state", "states")):
            if key in body and not body[key]:
                raise errors.InvalidArgument(
                    f"cancel_jobs: {field} is empty, which would not narrow down the jobs; nothing was sent",
                    field=field,
                )
        if not body:
            raise errors.InvalidArgument(
                "cancel_jobs: neither ids nor a filter, which would be every job; nothing was sent", field="job_ids"
            )
        return await self._kill(body, signal, timeout)

    async def _kill(self, body: dict[str, Any], signal: str | None, timeout: float | None) -> tuple[JobResult, ...]:
        """End or signal the jobs that a body names."""
        if signal is not None:
            body = {**body, "signal": signal}
        answer = await self._session.call("delete_jobs", body=body, timeout=timeout, tolerate=lambda _: True)
        results = tuple(
            self._session.kept(_result(mapping(entry)), mapping(entry)) for entry in items(answer.fields.get("status"))
        )
        if not results:
            self._session.refuse(answer, "delete_jobs")
        return results

    async def submit_job(self, spec: JobSpec, *, timeout: float | None = None) -> SubmittedJob:
        """
        Submit a batch job.

        Never retried once it was sent: after Timeout or Unreachable, check whether the job exists (give it a
        name or comment to know it by).
        """
        version = await self._session.negotiate(timeout)
        body = encode.submission(spec)
        fitted(version, "JobDescMsg", body["job"])
        answer = await self._session.call("post_job_submit", body=body, timeout=timeout)
        job_id = number(answer.fields.get("job_id"))
        if job_id is None:
            raise errors.DecodeError("the answer has no 'job_id'", request=errors.Request("POST", "/job/submit"))
        submitted = SubmittedJob(job_id, text(answer.fields.get("job_submit_user_msg")), answer.warnings)
        return self._session.kept(submitted, answer.fields)

    async def update_job(self, job_id: JobRef, spec: JobSpec, *, timeout: float | None = None) -> None:
        """
        Change a job; NotFound if it is unknown, InvalidRequest or InvalidTransition if Slurm will not.

        Parameters
        ----------
        job_id
            A number means the record of that number, as for :meth:`job`: of an array, one task or those that wait
            together. A task that waits with others has no record of its own and cannot be changed alone.
        """
        number = await self._number_of(job_id, timeout)
        answer = await self._session.call("post_job", path={"job_id": number}, body=encode.job(spec), timeout=timeout)
        _raise_for_entries(answer, "results", "post_job")

    async def _number_of(self, job_id: JobRef, timeout: float | None) -> int:
        """Return the number of the record of one job: slurmrestd takes nothing else when a job is changed."""
        wanted = resolve.job_id(job_id)
        if wanted.task is None and wanted.component is None:
            return wanted.id
        record = resolve.pick(wanted, await self.job_parts(wanted.id, timeout=timeout))
        if record is None:
            raise errors.NotFound(f"no job {wanted}")
        if wanted.task is not None and record.array_task_id is None:
            raise errors.InvalidRequest(
                f"task {wanted} waits together with others ({record.array_tasks[:40]}) and cannot be changed "
                f"alone; change job {wanted.id} instead"
            )
        return record.id

    async def hold_job(self, job_id: JobRef, *, timeout: float | None = None) -> None:
        """Keep a pending job from starting; ``job_id`` as for :meth:`update_job`."""
        await self.update_job(job_id, JobSpec(hold=True), timeout=timeout)

    async def release_job(self, job_id: JobRef, *, timeout: float | None = None) -> None:
        """Let a held job start; ``job_id`` as for :meth:`update_job`."""
        await self.update_job(job_id, JobSpec(hold=False), timeout=timeout)

    async def requeue_job(self, job: JobRef, *, hold: bool = False, timeout: float | None = None) -> None:
        """
        Requeue a running job (v0.0.45 and newer). Never retried.

        Parameters
        ----------
        job
            As for :meth:`cancel_job`: the number of an array means all of its tasks.
        """
        named = resolve.names(job)
        if named.waiting:
            raise errors.InvalidTransition(f"job {named} has not started: there is nothing to requeue")
        if named.id.component is not None:
            await self.job(named.id, timeout=timeout)
        answer = await self._session.call(
            "get_job_requeue",
            path={"job_id": str(named)},
            query={"Hold": "true"} if hold else None,
            timeout=timeout,
        )
        _raise_for_entries(answer, "status", "get_job_requeue")

    async def job_resources(self, job_id: JobRef, *, timeout: float | None = None) -> tuple[NodeResources, ...]:
        """Return what a job was given, node by node (v0.0.44 and newer); ``job_id`` as for :meth:`job`."""
        number = await self._number_of(job_id, timeout)
        found = await self._list("get_resources", _LAYOUT, path={"job_id": number}, timeout=timeout)
        return found.items if found is not None else ()


_ALREADY_DONE = 2021

_SILENT_ABOUT_UNKNOWN_JOBS = frozenset({"v0.0.40", "v0.0.41"})
"""Parsers whose answer to the end of a job is the same whether there is such a job or not."""


def _raise_first(results: Iterable[JobResult], operation: str) -> None:
    """Raise the first error about a job, but for one that has ended already."""
    for result in results:
        if result.error is not None and result.error.number != _ALREADY_DONE:
            raise _error_of(result.error, operation)


def _error_of(report: errors.Report, operation: str, status: int | None = None) -> errors.SlurmError:
    kind = error_numbers.class_of(report.number) or errors.ServerError
    return kind(str(report), request=errors.Request("", operation), status=status, reports=(report,))


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
        raise _error_of(report, operation, answer.status)
