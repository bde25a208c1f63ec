"""Jobs by state, partition, reason, QOS, account and user.

A job of an array counts as one for each of its tasks, as `squeue --array` lists them. In the families of the cluster a
job counts once; in those of partitions it counts in each partition that it waits for, and in the one that it runs in.
CPUs, memory and GRES are what a job has, or what it asks for while it is pending.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from slurm_client.models import Job, JobState
from slurm_client.notation.arrays import ArrayTasks
from slurm_client.notation.tres import Tres
from slurm_exporter.families.demand import Demand
from slurm_exporter.samples import words
from slurm_exporter.samples.budget import KINDS, PARTITIONS, Kinds, Names, folded, largest, own, short
from slurm_exporter.samples.family import Labels, Samples, gauge
from slurm_exporter.samples.shared import shared

MIB: Final = 1024 * 1024
REASONS: Final = 64
"""Most reasons with a sample of their own; Slurm 26.05 knows about 180."""

COUNTED_REASONS: Final = 256
"""Most reasons that are counted, of which those with most jobs have samples."""

QOS: Final = 512
"""Most QOS with samples of their own: those whose jobs have or ask for most CPUs."""

STATES: Final = tuple(sorted(word.lower() for word in JobState.BASES))
"""States that have a sample even where no job is in them."""

_STATE: Final = "jobs/: job_state"
JOBS = gauge("jobs", "Jobs by base state; the states add up to all jobs that slurmctld knows.", _STATE, ["state"])
JOBS_FLAGGED = gauge("jobs_flagged", "Jobs by flag beside the base state, such as completing.", _STATE, ["flag"])
JOB_RECORDS = gauge("job_records", "Records of jobs in slurmctld; tasks that wait together share one.", "jobs/")
JOBS_HELD = gauge("jobs_held", "Pending jobs that are held.", "jobs/: hold, priority")
JOBS_PENDING = gauge("jobs_pending", "Pending jobs by Slurm's reason.", "jobs/: state_reason", ["reason"])
JOBS_CPUS = gauge("jobs_cpus", "CPUs that jobs have, or ask for while pending.", "jobs/: cpus", ["state"])
JOBS_NODES = gauge("jobs_nodes", "Nodes that jobs have, or ask for while pending.", "jobs/: node_count", ["state"])
JOBS_MEMORY = gauge(
    "jobs_memory_bytes",
    "Memory that jobs have, or ask for while pending.",
    "jobs/: tres_alloc_str, tres_req_str",
    ["state"],
    "bytes",
)
JOBS_GRES = gauge(
    "jobs_gres",
    "Generic resources that jobs have, or ask for while pending.",
    "jobs/: tres_alloc_str, tres_req_str",
    ["state", "gres", "type"],
)
OLDEST = gauge(
    "jobs_pending_age_max_seconds",
    "How long the oldest eligible pending job has waited since it became eligible.",
    "jobs/: eligible_time",
    unit="seconds",
)
PARTITION_JOBS = gauge("partition_jobs", "Jobs of a partition by base state.", _STATE, ["partition", "state"])
PARTITION_PENDING = gauge(
    "partition_jobs_pending", "Pending jobs of a partition by reason.", "jobs/: state_reason", ["partition", "reason"]
)
PARTITION_JOBS_CPUS = gauge(
    "partition_jobs_cpus", "CPUs that jobs of a partition have or ask for.", "jobs/: cpus", ["partition", "state"]
)
PARTITION_OLDEST = gauge(
    "partition_jobs_pending_age_max_seconds",
    "How long the oldest eligible pending job of a partition has waited.",
    "jobs/: eligible_time",
    ["partition"],
    "seconds",
)
QOS_JOBS = gauge("qos_jobs", "Jobs of a QOS by base state.", "jobs/: qos, job_state", ["qos", "state"])
QOS_CPUS = gauge("qos_jobs_cpus", "CPUs that jobs of a QOS have or ask for.", "jobs/: qos, cpus", ["qos", "state"])
ACCOUNT_JOBS = gauge(
    "account_jobs", "Jobs of an account by base state; off by default.", "jobs/: account", ["account", "state"]
)
ACCOUNT_CPUS = gauge(
    "account_jobs_cpus",
    "CPUs that jobs of an account have or ask for; off by default.",
    "jobs/: cpus",
    ["account", "state"],
)
USER_JOBS = gauge("user_jobs", "Jobs of a user by base state; off by default.", "jobs/: user_name", ["user", "state"])
USER_CPUS = gauge(
    "user_jobs_cpus", "CPUs that jobs of a user have or ask for; off by default.", "jobs/: cpus", ["user", "state"]
)

ALL: Final = (
    JOBS, JOBS_FLAGGED, JOB_RECORDS, JOBS_HELD, JOBS_PENDING, JOBS_CPUS, JOBS_NODES, JOBS_MEMORY, JOBS_GRES, OLDEST,
    PARTITION_JOBS, PARTITION_PENDING, PARTITION_JOBS_CPUS, PARTITION_OLDEST, QOS_JOBS, QOS_CPUS, ACCOUNT_JOBS,
    ACCOUNT_CPUS, USER_JOBS, USER_CPUS,
)  # fmt: skip


@shared(8192)
def amounts(text: str) -> tuple[int, Mapping[tuple[str, str], int]]:
    """Memory in MiB and generic resources by name and type; what cannot be read counts as nothing.

    Slurm lists a resource once without its type and again by type: what has types is the rest of the whole.
    """
    try:
        tres = Tres.parse(text)
    except ValueError:
        return 0, {}
    found: dict[tuple[str, str], int] = {}
    for each in tres:
        if each.type == "gres":
            found[each.name, each.subtype] = found.get((each.name, each.subtype), 0) + each.count
    typed: defaultdict[str, int] = defaultdict(int)
    for (name, kind), count in found.items():
        typed[name] += count if kind else 0
    for name, count in typed.items():
        if count and (name, "") in found:
            rest = found.pop((name, "")) - count
            if rest > 0:
                found[name, ""] = rest
    return tres.memory_mib, found


@shared(8192)
def task_count(text: str) -> int:
    """Count the tasks of a record that stands for several; at least those named where slurmctld cut the list."""
    tasks = text.partition("%")[0]
    named = ",".join(word for word in tasks.strip("[]").split(",") if word.strip(". "))
    try:
        return max(1, len(ArrayTasks.parse(named))) if named else 1
    except ValueError:
        return 1


def tasks_of(job: Job) -> int:
    """How many jobs a record stands for."""
    return task_count(job.array_tasks) if job.array_tasks and job.is_pending else 1


class JobSums:
    """Sums over jobs."""

    def __init__(self) -> None:
        self.jobs: defaultdict[str, int] = defaultdict(int, {"pending": 0, "running": 0})
        self.cpus: defaultdict[str, float] = defaultdict(float)

    def add(self, state: str, tasks: int, cpus: float) -> None:
        """Count a record."""
        self.jobs[state] += tasks
        self.cpus[state] += cpus


Grouped = defaultdict[str, JobSums]


class JobTally:
    """Sums over all jobs.

    Parameters
    ----------
    now
        Wall-clock time, for ages.
    users, accounts
        How many users and accounts have samples of their own; 0 for none, and no samples of others either.
    names
        Partitions that have samples of their own. A job counts once in the others, however many it names.
    """

    def __init__(self, now: datetime, users: int = 0, accounts: int = 0, names: Names | None = None) -> None:
        self._now = now
        self._names = names or Names(PARTITIONS)
        self._reasons = Names(COUNTED_REASONS)
        self._kinds = Kinds(KINDS)
        self._users = users
        self._accounts = accounts
        self.records = 0
        self.held = 0
        self.by_state: defaultdict[str, int] = defaultdict(int, dict.fromkeys(STATES, 0))
        self.by_flag: defaultdict[str, int] = defaultdict(int)
        self.by_reason: defaultdict[str, int] = defaultdict(int)
        self.cpus: defaultdict[str, float] = defaultdict(float)
        self.nodes: defaultdict[str, float] = defaultdict(float)
        self.memory: defaultdict[str, float] = defaultdict(float)
        self.gres: defaultdict[Labels, float] = defaultdict(float)
        self.oldest: dict[str, float] = {}
        """Seconds by partition; of the whole cluster under the empty name."""
        self.partitions: Grouped = defaultdict(JobSums)
        self.partition_reasons: defaultdict[Labels, float] = defaultdict(float)
        self.qos: Grouped = defaultdict(JobSums)
        self.accounts: Grouped = defaultdict(JobSums)
        self.users: Grouped = defaultdict(JobSums)
        self.demand = Demand(now)

    def add(self, job: Job) -> None:
        """Count a record."""
        self.records += 1
        state = words.base(job.state).lower()
        tasks = tasks_of(job)
        ended = job.state.base not in {"PENDING", "RUNNING", "SUSPENDED"} and not job.holds_nodes
        cpus = 0.0 if ended else float((job.cpus or 0) * tasks)
        self.by_state[state] += tasks
        for flag in words.flags(job.state):
            self.by_flag[flag.lower()] += tasks
        if not ended:
            self._add_amounts(job, state, tasks, cpus)
        partitions = self._names.listed(job.partition)
        for name in partitions:
            self.partitions[name].add(state, tasks, cpus)
        if job.qos:
            self.qos[short(job.qos)].add(state, tasks, cpus)
        if self._accounts and job.account:
            self.accounts[short(job.account)].add(state, tasks, cpus)
        if self._users and job.user:
            self.users[short(job.user)].add(state, tasks, cpus)
        if job.is_pending:
            self._add_pending(job, tasks, partitions)
        elif not ended:
            self.demand.add_started(job)

    def _add_amounts(self, job: Job, state: str, tasks: int, cpus: float) -> None:
        self.cpus[state] += cpus
        self.nodes[state] += (job.node_count or 0) * tasks
        memory, found = amounts(job.tres_allocated or job.tres_requested)
        self.memory[state] += memory * MIB * tasks
        for kind, count in found.items():
            self.gres[state, *self._kinds.of(kind)] += count * tasks

    def _add_pending(self, job: Job, tasks: int, partitions: list[str]) -> None:
        reason = self._reasons.of(job.state_reason or "None")
        self.by_reason[reason] += tasks
        self.held += tasks if job.hold else 0
        for name in partitions:
            self.partition_reasons[name, reason] += tasks
        since = job.eligible_time
        if since is not None and since <= self._now and not job.hold:
            age = (self._now - since).total_seconds()
            for name in ("", *partitions):
                self.oldest[name] = max(age, self.oldest.get(name, 0.0))
        self.demand.add(job, tasks, partitions)

    def samples(self) -> Iterator[Samples]:
        """All families of jobs."""
        yield Samples(JOBS, _labelled(self.by_state))
        yield Samples(JOBS_FLAGGED, _labelled(self.by_flag))
        yield Samples(JOB_RECORDS, {(): self.records})
        yield Samples(JOBS_HELD, {(): self.held})
        kept = largest(own(self.by_reason), REASONS)
        yield Samples(JOBS_PENDING, folded(_labelled(self.by_reason), kept))
        yield Samples(JOBS_CPUS, _labelled(self.cpus))
        yield Samples(JOBS_NODES, _labelled(self.nodes))
        yield Samples(JOBS_MEMORY, _labelled(self.memory))
        yield Samples(JOBS_GRES, self.gres)
        yield Samples(OLDEST, {(): self.oldest.get("", 0.0)})
        yield Samples(PARTITION_JOBS, _jobs(self.partitions))
        yield Samples(PARTITION_PENDING, folded(self.partition_reasons, kept, place=1))
        yield Samples(PARTITION_JOBS_CPUS, _cpus(self.partitions))
        yield Samples(PARTITION_OLDEST, {(name,): self.oldest.get(name, 0.0) for name in self.partitions})
        for grouped, budget, jobs, cpus in (
            (self.qos, QOS, QOS_JOBS, QOS_CPUS),
            (self.accounts, self._accounts, ACCOUNT_JOBS, ACCOUNT_CPUS),
            (self.users, self._users, USER_JOBS, USER_CPUS),
        ):
            top = largest(own({name: sum(sums.cpus.values()) for name, sums in grouped.items()}), budget)
            yield Samples(jobs, folded(_jobs(grouped), top))
            yield Samples(cpus, folded(_cpus(grouped), top))
        yield from self.demand.samples(self.partitions)


def _labelled(values: Mapping[str, float]) -> dict[Labels, float]:
    return {(name,): value for name, value in values.items()}


def _jobs(grouped: Grouped) -> dict[Labels, float]:
    return {(name, state): count for name, sums in grouped.items() for state, count in sums.jobs.items()}


def _cpus(grouped: Grouped) -> dict[Labels, float]:
    return {(name, state): value for name, sums in grouped.items() for state, value in sums.cpus.items() if value}
