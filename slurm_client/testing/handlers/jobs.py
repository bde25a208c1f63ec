"""
Calls about jobs: listed, submitted, changed, cancelled, requeued.

The methods are called as the operations are in the specification. What becomes of a job is left to
:mod:`slurm_client.testing.slurmctld`.
"""

from __future__ import annotations

from typing import Any

from slurm_client import wire
from slurm_client.models import JobState
from slurm_client.testing.answers import encode
from slurm_client.testing.answers.calls import Call, Reply, error
from slurm_client.testing.answers.writing import Answers
from slurm_client.testing.refusals import (
    ACCESS_DENIED,
    ALREADY_DONE,
    FLAGS_INVALID,
    INVALID_JOB,
    USER_ID_MISSING,
    Refusal,
)
from slurm_client.testing.slurmctld import external
from slurm_client.testing.slurmctld.queue import ends_jobs

_SIGNALS = frozenset(
    {
        "URG",
        "TTIN",
        "TTOU",
        "HUP",
        "INT",
        "QUIT",
        "ABRT",
        "KILL",
        "USR1",
        "USR2",
        "ALRM",
        "TERM",
        "CONT",
        "STOP",
        "TSTP",
    }
)

_SENTENCES = {
    ACCESS_DENIED: "Access/permission denied",
    ALREADY_DONE: "Job already completed",
    INVALID_JOB: "Invalid job id specified",
}

_FILTERS = (("user_name", "user"), ("partition", "partition"), ("account", "account"), ("job_name", "name"))
"""Keys by which many jobs are chosen, and the fields they are compared with."""


class JobHandlers(Answers):
    """Calls about jobs, each of which takes a call and gives a reply or raises what slurmctld refuses."""

    operators: set[str]
    """Users who may change the jobs of others."""

    def _may_change(self, user: str, job_id: int) -> bool:
        """Whether a user may change a job: it is the user's own, or there is no such job, which is said instead."""
        job = self.world.jobs.get(job_id)
        return job is None or user in self.operators or job.user == user

    async def _get_jobs(self, call: Call) -> Reply:
        refused = self._refused_update_time(call)
        if refused is not None:
            return refused
        if self._unchanged_since(call, self.world.jobs_changed):
            warning = {"description": f"No job changes since update_time[{call.query['update_time']}]", "source": ""}
            return Reply({"jobs": [], "last_update": encode.moment(self.world.now)}, warnings=[warning])
        return Reply(raw=self._dump_list(call, "jobs", list(self.world.jobs.values()), encode.job))

    def _job_of(self, call: Call, doing: str) -> int:
        text = call.parameters["job_id"]
        if not text.isdecimal() or int(text) not in self.world.jobs:
            raise Refusal(INVALID_JOB, f"Unable to {doing} JobId={text}")
        return int(text)

    async def _get_job(self, call: Call) -> Reply:
        own = self._job_of(call, "query")
        # slurmctld gives the tasks of an array and the components of a heterogeneous job with the first of them.
        return Reply(raw=self._dump_list(call, "jobs", self.world.jobs.together(own), encode.job))

    def _meant_by(self, text: str) -> list[int]:
        """Ids of the jobs that are cancelled or requeued under a name: that of an array means all of its tasks."""
        first, plus, offset = text.partition("+")
        if plus:
            return [int(first) + int(offset)]
        array, _, task = text.partition("_")
        if not task:
            own = int(text)
            return [job.id for job in self.world.jobs.together(own) if own in {job.array_job_id, job.het_job_id}] or [
                own
            ]
        if task.startswith("["):
            # Those that wait together have the number of the array.
            return [int(array)]
        wanted = int(array), int(task)
        of_array = self.world.jobs.together(int(array))
        found = [job.id for job in of_array if (job.array_job_id, job.array_task_id) == wanted]
        # A number that no job has.
        return found or [0]

    async def _delete_job(self, call: Call) -> Reply:
        text, signal = call.parameters["job_id"], call.query.get("signal")
        if not text.replace("_", "", 1).replace("+", "", 1).isdecimal():
            return Reply(status=422, errors=[error(9000, "Rejecting request. Failure parsing parameters")])
        if signal is not None and signal.upper().removeprefix("SIG") not in _SIGNALS and not signal.isdecimal():
            sentence, source = "Unknown signal (null)", "#/signal/"
            if call.version < "v0.0.41":
                return Reply(status=500, errors=[error(22, sentence, "Invalid argument", source)])
            # Reported as an error, but the job is cancelled.
            self._kill_named(text, None, call.user)
            if call.version < "v0.0.42":
                return Reply(status=500, errors=[error(22, sentence, "Invalid argument", source)])
            return Reply({"status": []}, errors=[error(0, sentence, "No error", source)])
        status = self._kill_named(text, signal, call.user)
        return Reply({"status": status}) if call.version >= "v0.0.42" else Reply()

    def _kill_named(self, text: str, signal: str | None, user: str) -> list[dict[str, Any]]:
        """Cancel or signal what a name means, and return what is said of it."""
        array, _, task = text.partition("_")
        is_task = task.isdecimal() and ends_jobs(signal) and self._may_change(user, int(array))
        if is_task and self.world.cancel_waiting_task(int(array), int(task)):
            return []
        return [entry for job_id in self._meant_by(text) for entry in self._kill(job_id, signal, user)]

    def _kill(self, job_id: int, signal: str | None, user: str) -> list[dict[str, Any]]:
        """Cancel or signal a job and return what is said of it: nothing if it went well."""
        if not self._may_change(user, job_id):
            return [_not_killed(job_id, ACCESS_DENIED)]
        try:
            self.world.cancel_job(job_id, signal)
        except Refusal as refusal:
            return [_not_killed(job_id, refusal.number)]
        return []

    async def _delete_jobs(self, call: Call) -> Reply:
        body = dict(call.body or {})
        unknown = [word for word in body.get("job_state") or () if word.upper() not in JobState.BASES | JobState.FLAGS]
        if unknown:
            # Reported, and that filter does not count.
            del body["job_state"]
        signal, named = body.get("signal"), body.get("jobs") or ()
        filters = body.keys() - {"jobs", "signal"}
        if named and not filters:
            status = [entry for text in named for entry in self._kill_named(text, signal, call.user)]
        else:
            meant = {job_id for text in named for job_id in self._meant_by(text)}
            chosen = [
                job
                for job in self.world.jobs.values()
                if not job.is_finished
                and (not named or job.id in meant)
                and all(key not in body or body[key] == getattr(job, field) for key, field in _FILTERS)
                and ("nodes" not in body or set(body["nodes"]) & set(job.nodes))
                and ("job_state" not in body or job.state.base in body["job_state"])
            ]
            # Those that wait first: they would start where others end.
            chosen.sort(key=lambda job: not job.is_pending)
            # Of those that are named and have ended, slurmctld speaks whatever the filters are.
            chosen += [job for job in self.world.jobs.values() if job.id in meant and job.is_finished]
            status = [entry for job in chosen for entry in self._kill(job.id, signal, call.user)]
        if unknown:
            return Reply({"status": status}, status=500, errors=[error(FLAGS_INVALID, f'Unknown flag "{unknown[0]}"')])
        return Reply({"status": status})

    async def _post_job_submit(self, call: Call) -> Reply:
        body = call.body or {}
        wishes = body.get("job") or {}
        has_script, is_external = bool(body.get("script") or wishes.get("script")), external.is_wished(wishes)
        if is_external and (unknown := without_external(call.version)):
            return unknown
        if not (has_script or is_external):
            return Reply(status=422, errors=[error(9000, 'Populated "script" field is required for job submission')])
        job = self.world.submit(wishes, call.user, has_script=has_script)
        return Reply({"job_id": job.id, "step_id": "batch", "job_submit_user_msg": ""})

    async def _post_job(self, call: Call) -> Reply:
        job_id = self._job_of(call, "update")
        if not self._may_change(call.user, job_id):
            raise Refusal(USER_ID_MISSING, "Job update requested failed")
        self.world.change_job(job_id, call.body or {})
        return Reply({"results": []})

    async def _get_job_requeue(self, call: Call) -> Reply:
        for job_id in self._meant_by(call.parameters["job_id"]):
            if not self._may_change(call.user, job_id):
                raise Refusal(ACCESS_DENIED, f"Requeue JobID={job_id} failed")
            self.world.requeue_job(job_id)
        return Reply({"status": []})

    async def _get_resources(self, call: Call) -> Reply:
        job = self.world.jobs[self._job_of(call, "query")]
        names = [name for name in job.nodes if name in self.world.nodes] if not job.is_finished else []
        given = external.known_resources(job)
        known = {node.name: node for node in given.nodes} if given is not None else {}
        devices = dict(zip(job.nodes, job.gres_detail, strict=False))
        return Reply(
            {"nodes": [encode.layout(self.world.nodes[name], known.get(name), devices.get(name, "")) for name in names]}
        )


def without_external(version: str) -> Reply | None:
    """Refuse an external job of a data parser that does not know such; ``None`` of one that does."""
    if external.FLAG in wire.words(version, "JobDescMsgFlagsItem"):
        return None
    return Reply(status=500, errors=[error(FLAGS_INVALID, f'Unknown flag "{external.FLAG}"')])


def _not_killed(job_id: int, number: int) -> dict[str, Any]:
    """Return what is said of a job that was not to be ended."""
    sentence = _SENTENCES[number]
    return {
        "error": {"string": sentence, "code": number, "message": sentence},
        "step_id": str(job_id),
        "job_id": encode.number(job_id if number != INVALID_JOB else None),
        "federation": {"sibling": ""},
    }
