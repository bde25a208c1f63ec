"""Calls that change what slurmdbd keeps of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurm_client import errors
from slurm_client.decode.read import words
from slurm_client.encode.values import without_none
from slurm_client.operations.database.history import HistoryOperations
from slurm_client.operations.jobs import resolve

if TYPE_CHECKING:
    from slurm_client.operations.arguments import JobRef

__all__ = ["JobChangeOperations"]


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
        timeout: float | None = None,
    ) -> tuple[int, ...]:
        """
        Change the record of a job (v0.0.44 and newer), and return the ids of the records that were changed.

        The number of an array changes all of its tasks that have a record, ``7_3`` that task, ``7+1`` that component.

        Parameters
        ----------
        comment, admin_comment, system_comment, extra, wckey
            New texts; empty ones remove them, what is absent stays as it is.

        Raises
        ------
        NotFound
            If slurmdbd has no such job.
        InvalidArgument
            If there is nothing to change.
        """
        wanted = resolve.job_id(job_id)
        comments = without_none({"job": comment, "administrator": admin_comment, "system": system_comment})
        body = without_none({"comment": comments or None, "extra": extra, "wckey": wckey})
        if not body:
            raise errors.InvalidArgument(
                f"update_job: nothing to change of job {wanted}; nothing was sent", field="comment"
            )
        await self._session.require("db_post_job")
        # An address takes the number of a task, and none of a component.
        address = str(wanted) if wanted.component is None else str((await self.job(wanted, timeout=timeout)).id)
        answer = await self._session.call("db_post_job", path={"job_id": address}, body=body, timeout=timeout)
        if answer.not_modified:
            raise errors.NotFound(f"slurmdbd has no job {wanted}; nothing was changed", status=answer.status)
        # Each result is a sentence that begins with the id of a record.
        changed = (each.partition(" ")[0] for each in words(answer.fields.get("results")))
        return tuple(int(each) for each in changed if each.isascii() and each.isdecimal())
