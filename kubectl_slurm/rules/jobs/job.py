"""Why a job waits, or what became of it, in words. Pure.

Slurm's reason is a word of a list; what stands behind it is looked up: the nodes, the limit and who uses it, the jobs
before it, the job that it depends on, the licence, the reservation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules.jobs import limits, near_misses, queue
from kubectl_slurm.screen.blocks import Line, Mood, Part, Row, Screen, Section, table
from kubectl_slurm.screen.words import ago, clip, named, number
from slurm_client.cli.reasons import in_words
from slurm_client.cli.text import length, memory
from slurm_client.models import INFINITE, Job, Partition

MOST_JOBS: Final = 5
_JOB_ID: Final = re.compile(r"([0-9]{1,10})(?:_([0-9]{1,10}))?(?:\+([0-9]{1,10}))?")
_DEPENDENCY: Final = re.compile(r"([a-z]+):([0-9]+)(_\S*?)?(?:\+[0-9]+)?(?:\(([a-z]+)\))?(?=[,?]|$)")

Explain = Callable[[Job, SlurmPicture], tuple[Part, ...]]


def find(name: str, jobs: Sequence[Job]) -> list[Job]:
    """The records of a job, of all tasks of an array, or of one of them, by the name that people use."""
    match = _JOB_ID.fullmatch(name)
    if match is None:
        return []
    number_, task = int(match[1]), match[2]
    if task is not None:
        exact = [one for one in jobs if one.array_job_id == number_ and one.array_task_id == int(task)]
        return exact or [one for one in jobs if one.array_job_id == number_ and one.array_tasks]
    return [one for one in jobs if number_ in {one.id, one.array_job_id, one.het_job_id}]


def output_of(job: Job, stream: str) -> str:
    """The path that a job writes to; empty if Slurm names none. Errors go where the output goes, unless Slurm says."""
    out = job.standard_output_expanded or _plain(job.standard_output)
    if stream == "stdout":
        return out
    return job.standard_error_expanded or _plain(job.standard_error) or out


def _plain(path: str) -> str:
    """A path without patterns of Slurm's, such as ``%j``."""
    return "" if "%" in path else path


def screen(jobs: Sequence[Job], slurm: SlurmPicture) -> Screen:
    """What to say of a job's records: those that wait first, tasks of an array that are alike once."""
    groups: dict[tuple[str, str], list[Job]] = {}
    for job in sorted(jobs, key=lambda one: (not one.is_pending, one.id)):
        groups.setdefault((job.state.base, queue.reason(job) if job.is_pending else ""), []).append(job)
    sections = [_section(some[0], slurm, len(some) - 1) for some in groups.values()]
    return tuple(sections[:MOST_JOBS])


def _section(job: Job, slurm: SlurmPicture, alike: int) -> Section:
    since = job.submit_time if job.is_pending else job.start_time if job.is_running else job.end_time
    for_ = f", {_verb(job)} {ago(since, slurm.now)}" if since else ""
    array = f", array of {number(queue.tasks(job), 'task')}" if job.array_tasks else ""
    more = f" (and {number(alike, 'task')} like it)" if alike else ""
    who = f"user {clip(job.user, 40) or '(hidden)'}, account {clip(job.account, 40) or '-'}"
    name = f" ({clip(job.name, 40)})" if job.name else ""
    title = f"Job {job.alone}{name}{array}{more}, {who}: {job.state}{for_}"
    if job.is_pending:
        return Section(title, _waiting(job, slurm), Mood.WARNING)
    if job.holds_nodes:
        return Section(title, _running(job, slurm), Mood.GOOD)
    return Section(title, _ended(job), Mood.GOOD if job.succeeded else Mood.BAD)


def _verb(job: Job) -> str:
    return "submitted" if job.is_pending else "started" if job.is_running else "ended"


def _waiting(job: Job, slurm: SlurmPicture) -> tuple[Part, ...]:
    reason = queue.reason(job)
    meaning = in_words(reason)
    description = f" ({clip(job.state_description)})" if job.state_description else ""
    head = Line(f"Slurm's reason: {clip(job.state_reason) or 'None'}{f': {meaning}' if meaning else ''}{description}")
    asks = Line(f"It asks for {_request(job)}.", Mood.QUIET)
    explain = _EXPLAIN.get(reason.partition(":")[0])
    if explain is not None:
        found = explain(job, slurm)
    elif reason.replace("_", " ").startswith(("Nodes required", "ReqNodeNotAvail")):
        found = _nodes(job, slurm)
    else:
        found = limits.parts(job, reason, slurm) or _generic(job, slurm)
    return (head, asks, *found, *_expected(job, slurm))


def _request(job: Job) -> str:
    """What a job asks for."""
    words = [number(job.node_count or 1, "node"), number(job.cpus or 1, "CPU")]
    if job.memory_per_node_mib:
        words.append(f"{memory(job.memory_per_node_mib)} on each node")
    elif job.memory_per_cpu_mib:
        words.append(f"{memory(job.memory_per_cpu_mib)} for each CPU")
    texts = (job.tres_per_node, job.tres_per_job, job.tres_per_task, job.tres_per_socket)
    words += [clip(text, 60) for text in texts if text]
    if job.features:
        words.append(f"features {clip(job.features, 60)}")
    if job.licenses:
        words.append(f"licences {clip(job.licenses, 60)}")
    limit = f", for {length(job.time_limit)}" if job.time_limit is not None else ""
    return f"{', '.join(words)}{limit}, in partition {clip(job.partition, 60)}, QOS {clip(job.qos, 40) or '-'}"


def _expected(job: Job, slurm: SlurmPicture) -> tuple[Part, ...]:
    if job.start_time is not None and job.start_time > slurm.now:
        where = f" on {clip(job.scheduled_nodes, 60)}" if job.scheduled_nodes else ""
        return (
            Line(f"Slurm expects to start it {ago(job.start_time, slurm.now)}{where}, and sooner if jobs end early."),
        )
    return ()


def _nodes(job: Job, slurm: SlurmPicture) -> tuple[Part, ...]:
    return near_misses.parts(job, slurm)


def _priority(job: Job, slurm: SlurmPicture) -> tuple[Part, ...]:
    """Jobs before this one in a partition of its, the nearest to start first."""
    partitions, mine = set(job.partition.split(",")), job.priority
    if mine is None or mine is INFINITE or not isinstance(mine, int):
        return _nodes(job, slurm)
    ahead = [
        one
        for one in slurm.jobs
        if one.is_pending and isinstance(one.priority, int) and one.priority > mine and one.id != job.id
        and partitions & set(one.partition.split(","))
    ]  # fmt: skip
    ahead.sort(key=lambda one: (-int(one.priority) if isinstance(one.priority, int) else 0, one.id))
    if not ahead:
        text = "No pending job of its partition that can be seen has a higher priority: Slurm looks again soon."
        return (Line(text), *_nodes(job, slurm))
    waits = [one for one in ahead if queue.reason(one) == "Resources"]
    first = f"; job {waits[0].alone} is first in line for nodes" if waits else ""
    rows = [Row((one.alone, one.user, str(one.priority), queue.reason(one))) for one in ahead]
    head = ("JOB", "USER", "PRIORITY", "WAITS FOR")
    shown = table(head, rows, "jobs before it", numbers=("PRIORITY",), most=MOST_JOBS)
    return (Line(f"{number(len(ahead), 'job')} with a higher priority than its {mine} wait before it{first}:"), shown)


def _dependency(job: Job, slurm: SlurmPicture) -> tuple[Part, ...]:
    known = {one.id: one for one in slurm.jobs} | {one.array_job_id: one for one in slurm.jobs if one.array_job_id}
    rows = []
    for match in _DEPENDENCY.finditer(job.dependency[:4000]):
        other = known.get(int(match[2]))
        state = str(other.state) if other is not None else "Slurm does not know it any more"
        rows.append(Row((match[1], f"{match[2]}{match[3] or ''}", state, match[4] or "")))
    if not rows:
        return (Line(f"It depends on: {clip(job.dependency) or 'a job that Slurm does not name'}."),)
    never = queue.reason(job) == "DependencyNeverSatisfied"
    way = "scontrol update job=ID dependency= lets it start without, scancel ends it."
    advice = (Line(f"It never starts as it is: {way}", Mood.BAD),) if never else ()
    return (table(("CONDITION", "JOB", "STATE", "RESULT"), rows, "dependencies", most=10), *advice)


def _licenses(job: Job, slurm: SlurmPicture) -> tuple[Part, ...]:
    wanted = {word.partition(":")[0].partition("@")[0].strip() for word in re.split("[,|;&]", job.licenses[:1000])}
    rows = []
    for one in slurm.licenses:
        if one.name.partition("@")[0] in wanted:
            users = sorted({each.user for each in slurm.jobs if each.holds_nodes and one.name in each.licenses} - {""})
            rows.append(Row((one.name, str(one.total), str(one.used), str(one.free), named(users))))
    if not rows:
        return (Line(f"It asks for licences {clip(job.licenses, 100)}, of which Slurm lists none."),)
    head = ("LICENCE", "TOTAL", "USED", "FREE", "USED BY")
    return (table(head, rows, "licences", numbers=("TOTAL", "USED", "FREE")),)


def _reservation(job: Job, slurm: SlurmPicture) -> tuple[Part, ...]:
    found = next((one for one in slurm.reservations if one.name == job.reservation), None)
    if found is None:
        text = (
            f"Reservation {clip(job.reservation, 60) or '(none)'} is not there any more: the job never starts as it is."
        )
        return (Line(text, Mood.BAD),)
    times = f"begins {ago(found.start_time, slurm.now)}, ends {ago(found.end_time, slurm.now)}"
    return (Line(f"Reservation {clip(found.name, 60)} {times}, on {clip(found.node_list, 100) or 'no nodes'}."),)


def _begin(job: Job, slurm: SlurmPicture) -> tuple[Part, ...]:
    return (Line(f"It may begin {ago(job.eligible_time, slurm.now) or 'later'}, as its user asked."),)


def _held(job: Job, _: SlurmPicture) -> tuple[Part, ...]:
    by = "an administrator" if "Admin" in job.state_reason else "its user"
    tail = f" after {number(job.restarts, 'restart')}" if job.restarts else ""
    return (
        Line(f"It is held by {by}{tail}. scontrol release {job.alone} lets it wait for nodes again.", Mood.WARNING),
    )


def _partition(job: Job, slurm: SlurmPicture) -> tuple[Part, ...]:
    found = [one for one in slurm.partitions if one.name in job.partition.split(",")]
    if not found:
        return (Line(f"There is no partition {clip(job.partition, 60)}.", Mood.BAD),)
    return tuple(Line(_of_partition(job, one), Mood.WARNING) for one in found[:MOST_JOBS])


def _of_partition(job: Job, one: Partition) -> str:
    """What of a partition keeps a job from starting."""
    words = [f"Partition {clip(one.name, 60)} is {one.state.base}"]
    if isinstance(one.max_nodes, int) and (job.node_count or 1) > one.max_nodes:
        words.append(f"allows {number(one.max_nodes, 'node')} for a job, and this one asks for {job.node_count}")
    if one.max_time is not None and job.time_limit is not None and job.time_limit > one.max_time:
        words.append(f"allows {length(one.max_time)}, and the job asks for {length(job.time_limit)}")
    if (job.node_count or 1) > one.total_nodes:
        words.append(f"has {number(one.total_nodes, 'node')}, and the job asks for {job.node_count or 1}")
    if one.allowed_accounts and job.account not in one.allowed_accounts.split(","):
        words.append(f"takes accounts {clip(one.allowed_accounts, 60)} only")
    return ", ".join(words) + "."


def _array_limit(job: Job, slurm: SlurmPicture) -> tuple[Part, ...]:
    runs = sum(one.holds_nodes for one in slurm.jobs if one.array_job_id == job.array_job_id)
    most = f" of {job.array_max_tasks} at a time" if job.array_max_tasks else ""
    return (Line(f"{number(runs, 'task')}{most} of array {job.array_job_id} run; %N in --array is its own limit."),)


def _generic(job: Job, slurm: SlurmPicture) -> tuple[Part, ...]:
    """A reason that has no rule of its own."""
    return near_misses.parts(job, slurm) if not job.hold else _held(job, slurm)


def _running(job: Job, slurm: SlurmPicture) -> tuple[Part, ...]:
    has_end = job.end_time is not None and job.time_limit is not INFINITE
    until = f"; it ends {ago(job.end_time, slurm.now)} at the latest" if has_end else ""
    lines: list[Part] = [Line(f"It runs on {clip(job.node_list, 100) or 'no node'} with {_request(job)}{until}.")]
    away = [one for one in slurm.nodes if one.name in set(job.nodes) and (one.is_drain or one.is_not_responding)]
    if away:
        names = named([f"{one.name} ({one.reason or one.state})" for one in away])
        lines.append(Line(f"Of its nodes are drained or do not respond: {names}.", Mood.WARNING))
    return tuple(lines)


def _ended(job: Job) -> tuple[Part, ...]:
    code = job.exit_code
    how = ""
    if code is not None and (code.return_code or code.signal):
        how = (
            f" with signal {code.signal_name or code.signal}" if code.signal else f" with exit code {code.return_code}"
        )
    reason = f", reason {clip(job.state_reason, 60)}" if job.state_reason not in {"", "None"} else ""
    where = f" on {clip(job.node_list, 100)}" if job.node_list else ""
    return (Line(f"It ended{how}{where}{reason}."),)


_EXPLAIN: Final[Mapping[str, Explain]] = {
    "None": _nodes,
    "Resources": _nodes,
    "ReqNodeNotAvail": _nodes,
    "NodeDown": _nodes,
    "BadConstraints": _nodes,
    "Priority": _priority,
    "Dependency": _dependency,
    "DependencyNeverSatisfied": _dependency,
    "Licenses": _licenses,
    "Reservation": _reservation,
    "ReservationDeleted": _reservation,
    "BeginTime": _begin,
    "JobHeldUser": _held,
    "JobHeldAdmin": _held,
    "launch failed requeued held": _held,
    "PartitionDown": _partition,
    "PartitionInactive": _partition,
    "PartitionTimeLimit": _partition,
    "PartitionNodeLimit": _partition,
    "PartitionConfig": _partition,
    "JobArrayTaskLimit": _array_limit,
}
"""Rules by Slurm's reason; a limit of an association or QOS has the rule `limits.parts`."""
