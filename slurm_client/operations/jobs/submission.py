"""Calls that make jobs: batch jobs, external and heterogeneous ones, and allocations without a script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurm_client import errors, wire
from slurm_client.decode.read import number, text
from slurm_client.encode import jobs as encode
from slurm_client.encode import submissions
from slurm_client.encode.values import fitted
from slurm_client.models.jobspec import JobSpec, SubmissionRequest, SubmittedJob
from slurm_client.operations.base import Operations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from slurm_client.connection.answers import Answer

__all__ = ["Submission"]

_FLAGS = "JobDescMsgFlagsItem"


class Submission(Operations):
    """Submit jobs, and allocate nodes."""

    async def submit_job(self, spec: JobSpec, *, timeout: float | None = None) -> SubmittedJob:
        """
        Submit a batch job, or an external one.

        Never retried once it was sent: after Timeout or Unreachable, check whether the job exists (give it a
        name or comment to know it by).

        A job with the flag ``EXTERNAL_JOB`` has no script: Slurm gives it nodes, starts nothing there, and the job runs
        until its time limit or until it is cancelled. It alone may have nodes with the state EXTERNAL, which have no
        slurmd (:meth:`create_node`). Needs v0.0.43 or newer; nodes that are created need v0.0.44.

        Raises
        ------
        InvalidArgument
            For a script or an array of an external job.
        NotSupported
            For an external job, if the data parser in use does not know it.
        """
        body = await self._batch(spec, timeout)
        answer = await self._session.call("post_job_submit", body=body, timeout=timeout)
        return self._submitted(answer, "/job/submit")

    async def submission_request(
        self, spec: JobSpec | Sequence[JobSpec], *, timeout: float | None = None
    ) -> SubmissionRequest:
        """
        Return the request with which :meth:`submit_job` would submit a job, and submit nothing.

        Several are the components of a heterogeneous job, as for :meth:`submit_het_job`.

        The server is asked for its data parser, if that is not known yet, and for nothing else: whether Slurm would
        take the job stays open. No token is a part of what is returned.
        """
        if isinstance(spec, JobSpec):
            body = await self._batch(spec, timeout)
        else:
            components = submissions.components(spec)
            await self._fit(components, timeout)
            body = {"jobs": components}
        request, content = await self._session.prepared("post_job_submit", body=body, timeout=timeout)
        return SubmissionRequest(request.method, request.path, content.decode())

    async def submit_het_job(self, specs: Sequence[JobSpec], *, timeout: float | None = None) -> SubmittedJob:
        """
        Submit a heterogeneous job: components that start together, each with wishes of its own.

        All of them are external, or none is (:meth:`submit_job`); external ones need Slurm 26.05.3.

        slurmctld takes all components or none. The id is that of the whole, which is that of its first component;
        ``job_parts`` gives all of them, and ``7+1`` names the second. Never retried once it was sent, as
        :meth:`submit_job`.

        Parameters
        ----------
        specs
            Two components or more. The script belongs to the first, where it runs; Slurm would drop another.

        Raises
        ------
        InvalidArgument
            For fewer than two components, for a script that is missing in the first or given in another, for a script
            or an array of an external job, and for external components beside others.
        NotSupported
            For external components, if the data parser in use does not know them.
        """
        components = submissions.components(specs)
        await self._fit(components, timeout)
        answer = await self._session.call("post_job_submit", body={"jobs": components}, timeout=timeout)
        return self._submitted(answer, "/job/submit")

    async def allocate_job(
        self, spec: JobSpec | Sequence[JobSpec], *, immediate: bool = True, timeout: float | None = None
    ) -> SubmittedJob:
        """
        Allocate nodes to a job without a script (v0.0.41 and newer).

        The answer comes when the job has its nodes. It keeps them until its time limit or until it is cancelled:
        nothing runs in it that would end it, so give it a ``time_limit``.

        Parameters
        ----------
        spec
            What it wants, without a script; several are the components of a heterogeneous job. Slurm starts such by
            backfill alone, so it is never immediate.
        immediate
            Conflict at once if the nodes are not free. If false, slurmrestd waits for them, longer than ``timeout``
            may be, and one of its threads with it. After Timeout the job still waits, and nothing tells its id but
            its name or comment; when its turn comes, it fails because nobody waits for it (measured).

        Raises
        ------
        Conflict
            If it cannot start now, or was cancelled while it waited.
        InvalidArgument
            For a script or an array; slurmrestd would drop a script without a word.
        """
        body = submissions.allocation(spec, immediate=immediate)
        await self._session.require("post_job_allocate", timeout)
        await self._fit(body["hetjob"] if "hetjob" in body else [body["job"]], timeout)
        answer = await self._session.call("post_job_allocate", body=body, timeout=timeout)
        return self._submitted(answer, "/job/allocate")

    async def _batch(self, spec: JobSpec, timeout: float | None) -> Mapping[str, Any]:
        """Write the body that submits a batch job."""
        body = encode.submission(spec)
        await self._fit([body["job"]], timeout)
        return body

    async def _fit(self, components: Sequence[Mapping[str, Any]], timeout: float | None) -> None:
        """Raise NotSupported for a key, or a kind of job, that the data parser in use lacks."""
        version = await self._session.negotiate(timeout)
        for each in components:
            fitted(version, "JobDescMsg", each)
            if encode.EXTERNAL in each.get("flags", ()) and encode.EXTERNAL not in wire.words(version, _FLAGS):
                having = tuple(parser for parser in wire.PARSERS if encode.EXTERNAL in wire.words(parser, _FLAGS))
                words = (
                    f"data parser {version} has no {encode.EXTERNAL} among the flags of a job; {', '.join(having)} has"
                )
                raise errors.NotSupported(words, available_in=having)

    def _submitted(self, answer: Answer, path: str) -> SubmittedJob:
        job_id = number(answer.fields.get("job_id"))
        if job_id is None:
            raise errors.DecodeError("the answer has no 'job_id'", request=errors.Request("POST", path))
        submitted = SubmittedJob(job_id, text(answer.fields.get("job_submit_user_msg")), answer.warnings)
        return self._session.kept(submitted, answer.fields)
