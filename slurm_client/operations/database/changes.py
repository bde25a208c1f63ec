"""Calls that change what slurmdbd keeps of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client import errors
from slurm_client.decode.read import words
from slurm_client.encode.values import set_number, without_none
from slurm_client.operations.database.history import HistoryOperations
from slurm_client.operations.jobs import resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from slurm_client.connection.answers import Answer
    from slurm_client.operations.arguments import JobRef

__all__ = ["JobChangeOperations"]

_LAST_CODE = 255


class JobChangeOperations(HistoryOperations):
    """Change comments and accounting keys of jobs, also of those that slurmctld has forgotten."""

    async def update_job(
        self,
        job_id: JobRef,
        *,
        comment: str | None = None,
        admin_comment: str | None = None,
        system_comment: str | None = None,
        extra: str | None = None,
        wckey: str | None = None,
        derived_exit_code: int | None = None,
        timeout: float | None = None,
    ) -> tuple[int, ...]:
        """
        Change the record of a job (v0.0.44 and newer), and return the ids of the records that were changed.

        The number of an array changes all of its tasks that have a record, ``7_3`` that task, ``7+1`` that component.

        Parameters
        ----------
        comment, admin_comment, system_comment, extra, wckey
            New texts; empty ones remove them, what is absent stays as it is.
        derived_exit_code
            The highest exit code of its steps, 0 to 255: that of work that was none of Slurm's steps.

        Raises
        ------
        NotFound
            If slurmdbd has no such job.
        InvalidArgument
            If there is nothing to change, and for what is no exit code.
        """
        wanted = resolve.job_id(job_id)
        body = _changes(
            "update_job",
            f"nothing to change of job {wanted}",
            [comment, admin_comment, system_comment, extra, wckey],
            derived_exit_code,
        )
        await self._session.require("db_post_job")
        # An address takes the number of a task, and none of a component.
        address = str(wanted) if wanted.component is None else str((await self.job(wanted, timeout=timeout)).id)
        answer = await self._session.call("db_post_job", path={"job_id": address}, body=body, timeout=timeout)
        if answer.not_modified:
            raise errors.NotFound(f"slurmdbd has no job {wanted}; nothing was changed", status=answer.status)
        return _changed(answer)

    async def update_jobs(
        self,
        job_ids: Iterable[JobRef],
        *,
        comment: str | None = None,
        admin_comment: str | None = None,
        system_comment: str | None = None,
        extra: str | None = None,
        wckey: str | None = None,
        derived_exit_code: int | None = None,
        timeout: float | None = None,
    ) -> tuple[int, ...]:
        """
        Change the records of many jobs alike in one call (v0.0.44 and newer); return the ids of those changed.

        Slurm says nothing of a job that slurmdbd does not have: it is missing from what is returned, which is empty
        where there is none of them.

        Parameters
        ----------
        job_ids
            Jobs and tasks, as for :meth:`update_job`; no components. Nothing is sent for none: for an empty list
            slurmdbd changes every job that it has.
        comment, admin_comment, system_comment, extra, wckey
            New texts; empty ones remove them, what is absent stays as it is.
        derived_exit_code
            The highest exit code of its steps, 0 to 255: that of work that was none of Slurm's steps.

        Raises
        ------
        InvalidArgument
            For a component, if there is nothing to change, and for what is no exit code.
        """
        wanted = list(dict.fromkeys(map(resolve.job_id, job_ids)))
        component = next((each for each in wanted if each.component is not None), None)
        if component is not None:
            raise errors.InvalidArgument(
                f"update_jobs: {component} is a component, which slurmdbd does not take in a list: use update_job; "
                "nothing was sent",
                field="job_ids",
            )
        texts = [comment, admin_comment, system_comment, extra, wckey]
        body = _changes("update_jobs", "nothing to change", texts, derived_exit_code)
        await self._session.require("db_post_jobs")
        if not wanted:
            return ()
        answer = await self._session.call(
            "db_post_jobs", body={"job_id_list": list(map(str, wanted)), "job_rec": body}, timeout=timeout
        )
        return () if answer.not_modified else _changed(answer)


def _changes(call: str, nothing: str, texts: Sequence[str | None], exit_code: int | None) -> dict[str, Any]:
    """Return what is to change; InvalidArgument if that is nothing, or no exit code."""
    comment, admin_comment, system_comment, extra, wckey = texts
    if exit_code is not None and not 0 <= exit_code <= _LAST_CODE:
        words = f"{call}: derived_exit_code is {exit_code}, and an exit code is 0 to {_LAST_CODE}; nothing was sent"
        raise errors.InvalidArgument(words, field="derived_exit_code")
    # slurmdbd keeps the number as it comes: a wait status, whose low byte is a signal (measured with 26.05).
    status = None if exit_code is None else {"return_code": set_number(exit_code << 8)}
    comments = without_none({"job": comment, "administrator": admin_comment, "system": system_comment})
    body = without_none({"comment": comments or None, "extra": extra, "wckey": wckey, "derived_exit_code": status})
    if not body:
        raise errors.InvalidArgument(f"{call}: {nothing}; nothing was sent", field="comment")
    return body


def _changed(answer: Answer) -> tuple[int, ...]:
    """Return the ids of the records that were changed: each result is a sentence that begins with one."""
    found = (each.partition(" ")[0] for each in words(answer.fields.get("results")))
    return tuple(int(each) for each in found if each.isascii() and each.isdecimal())
