"""Calls that read jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from slurm_client import errors
from slurm_client.connection.answers import ListOf
from slurm_client.decode import job_details, resources
from slurm_client.decode import jobs as decode
from slurm_client.operations.base import Listing, Operations
from slurm_client.operations.jobs import resolve
from slurm_client.operations.jobs.singly import SHORT_ROUND, Singly
from slurm_client.slices import sliced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from slurm_client.models import Job, JobId, JobStateEntry, NodeResources
    from slurm_client.models.job import JobState
    from slurm_client.operations.arguments import BaseState, JobRef, Name, NodeNames, Text

__all__ = ["JobReading"]

_JOBS = ListOf("jobs", decode.job)
_DETAILED = ListOf("jobs", job_details.detailed_job, in_slices=job_details.detailed_job_in_slices)
_STATES = ListOf("jobs", decode.job_state)
_STATES_BY_ARRAY = ListOf("jobs", decode.job_state_by_array)
_LAYOUT = ListOf("nodes", resources.node_resources)

_ALL = "jobs"
"""What the list of all jobs is called."""

_IDS_IN_ONE_CALL = 300
"""Ids in one address; slurmrestd takes 1,500 (measured), what stands before it may not."""


class JobReading(Operations):
    """List, get and find jobs."""

    @overload
    async def jobs(
        self, *, details: bool = False, cores: bool = True, timeout: float | None = None
    ) -> Listing[Job]: ...

    @overload
    async def jobs(
        self, update_time: int | None, *, details: bool = False, cores: bool = True, timeout: float | None = None
    ) -> Listing[Job] | None: ...

    async def jobs(
        self,
        update_time: int | None = None,
        *,
        details: bool = False,
        cores: bool = True,
        timeout: float | None = None,
    ) -> Listing[Job] | None:
        """
        Return all jobs slurmctld remembers, finished ones included for ``MinJobAge`` seconds.

        Parameters
        ----------
        update_time
            ``last_update`` of an earlier list; the answer is then ``None`` if nothing has changed since. (slurmrestd
            says that by an empty list with a warning, which must not pass for "no jobs".)
        details
            Whether each job has its ``details``, too.
        cores
            Whether slurmctld lists the cores of each job's nodes, without which ``gres_detail`` is empty: that makes a
            list of running jobs five times as long on nodes of 128 cores.
        """
        return await self._all_jobs(_DETAILED if details else _JOBS, update_time, timeout, cores=cores)

    async def _all_jobs(
        self, wanted: ListOf, update_time: int | None, timeout: float | None, *, cores: bool = True
    ) -> Listing[Job] | None:
        """List all jobs; without cores, a record has no core of its nodes, and none of its GPUs."""
        query = {} if cores else {"flags": "ALL"}
        found = await self._list("get_jobs", wanted, update_time=update_time, query=query, timeout=timeout)
        if found is not None and update_time is not None and not found.items and found.warnings:
            return None
        return found

    async def all_jobs(
        self, *, holding_nodes: bool = False, cores: bool = True, timeout: float | None = None
    ) -> tuple[Job, ...]:
        """
        Return all jobs, as :meth:`jobs` does, also where a list of them is larger than an answer may be.

        Jobs are then read one by one for some minutes, which takes some milliseconds each, and what decides nothing is
        left out of them: ``dependency``, comments, command, submit line, container and paths as they were given.

        Parameters
        ----------
        holding_nodes
            Only jobs that hold nodes (``Job.holds_nodes``): few are read where many wait.
        cores
            As for :meth:`jobs`; jobs that are read one by one have them.
        timeout
            Seconds for each request.

        Raises
        ------
        TooLarge
            If what is read one by one does not fit either.
        """
        if _ALL not in self._session.oversized:
            try:
                jobs = await self.jobs(cores=cores, timeout=timeout)
            except errors.TooLarge as error:
                self._session.oversized.add(_ALL, error)
            else:
                return tuple([job async for job in sliced(jobs) if not holding_nodes or job.holds_nodes])
        return await self._singly(timeout).read(_holds_nodes if holding_nodes else _any)

    def _singly(self, timeout: float | None = None, *, short: float = SHORT_ROUND) -> Singly:
        """Return what reads jobs one by one; a round that takes longer than `short` seconds is followed by another."""
        return Singly(
            lambda: self.job_states(timeout=timeout),
            lambda number: self.job_parts(number, details=False, timeout=timeout),
            self._session.room,
            short=short,
        )

    async def job(self, job_id: JobRef, *, details: bool = True, timeout: float | None = None) -> Job:
        """
        Return one job; NotFound if slurmctld does not know it (any more).

        Parameters
        ----------
        job_id
            A number means the record of that number, under which a watch has it too: of an array, that is one task or
            those that still wait together, and never another task. ``7_3`` is that task of array 7, ``7+1`` that
            component of the heterogeneous job 7. :meth:`job_parts` returns them all.
        details
            Whether it has its ``details``, too.
        """
        wanted = resolve.job_id(job_id)
        found: Job = await self._one(
            "get_job",
            _DETAILED if details else _JOBS,
            f"job {wanted}",
            pick=lambda records: resolve.pick(wanted, records),
            path={"job_id": wanted.id},
            timeout=timeout,
        )
        return resolve.part(wanted, found)

    async def job_parts(self, job_id: JobRef, *, details: bool = True, timeout: float | None = None) -> tuple[Job, ...]:
        """
        Return all records of a job: the tasks of an array, the components of a heterogeneous job, or itself.

        Tasks that wait together are one record, with their indices in ``array_tasks``.

        Parameters
        ----------
        details
            Whether they have their ``details``, too.
        """
        wanted = _DETAILED if details else _JOBS
        answer = await self._list("get_job", wanted, path={"job_id": resolve.job_id(job_id).id}, timeout=timeout)
        return answer.items if answer is not None else ()

    async def job_states(
        self, job_ids: Iterable[JobRef] | None = None, *, timeout: float | None = None
    ) -> Listing[JobStateEntry]:
        """
        Return states of jobs: a much smaller answer than :meth:`jobs`.

        Every task of an array has an entry of its own. Its ``id`` is not what Slurm's commands call it: see
        :class:`~slurm_client.models.JobStateEntry`.

        Parameters
        ----------
        job_ids
            Jobs, tasks and components, as for :meth:`job_parts`; all jobs when absent. The number of an array means
            all of its tasks, that of a heterogeneous job all of its components. What slurmctld does not know is left
            out: there is no error.
        """
        listed = _STATES_BY_ARRAY if await self._session.negotiate(timeout) == "v0.0.40" else _STATES
        if job_ids is None:
            found = await self._list("get_jobs_state", listed, timeout=timeout)
            return found if found is not None else Listing(())
        wanted = list(dict.fromkeys(map(resolve.job_id, job_ids)))
        entries: dict[str, JobStateEntry] = {}
        for start in range(0, len(wanted), _IDS_IN_ONE_CALL):
            part = wanted[start : start + _IDS_IN_ONE_CALL]
            query = {"job_id": [str(each) for each in part]}
            found = await self._list("get_jobs_state", listed, query=query, timeout=timeout)
            for entry in _meant(part, found or ()):
                entries.setdefault(entry.id, entry)
        return Listing(tuple(entries.values()))

    async def find_jobs(
        self,
        *,
        user: Name | None = None,
        account: Name | None = None,
        partition: Name | None = None,
        qos: Name | None = None,
        reservation: Name | None = None,
        name: Text | None = None,
        comment: Text | None = None,
        extra: Text | None = None,
        wckey: Text | None = None,
        states: Iterable[BaseState] | None = None,
        nodes: NodeNames | None = None,
        details: bool = False,
        timeout: float | None = None,
    ) -> tuple[Job, ...]:
        """
        Return the jobs that match every filter, of all that slurmctld remembers.

        No data parser can filter jobs (24.11 and 26.05): all are asked for, and looked through here. To ask for few by
        their ids, use :meth:`job_states` or :meth:`job`; for those that ended long ago, slurmdbd.

        So a job is found again whose submission was sent and not answered: give it a comment or extra of its own.

        Parameters
        ----------
        user, account, qos, reservation, name, comment, extra, wckey
            What the job has, to the letter.
        partition
            Its partition, or one of those it names while it waits.
        states
            Base states such as ``PENDING``; nothing matches an empty list.
        nodes
            Any of these it was given, also one that it has left.
        details
            Whether each job has its ``details``, too: slurmctld is asked for the same list, which takes longer to read.

        Raises
        ------
        InvalidArgument
            Without any filter: :meth:`jobs` returns all jobs.
        """
        plain = {
            "user": user,
            "account": account,
            "qos": qos,
            "reservation": reservation,
            "name": name,
            "comment": comment,
            "extra": extra,
            "wckey": wckey,
        }
        texts = [(field, value) for field, value in plain.items() if value is not None]
        bases = None if states is None else {word.upper() for word in states}
        names = None if nodes is None else set(nodes)
        if not texts and partition is None and bases is None and names is None:
            raise errors.InvalidArgument(
                "find_jobs: no filter; jobs() returns all jobs; nothing was sent", field="comment"
            )
        if (bases is not None and not bases) or (names is not None and not names):
            return ()

        def matches(job: Job) -> bool:
            return (
                all(getattr(job, field) == value for field, value in texts)
                and (partition is None or partition in job.partition.split(","))
                and (bases is None or job.state.base in bases)
                and (names is None or not names.isdisjoint(job.nodes))
            )

        return tuple([job async for job in sliced(await self.jobs(details=details, timeout=timeout)) if matches(job)])

    async def jobs_on_nodes(self, names: NodeNames, *, timeout: float | None = None) -> tuple[Job, ...]:
        """
        Return the jobs that hold any of these nodes: running, suspended, completing or staging out.

        A node without such a job may lose its slurmd. One list is asked for, whatever the number of names.
        """
        wanted = set(names)
        if not wanted:
            return ()
        jobs = sliced(await self.jobs(timeout=timeout))
        return tuple([job async for job in jobs if job.holds_nodes and not wanted.isdisjoint(job.nodes)])

    async def _number_of(self, job_id: JobRef, timeout: float | None) -> int:
        """Return the number of the record of one job: slurmrestd takes nothing else when a job is changed."""
        wanted = resolve.job_id(job_id)
        if wanted.task is None and wanted.component is None:
            return wanted.id
        record = resolve.pick(wanted, await self.job_parts(wanted.id, details=False, timeout=timeout))
        if record is None:
            raise errors.NotFound(f"no job {wanted}")
        if wanted.task is not None and record.array_task_id is None:
            raise errors.InvalidRequest(
                f"task {wanted} waits together with others ({record.array_tasks[:40]}) and cannot be changed "
                f"alone; change job {wanted.id} instead"
            )
        return record.id

    async def job_resources(self, job_id: JobRef, *, timeout: float | None = None) -> tuple[NodeResources, ...]:
        """Return what a job was given, node by node (v0.0.44 and newer); ``job_id`` as for :meth:`job`."""
        number = await self._number_of(job_id, timeout)
        found = await self._list("get_resources", _LAYOUT, path={"job_id": number}, timeout=timeout)
        return found.items if found is not None else ()


def _any(_: JobState) -> bool:
    return True


def _holds_nodes(state: JobState) -> bool:
    return state.holds_nodes


def _meant(wanted: Sequence[JobId], entries: Iterable[JobStateEntry]) -> Iterator[JobStateEntry]:
    """
    Leave out the entries of tasks that nobody asked for.

    Asked for one task of several that wait together, slurmctld answers with all of them.
    """
    tasks = {(each.id, each.task) for each in wanted if each.task is not None}
    whole = {each.id for each in wanted if each.task is None}
    arrays = {array for array, _ in tasks}
    for entry in entries:
        # Tasks that wait together have the number of their array, with every data parser.
        waits = entry.state.base == "PENDING" and entry.number in arrays - whole
        if not waits or (entry.number, entry.task) in tasks:
            yield entry
