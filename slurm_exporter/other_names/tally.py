"""Nodes and jobs counted as the sets need them: of the cluster, of each partition, account and user."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Final

from slurm_client.models import Job, JobState, Node, NodeState
from slurm_client.models.job import FINISHED
from slurm_exporter.families.jobs import COUNTED_REASONS, MIB, amounts, tasks_of
from slurm_exporter.families.nodes import gres_counts
from slurm_exporter.samples import words
from slurm_exporter.samples.budget import LONGEST, PARTITIONS, Names, short
from slurm_exporter.samples.shared import shared_states

GPU: Final = "gpu"
AMOUNTS: Final = (
    "cpus", "cpus_effective", "cpus_alloc", "cpus_idle", "gpus", "gpus_alloc", "memory", "memory_effective",
    "memory_alloc", "memory_free",
)  # fmt: skip
"""What nodes have, by the names that the sets give it."""

_JOB_WORDS: Final = (
    "COMPLETING", "CONFIGURING", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "STOPPED",
    "REVOKED", "RESV_DEL_HOLD", "SIGNALING", "STAGE_OUT",
)  # fmt: skip
"""Flags that squeue shows instead of the base state; the first of them, in this order."""


FEATURES: Final = 256
"""Most features that are counted, those of the first jobs: a constraint has no bound but its length."""

MOST_FEATURES: Final = 16
"""Features of one job that are counted: how many it names is up to its user."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Most users, accounts and users of calls that have samples of their own."""

    users: int = 0
    accounts: int = 0
    call_users: int = 0


@shared_states(1024)
def node_word(state: NodeState) -> str:
    """Return the one word that `sinfo` shows for a state, in small letters and without the sign at its end."""
    base, flags = state.base, state.flags
    has_jobs = base in {"ALLOCATED", "MIXED"}
    is_busy = has_jobs or "COMPLETING" in flags
    if "INVALID_REG" in flags:
        word = "inval"
    elif "MAINTENANCE" in flags and not (has_jobs or base == "DOWN" or "DRAIN" in flags):
        word = "maint"
    elif flags & {"REBOOT_REQUESTED", "REBOOT_ISSUED"} and not has_jobs:
        word = "reboot"
    elif "DRAIN" in flags:
        word = "draining" if is_busy else "drained"
    elif "FAIL" in flags:
        word = "failing" if is_busy else "fail"
    elif "COMPLETING" in flags and base not in {"ALLOCATED", "DOWN"}:
        word = "completing"
    elif base == "IDLE":
        word = next((word.lower() for word in ("RESERVED", "PLANNED") if word in flags), "idle")
    else:
        word = words.base(state).lower()
    return word


@shared_states(1024)
def job_word(state: JobState) -> str:
    """Return the one word that `squeue` shows for a state."""
    return next((word for word in _JOB_WORDS if word in state.flags), words.base(state))


class Nodes:
    """Sums over nodes; memory is in bytes."""

    def __init__(self) -> None:
        self.total = 0
        self.states: Counter[str] = Counter()
        self.flags: Counter[str] = Counter()
        self.drained = 0
        self.draining = 0
        self.amounts: Counter[str] = Counter(dict.fromkeys(AMOUNTS, 0))
        self.cpus_free = 0
        """CPUs that no job has, of nodes that take jobs."""
        self.load = 0.0
        self.weight = 0
        self.words: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """`nodes` and some amounts by the word of `sinfo`."""

    def add(self, node: Node, amounts_of_it: dict[str, int]) -> None:
        """Count a node with what :func:`of_node` says of it."""
        self.total += 1
        self.cpus_free += max(0, node.cpus - node.alloc_cpus) if takes_jobs(node) else 0
        self.load += node.cpu_load or 0.0
        self.weight += node.weight
        word = self.words[node_word(node.state)]
        word["nodes"] += 1
        word["cpus"] += node.cpus
        word["cpus_alloc"] += node.alloc_cpus
        word["memory_alloc"] += node.alloc_memory_mib * MIB
        self.states[words.base(node.state)] += 1
        self.flags.update(words.flags(node.state))
        self.drained += node.is_drained
        self.draining += node.is_drain and not node.is_drained
        self.amounts.update(amounts_of_it)


def takes_jobs(node: Node) -> bool:
    """Whether CPUs that no job has are idle, and not out of use, as `sinfo` counts."""
    return not node.is_drain and node.state.base not in {"DOWN", "ERROR", "UNKNOWN"} and "FAIL" not in node.state.flags


def of_node(node: Node) -> dict[str, int]:
    """Amounts of one node, by the names in :data:`AMOUNTS`.

    Parameters
    ----------
    node
        A node whose `free_memory_mib` may be unknown: then there is no free memory either.
    """
    memory = {
        "memory": node.real_memory_mib * MIB,
        "memory_effective": max(0, node.real_memory_mib - node.specialized_memory_mib) * MIB,
        "memory_alloc": node.alloc_memory_mib * MIB,
    }
    if node.free_memory_mib is not None:
        memory["memory_free"] = node.free_memory_mib * MIB
    return {
        "cpus": node.cpus,
        "cpus_effective": node.effective_cpus,
        "cpus_alloc": node.alloc_cpus,
        "cpus_idle": max(0, node.effective_cpus - node.alloc_cpus),
        "gpus": _gpus(node.gres),
        "gpus_alloc": _gpus(node.gres_used),
        **memory,
    }


class Jobs:
    """Sums over jobs, in which each task of an array is one; memory is in bytes."""

    def __init__(self) -> None:
        self.total = 0
        self.states: Counter[str] = Counter()
        self.flags: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.held = 0
        self.finished = 0
        self.started = 0
        self.amounts: Counter[str] = Counter()
        self.words: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """`jobs` and what they have, by the word of `squeue`."""
        self.least = 0
        """Nodes that the pending job asks for at least that asks for most."""
        self.least_not_held = 0
        self.most = 0
        """Nodes that it can use at most; its least, where it names no more."""
        self.most_not_held = 0

    def add(self, job: Job, tasks: int, amounts_of_it: Counter[str], reason: str) -> None:
        """Count a record that stands for so many tasks, with the label of its reason."""
        self.total += tasks
        self.states[words.base(job.state)] += tasks
        for flag in words.flags(job.state):
            self.flags[flag] += tasks
        word = self.words[job_word(job.state)]
        word["jobs"] += tasks
        word.update(amounts_of_it)
        if job.is_pending:
            self.held += tasks if job.hold else 0
            self.reasons[reason] += tasks
            least = max(1, job.node_count or 1)
            most = max(least, job.max_nodes or 0)
            self.least, self.most = max(self.least, least), max(self.most, most)
            if not job.hold:
                self.least_not_held = max(self.least_not_held, least)
                self.most_not_held = max(self.most_not_held, most)
        else:
            self.started += 1
            self.finished += job.state.base in FINISHED
        self.amounts.update(amounts_of_it)


def of_job(job: Job) -> Counter[str]:
    """What a job has now; nothing of one that waits or has ended."""
    if job.is_pending or not job.holds_nodes:
        return Counter()
    memory, gres = amounts(job.tres_allocated)
    gpus = sum(count for (name, _), count in gres.items() if name == GPU)
    return Counter(
        {
            "cpus_alloc": job.cpus or 0,
            "nodes_alloc": job.node_count or 0,
            "memory_alloc": memory * MIB,
            "gpus_alloc": gpus,
        }
    )


class Tally:
    """Everything that the sets need of nodes and jobs.

    Parameters
    ----------
    single_nodes
        Most nodes with samples of their own, in the order in which they are added.
    """

    def __init__(self, single_nodes: int) -> None:
        self._budget = single_nodes
        self._partitions = Names(PARTITIONS)
        self._features = Names(FEATURES)
        self._reasons = Names(COUNTED_REASONS, ("Dependency", "PartitionNodeLimit"))
        self.nodes = Nodes()
        self.jobs = Jobs()
        self.single: dict[str, dict[str, int]] = {}
        """Amounts of single nodes."""
        self.partition_nodes: defaultdict[str, Nodes] = defaultdict(Nodes)
        self.partition_jobs: defaultdict[str, Jobs] = defaultdict(Jobs)
        self.accounts: defaultdict[str, Jobs] = defaultdict(Jobs)
        self.users: defaultdict[str, Jobs] = defaultdict(Jobs)
        self.user_ids: dict[str, int | None] = {}
        self.features: defaultdict[str, Jobs] = defaultdict(Jobs)
        """By the features that jobs ask for; a job that asks for several counts in each."""

    def add_partition(self, name: str) -> None:
        """Have samples of a partition, whatever is in it."""
        own = self._partitions.of(name)
        _ = self.partition_nodes[own], self.partition_jobs[own]

    def add_node(self, node: Node) -> None:
        """Count a node."""
        has = of_node(node)
        self.nodes.add(node, has)
        for name in self._partitions.each(node.partitions):
            self.partition_nodes[name].add(node, has)
        if len(self.single) < self._budget and len(node.name) <= LONGEST:
            self.single[node.name] = has

    def add_job(self, job: Job) -> None:
        """Count a record."""
        tasks, has = tasks_of(job), of_job(job)
        user, reason = short(job.user), self._reasons.of(job.state_reason) if job.is_pending else ""
        groups = [self.jobs, self.accounts[short(job.account)], self.users[user]]
        groups += [self.partition_jobs[name] for name in self._partitions.listed(job.partition)]
        features = [name for name in job.features.split("&", MOST_FEATURES)[:MOST_FEATURES] if name]
        groups += [self.features[self._features.of(name)] for name in features]
        for group in groups:
            group.add(job, tasks, has, reason)
        self.user_ids[user] = job.user_id if user == job.user else None


def _gpus(text: str) -> int:
    return sum(count for (name, _), count in gres_counts(text).items() if name == GPU)
