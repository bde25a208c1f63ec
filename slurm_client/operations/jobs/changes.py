"""Calls about jobs: those that change them are here, the others where they are inherited from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client import errors
from slurm_client.decode.read import items, mapping
from slurm_client.encode import jobs as encode
from slurm_client.models.jobspec import JobResult, JobSpec
from slurm_client.operations.jobs import outcomes, resolve
from slurm_client.operations.jobs.reading import JobReading
from slurm_client.operations.jobs.submission import Submission

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from slurm_client.models import Job
    from slurm_client.operations.arguments import BaseState, JobRef, Name, NodeName, Signal, Text

__all__ = ["JobOperations"]


class JobOperations(JobReading, Submission):
    """List, get, submit, update, signal, cancel and requeue jobs."""

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
            outcomes.raise_first(results, "delete_jobs")
            return
        wanted = named.id
        if wanted.component is not None or await self._session.negotiate(timeout) in _SILENT_ABOUT_UNKNOWN_JOBS:
            # slurmrestd adds an offset to the number of any job, heterogeneous or not.
            if wanted.task is None and wanted.component is None:
                await self.job_parts(wanted, details=False, timeout=timeout)
            else:
                await self.job(wanted, details=False, timeout=timeout)
        answer = await self._session.call(
            "delete_job", path={"job_id": str(wanted)}, query={"signal": signal}, timeout=timeout
        )
        said = [outcomes.killed(mapping(entry)) for entry in items(answer.fields.get("status"))]
        outcomes.raise_first(said, "delete_job", answer.status)

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

        Returns what became of each job that was meant: first those without an error. slurmrestd tells of failures only,
        so with a filter the jobs are listed first; one that comes to match meanwhile is ended and not told. Without a
        filter there is a result for each id; of an array that was named as a whole, one for each task that was refused
        where any was.

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
        named = None if job_ids is None else list(dict.fromkeys(map(resolve.names, job_ids)))
        body: dict[str, Any] = {
            "jobs": None if named is None else [str(job) for job in named],
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
        if body.keys() == {"jobs"}:
            meant = body["jobs"]
        else:
            records = await self.all_jobs(timeout=timeout)
            meant = [record.alone for record in records if _is_chosen(record, body, named)]
        return outcomes.of_all(meant, await self._kill(body, signal, timeout))

    async def _kill(self, body: dict[str, Any], signal: str | None, timeout: float | None) -> tuple[JobResult, ...]:
        """End or signal the jobs that a body names."""
        if signal is not None:
            body = {**body, "signal": signal}
        answer = await self._session.call("delete_jobs", body=body, timeout=timeout, tolerate=outcomes.of_each)
        results = tuple(
            self._session.kept(outcomes.killed(raw), raw) for raw in map(mapping, items(answer.fields.get("status")))
        )
        if not results:
            self._session.refuse(answer, "delete_jobs")
        return results

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
        outcomes.raise_for_entries(answer, "results", "post_job")

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
            await self.job(named.id, details=False, timeout=timeout)
        answer = await self._session.call(
            "get_job_requeue",
            path={"job_id": str(named)},
            query={"Hold": "true"} if hold else None,
            timeout=timeout,
        )
        outcomes.raise_for_entries(answer, "status", "get_job_requeue")

    async def requeue_jobs(
        self, jobs: Iterable[JobRef], *, hold: bool = False, timeout: float | None = None
    ) -> tuple[JobResult, ...]:
        """
        Requeue many running jobs in one call (v0.0.45 and newer), and return what became of each. Never retried.

        Slurm goes through all of them, whatever becomes of one. There is a result for each job, in the order given; of
        an array one for each group of its tasks to which the same happened, named ``7_[0-3]``.

        Parameters
        ----------
        jobs
            As for :meth:`cancel_job`, but for components: name the whole heterogeneous job. Nothing is sent for none.

        Raises
        ------
        InvalidArgument
            For a component; slurmrestd knows none here.
        SlurmError
            For the call as a whole, when no job can be told from what the server says.
        """
        named = list(dict.fromkeys(map(resolve.names, jobs)))
        component = next((each.id for each in named if each.id.component is not None), None)
        if component is not None:
            raise errors.InvalidArgument(
                f"requeue_jobs: {component} is a component, and only the whole job {component.id} can be requeued; "
                "nothing was sent",
                field="jobs",
            )
        await self._session.require("post_jobs_requeue", timeout)
        started = [each for each in named if not each.waiting]
        if not started:
            return tuple(map(outcomes.not_started, named))
        answer = await self._session.call(
            "post_jobs_requeue",
            body={"jobs": [str(each) for each in started], **({"flags": ["Hold"]} if hold else {})},
            timeout=timeout,
            tolerate=outcomes.of_each,
        )
        outcome = outcomes.Requeued(answer)
        if not outcome.told:
            self._session.refuse(answer, "post_jobs_requeue")
        return tuple(result for each in named for result in outcome.of(each))


_FIELDS = (("user_name", "user"), ("partition", "partition"), ("account", "account"), ("job_name", "name"))
"""Keys of filters, and the fields of a job that they are compared with."""


def _is_chosen(record: Job, filters: Mapping[str, Any], named: Sequence[resolve.JobNames] | None) -> bool:
    """Whether Slurm would end a job by filters, as far as its record shows."""
    return (
        not record.is_finished
        and all(filters[key] == getattr(record, field) for key, field in _FIELDS if key in filters)
        and ("nodes" not in filters or not set(filters["nodes"]).isdisjoint(record.nodes))
        and ("job_state" not in filters or record.state.base in filters["job_state"])
        and (named is None or any(resolve.means(job, record) for job in named))
    )


_SILENT_ABOUT_UNKNOWN_JOBS = frozenset({"v0.0.40", "v0.0.41"})
"""Parsers whose answer to the end of a job is the same whether there is such a job or not."""
