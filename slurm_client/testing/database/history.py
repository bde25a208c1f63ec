"""
The history of the fake's jobs: what slurmctld told slurmdbd of them, also when it has forgotten them itself.

Jobs come as canonical models, are kept as such, and are written as slurmdbd writes them. Which of them a query means
follows sacct: without times those since midnight, with times those that were there meanwhile.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from slurm_client.models import JobState
from slurm_client.notation import hostlist
from slurm_client.testing.answers.calls import error
from slurm_client.testing.database.records import Record, merge, recorded
from slurm_client.testing.refusals import FLAGS_INVALID
from slurm_client.testing.slurmctld import arrays
from slurm_client.testing.slurmctld.table import JobTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from slurm_client.models import Job
    from slurm_client.notation.arrays import ArrayTasks

_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_FIELDS = (
    ("account", "account"),
    ("job_name", "name"),
    ("partition", "partition"),
    ("qos", "qos"),
    ("wckey", "wckey"),
    ("cluster", "cluster"),
    ("reservation", "reservation"),
    ("users", "user"),
)
"""Keys of a query, and the fields they are compared with."""


class JobsOnRecord(JobTable):
    """
    The jobs of a slurmctld that tells slurmdbd of each change.

    Attributes
    ----------
    history
        Every job there ever was, as it was last.
    comments
        Comments that were changed in the database alone, by job.
    """

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[int, Job] = {}
        self.comments: dict[int, Record] = {}

    @override
    def __setitem__(self, key: int, value: Job) -> None:
        super().__setitem__(key, value)
        self.history[key] = value

    def of(self, text: str) -> list[Job]:
        """Return the jobs that a job id means: one, a task, or all tasks of an array."""
        first, _, task = text.partition(".")[0].partition("_")
        found = [job for job in self.history.values() if int(first) in {job.id, job.array_job_id}]
        return [job for job in found if not task or (job.array_task_id == int(task) and job.array_job_id == int(first))]

    def chosen(self, query: Mapping[str, str], now: datetime, cluster: str) -> Iterator[Job]:
        """Yield the jobs that a query means, the oldest first."""
        since, until = moment(query.get("start_time"), now), moment(query.get("end_time"), now)
        if since is None and "step" not in query:
            since = now.replace(hour=0, minute=0, second=0)
        words = {word for word in (query.get("state") or "").split(",") if word}
        for job in self.history.values():
            if not (_was_there(job, since, until) if not words else _was_in(job, words, since, until)):
                continue
            if "step" in query and job not in self.of(query["step"]):
                continue
            if "node" in query and not set(hostlist.expand(query["node"])) & set(job.nodes):
                continue
            fields = {field: query[key].split(",") for key, field in _FIELDS if query.get(key)}
            if all(
                (getattr(job, field) or (cluster if field == "cluster" else "")) in fields[field] for field in fields
            ):
                yield job


def moment(text: str | None, now: datetime) -> datetime | None:
    """
    Read a time as slurmrestd does; ``None`` without one.

    Raises
    ------
    ValueError
        It is none.
    """
    if not text:
        return None
    seconds = re.fullmatch(r"(?:uts)?(\d+)", text)
    if seconds:
        return datetime.fromtimestamp(int(seconds[1]), UTC)
    relative = re.fullmatch(r"now(?:([+-])(\d+)(second|minute|hour|day|week)s?)?", text)
    if relative:
        away = timedelta(seconds=int(relative[2] or 0) * _UNITS.get(relative[3], 0))
        return now - away if relative[1] == "-" else now + away
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def complaints(query: Mapping[str, str], version: str, now: datetime) -> tuple[int, list[dict[str, Any]]]:
    """Return status and errors of a query for jobs that slurmrestd does not take; no errors if it does."""
    rejected = error(9000, "Rejecting request. Failure parsing query parameters", source="op_handler_jobs")
    for key in ("start_time", "end_time"):
        text = query.get(key, "")
        try:
            moment(text, now)
            readable = not (text.isdecimal() and version < "v0.0.42")
        except ValueError:
            readable = False
        if not readable:
            unread = error(9202, f"Parsing of {text} for timestamp failed", source=f"#/{key}/")
            return 422, [unread, rejected]
    state = query.get("state", "")
    if state and state.upper() not in JobState.BASES | JobState.FLAGS:
        unknown = error(FLAGS_INVALID, f'Unknown flag "{state}"', source="#/state[0][0]/")
        if version < "v0.0.41":
            single = error(FLAGS_INVALID, f'Parsing single flag "{state}" failed', source="#/state[0]/")
            return 422, [unknown, single, rejected]
        return 500, [unknown]
    return 200, []


def _was_there(job: Job, since: datetime | None, until: datetime | None) -> bool:
    if job.eligible_time is None or job.hold:
        return False
    return (until is None or job.eligible_time <= until) and (
        since is None or job.end_time is None or not job.is_finished or job.end_time >= since
    )


def _was_in(job: Job, words: set[str], since: datetime | None, until: datetime | None) -> bool:
    """Whether a job was in one of these states in a time; without an end, whether it is in one and goes on."""
    if until is None:
        return job.state.base in words and not job.is_finished
    after = since or datetime.min.replace(tzinfo=UTC)
    if "PENDING" in words and job.eligible_time and job.eligible_time <= until and not job.hold:
        return job.start_time is None or job.start_time >= after
    if "RUNNING" in words and job.start_time and job.start_time <= until:
        return not job.is_finished or job.end_time is None or job.end_time >= after
    ended = job.end_time if job.is_finished else None
    return job.state.base in words and ended is not None and after <= ended <= until


def record(job: Job, jobs: JobsOnRecord, cluster: str, association: int, now: datetime) -> Record:
    """Return a job as slurmdbd writes it, with the step of its batch script."""
    start, end = job.start_time, job.end_time if job.is_finished else None
    elapsed = int(((end or now) - start).total_seconds()) if start else 0
    exit_code = _exit_code(job)
    limit = job.time_limit
    times = {
        "elapsed": elapsed,
        "eligible": _seconds(job.eligible_time) if not job.hold else 0,
        "end": _seconds(end),
        "start": _seconds(start),
        "submission": _seconds(job.submit_time),
        "planned": _marked(int((start - job.submit_time).total_seconds()) if start and job.submit_time else 0),
        "limit": _marked(int(limit.total_seconds()) // 60) if isinstance(limit, timedelta) else _infinite(),
    }
    made = merge(
        recorded("job"),
        {
            "job_id": job.id,
            "name": job.name,
            "user": job.user,
            "group": job.group,
            "account": job.account,
            "partition": job.partition,
            "qos": job.qos or "normal",
            "cluster": cluster,
            "wckey": {"wckey": job.wckey},
            "nodes": job.node_list or "None assigned",
            "allocation_nodes": len(job.nodes),
            "association": {"id": association, "cluster": cluster},
            "state": {"current": [job.state.base], "reason": job.state_reason or "None"},
            "exit_code": exit_code,
            "derived_exit_code": _exit_code(None),
            "array": {
                "job_id": job.array_job_id or 0,
                "task_id": _marked(job.array_task_id),
                "task": _bitmap(arrays.waiting(job)),
            },
            "het": {"job_id": job.het_job_id or 0, "job_offset": _marked(job.het_job_offset)},
            "comment": {"job": job.comment, "administrator": job.admin_comment, "system": job.system_comment},
            "extra": job.extra,
            "hold": job.hold,
            "priority": _marked(job.priority if isinstance(job.priority, int) else None),
            "required": {"CPUs": job.cpus or 1, "memory_per_node": _marked(job.memory_per_node_mib or 0)},
            "reservation": {"name": job.reservation, "requested": job.reservation},
            "restart_cnt": job.restarts or 0,
            "kill_request_user": "root" if job.state.base == "CANCELLED" else "",
            "working_directory": job.working_directory,
            "stdin": job.standard_input,
            "stdout": job.standard_output,
            "stderr": job.standard_error,
            "time": times,
            "tres": {"allocated": _tres(job) if start else [], "requested": _tres(job)},
        },
    )
    merge(made, jobs.comments.get(job.id, {}))
    if start and job.batch:
        made["steps"] = [_batch_step(job, times, exit_code)]
    return made


def _bitmap(tasks: ArrayTasks | None) -> str:
    """Write the indices of tasks that have not started as slurmdbd keeps them."""
    return f"0x{sum(1 << index for index in tasks):X}" if tasks is not None else ""


def _batch_step(job: Job, times: Record, exit_code: Record) -> Record:
    # What ended the script is a signal where slurmctld ended the job.
    ended = {"CANCELLED", "TIMEOUT", "PREEMPTED", "DEADLINE", "OUT_OF_MEMORY"}
    by_signal = job.state.base in ended or "SIGNALED" in exit_code["status"]
    killed = {"status": ["SIGNALED"], "return_code": _marked(None), "signal": {"id": _marked(15), "name": "TERM"}}
    made = recorded("step")
    if not job.is_finished:
        # What it used is recorded when it ends.
        for kind in ("requested", "consumed"):
            made["tres"][kind] |= {"average": [], "total": []}
    return merge(
        made,
        {
            "step": {"id": f"{job.id}.batch", "name": "batch"},
            "state": ["CANCELLED" if by_signal else job.state.base],
            "exit_code": killed if job.state.base in ended else exit_code,
            "nodes": {"count": 1, "range": job.batch_host, "list": [job.batch_host]},
            "time": {
                "elapsed": times["elapsed"],
                "start": _marked(times["start"]),
                "end": _marked(times["end"] or None),
            },
            "tres": {"allocated": [one for one in _tres(job) if one["type"] != "billing"]},
            "submit_line": "",
        },
    )


def exit_status(status: int) -> Record:
    """Write a wait status as slurmdbd keeps it: the high byte is an exit code, the low one a signal."""
    code, signal = status >> 8, status & 0x7F
    return {
        "status": ["SIGNALED" if signal else "ERROR" if code else "SUCCESS"],
        "return_code": _marked(code),
        "signal": {"id": _marked(signal or None), "name": ""},
    }


def _exit_code(job: Job | None) -> Record:
    known = job.exit_code if job else None
    if known is None:
        failed = job is not None and job.state.base in {"FAILED", "BOOT_FAIL", "NODE_FAIL"}
        return {
            "status": ["ERROR" if failed else "SUCCESS"],
            "return_code": _marked(int(failed)),
            "signal": {"id": _marked(None), "name": ""},
        }
    return {
        "status": list(known.status),
        "return_code": _marked(known.return_code),
        "signal": {"id": _marked(known.signal), "name": known.signal_name or ""},
    }


def _tres(job: Job) -> list[Record]:
    counts = (("cpu", 1, job.cpus or 1), ("node", 4, job.node_count or 1), ("billing", 5, job.cpus or 1))
    return [{"type": kind, "name": "", "id": own, "count": count} for kind, own, count in counts]


def _marked(value: float | None) -> Record:
    return {"set": value is not None, "infinite": False, "number": value or 0}


def _infinite() -> Record:
    return {"set": False, "infinite": True, "number": 0}


def _seconds(value: datetime | None) -> int:
    return int(value.timestamp()) if value else 0
