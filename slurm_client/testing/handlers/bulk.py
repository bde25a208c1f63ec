"""
The fake's calls about several jobs or reservations at once, and allocations.

As in :mod:`slurm_client.testing.handlers.cluster`, methods are called as the operations are in the specification; what
a job or a reservation is and becomes belongs to :mod:`slurm_client.testing.world`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from slurm_client.testing.answers import encode
from slurm_client.testing.answers.calls import Call, Reply, error
from slurm_client.testing.handlers.cluster import Operations
from slurm_client.testing.handlers.jobs import without_external
from slurm_client.testing.refusals import ACCESS_DENIED, ALREADY_DONE, INVALID_JOB, INVALID_NODE, NODES_BUSY, Refusal
from slurm_client.testing.slurmctld import arrays, external

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from slurm_client.models import Job

_JOB_PENDING = 2024
_CANNOT_START = 2078
_SCRIPT_MISSING = 2009
_INVALID_RESERVATION = 2053
_INVALID_QUERY = 9000


class BulkOperations(Operations):
    """Operations on several objects."""

    async def _get_jobs_state(self, call: Call) -> Reply:
        named = call.query.get("job_id")
        if named is None:
            chosen: Iterable[Job] = self.world.jobs.values()
        else:
            # What is asked for twice is answered twice.
            chosen = [job for text in named.split(",") for job in self._records(text)]
        return Reply({"jobs": [entry for job in chosen for entry in _states(job, call.version)]})

    def _records(self, text: str) -> Iterator[Job]:
        """Records that a name stands for when states are asked for."""
        first, plus, offset = text.partition("+")
        array, _, task = first.partition("_")
        own = int(array)
        for job in self.world.jobs.together(own):
            if plus:
                if (job.het_job_id, job.het_job_offset) == (own, int(offset)):
                    yield job
            elif task:
                waits = job.array_task_id is None and int(task) in _waiting(job)
                if job.array_job_id == own and (waits or job.array_task_id == int(task)):
                    yield job
            elif own in {job.id, job.array_job_id, job.het_job_id}:
                yield job

    @override
    async def _post_job_submit(self, call: Call) -> Reply:
        components = (call.body or {}).get("jobs")
        if not components:
            return await super()._post_job_submit(call)
        script = call.body.get("script") or components[0].get("script")
        is_external = all(map(external.is_wished, components))
        if is_external and (unknown := without_external(call.version)):
            return unknown
        if not (script or is_external):
            raise Refusal(
                _SCRIPT_MISSING,
                "Refusing HetJob submission without batch script or empty batch script for first component",
            )
        first = self._submit_together(components, call.user)
        return Reply({"job_id": first.id, "step_id": "batch", "job_submit_user_msg": ""})

    def _submit_together(self, components: list[dict[str, Any]], user: str) -> Job:
        """Take all components of a heterogeneous job, or none."""
        unknown = [each for each in components if each.get("partition", "") not in {"", *self.world.partitions}]
        if unknown:
            raise Refusal(2000, "HetJob submission failed")
        return self.world.submit_together(components, user)

    async def _post_job_allocate(self, call: Call) -> Reply:
        body = call.body or {}
        failed = "Job allocation request failed"
        if body.get("hetjob"):
            if any(each.get("immediate") for each in body["hetjob"]):
                raise Refusal(_CANNOT_START, failed)
            first = self._submit_together(body["hetjob"], call.user)
        elif body.get("job"):
            try:
                first = self.world.submit(body["job"], call.user)
            except Refusal as refused:
                raise Refusal(refused.number, failed) from refused
        else:
            description = 'Specifing either "job" or "hetjob" fields are required to allocate job'
            return Reply(status=422, errors=[error(_INVALID_QUERY, description)])
        self.world.jobs[first.id] = replace(self.world.jobs[first.id], batch=False)
        if self.world.jobs[first.id].is_pending and (body.get("job") or {}).get("immediate"):
            self.world.finish_job(first.id, "FAILED")
            raise Refusal(NODES_BUSY, failed)
        # The pretended cluster tells nobody what changes in it.
        while self.world.jobs[first.id].is_pending:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        if not self.world.jobs[first.id].is_running:
            raise Refusal(ALREADY_DONE, failed)
        return Reply({"job_id": first.id, "job_submit_user_msg": ""})

    async def _post_jobs_requeue(self, call: Call) -> Reply:
        names = (call.body or {}).get("jobs") or []
        if not names:
            return Reply(status=404, errors=[error(INVALID_JOB, "Query missing JobIds")])
        status, refused = [], []
        for text in names:
            own = int(text.partition("_")[0]) if "+" not in text else 0
            if any(job.array_job_id == own for job in self.world.jobs.together(own)):
                status.append(self._requeue_tasks(own, text.partition("_")[2], call.user))
                continue
            number = self._requeue_one(own, call.user)
            if number:
                refused.append(error(number, f"Requeue JobId={text} failed", source="op_handler_jobs_requeue"))
        first = refused[0]["error_number"] if refused else 0
        return Reply({"status": status}, status=404 if first == INVALID_JOB else 422 if first else 200, errors=refused)

    def _requeue_one(self, job_id: int, user: str) -> int:
        """Requeue a record; the number of the refusal, or 0."""
        job = self.world.jobs.get(job_id)
        if job is None:
            return INVALID_JOB
        if not self._may_change(user, job_id):
            return ACCESS_DENIED
        if job.is_pending:
            return _JOB_PENDING
        self.world.requeue_job(job_id)
        return 0

    def _requeue_tasks(self, array: int, task: str, user: str) -> list[dict[str, Any]]:
        """Requeue tasks of an array; an entry for each kind of outcome."""
        outcome: dict[int, list[int]] = {}
        for job in [each for each in self.world.jobs.together(array) if each.array_job_id == array]:
            tasks = list(_waiting(job)) if job.array_task_id is None else [job.array_task_id]
            if task and int(task) not in tasks:
                continue
            outcome.setdefault(self._requeue_one(job.id, user), []).extend(tasks)
        if not outcome:
            outcome = {INVALID_JOB: [int(task)]}
        sentences = {0: "No error", _JOB_PENDING: "Job is pending execution", INVALID_JOB: "Invalid job id specified"}
        sentences[ACCESS_DENIED] = "Access/permission denied"
        return [
            {
                "job_id": array,
                "step_id": f"{array}_[{','.join(map(str, sorted(tasks)))}]",
                "error": sentences[number],
                "error_code": number,
                "why": "",
            }
            for number, tasks in outcome.items()
        ]

    async def _post_reservations(self, call: Call) -> Reply:
        made, refused = [], []
        for wishes in (call.body or {}).get("reservations") or ():
            found = self._wrong_with(wishes)
            if found is None:
                self.world.reserve(wishes)
                made.append(wishes)
            else:
                refused.append(found)
        if refused:
            return Reply(status=422, errors=refused)
        return Reply({"reservations": made})

    def _wrong_with(self, wishes: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return what slurmctld says against one of many reservations, which does not keep it from the others."""
        name = wishes.get("name")
        if not name:
            return error(_INVALID_RESERVATION, "Reservation must be given", source="_check_resv_name")
        known = name in self.world.reservations
        unknown = [each for each in wishes.get("node_list") or () if each not in self.world.nodes]
        if known:
            description = f"Error updating reservation {name}"
            return error(_INVALID_RESERVATION, description, source="slurm_update_reservation") if unknown else None
        if "start_time" not in wishes:
            description = "A start time must be given.  No reservation created."
            return error(_INVALID_RESERVATION, description, source="validate_resv_create_desc")
        if not any(wishes.get(key) for key in ("users", "accounts", "groups")):
            description = (
                "Either Users/Groups, AllowedPartitions, QOS and/or Accounts must be specified.  "
                "No reservation created."
            )
            return error(_INVALID_RESERVATION, description, source="validate_resv_create_desc")
        if unknown:
            return error(INVALID_NODE, f"Error creating reservation  {name}", source="slurm_create_reservation")
        return None


def _states(job: Job, version: str) -> Iterator[dict[str, Any]]:
    """Entries of the list of states: by the number of the record, but with v0.0.40 by that of the array."""
    if job.het_job_id:
        names = [f"{job.id}+{job.het_job_offset or 0}"]
    else:
        numbered = version == "v0.0.40" and job.array_job_id is not None
        names = arrays.state_names(replace(job, id=job.array_job_id or job.id) if numbered else job)
    for name in names:
        yield {"job_id": name, "state": encode.words(job.state)}


def _waiting(job: Job) -> Iterable[int]:
    """Indices of the tasks that wait together in a record."""
    return arrays.waiting(job) or ()
