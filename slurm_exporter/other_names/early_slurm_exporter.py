"""Names of slurm-exporter 0.1 and 0.2, among them `slurm_partition_pending_jobs`, by which its KEDA example scales.

What differs from it on purpose: tasks of arrays count singly, a job that waits for several partitions counts in each of
them, and jobs that have ended count nowhere (there those that failed do, for as long as slurmctld remembers them).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from slurm_exporter.other_names.notation import Group, Row, of_flags, of_states
from slurm_exporter.other_names.slurm_exporter import top
from slurm_exporter.other_names.tally import Jobs, Limits, Nodes, Tally
from slurm_exporter.samples.family import Family, Samples
from slurm_exporter.sources.snapshot import Snapshot


def _pending(jobs: Jobs) -> int:
    return jobs.states["PENDING"] - jobs.held


def _running(jobs: Jobs) -> int:
    return jobs.states["RUNNING"]


def _unfinished(jobs: Jobs) -> int:
    return jobs.total - jobs.finished


def _held(jobs: Jobs) -> int:
    return jobs.held


def _amount(name: str, key: str, text: str) -> Row[Mapping[str, int]]:
    return Row(name, text, lambda amounts: amounts.get(key))


_AMOUNTS: Final = (
    _amount("cpus", "cpus", "CPUs."),
    _amount("idle_cpus", "cpus_idle", "CPUs that jobs can have and none has."),
    _amount("alloc_cpus", "cpus_alloc", "CPUs that jobs have."),
)

PARTITION_NODES: Final = Group(
    "slurm_partition_", ("partition",), (Row[Nodes]("nodes", "Nodes.", lambda nodes: nodes.total),), "nodes/"
)
PARTITION_AMOUNTS: Final = Group("slurm_partition_", ("partition",), _AMOUNTS, "nodes/")
PARTITION_JOBS: Final = Group(
    "slurm_partition_",
    ("partition",),
    (
        Row("jobs", "Jobs that have not ended.", _unfinished),
        Row("pending_jobs", "Pending jobs that are not held.", _pending),
        Row[Jobs](
            "max_pending_nodes",
            "Nodes that the largest pending job asks for that is not held.",
            lambda jobs: jobs.least_not_held,
        ),
        Row("running_jobs", "Running jobs.", _running),
        Row("hold_jobs", "Pending jobs that are held.", _held),
    ),
    "jobs/",
)
NODE: Final = Group("slurm_node_", ("node",), _AMOUNTS, "nodes/")
NODE_TOTAL: Final = Group("slurm_node_", (), (Row[Nodes]("total", "Nodes.", lambda nodes: nodes.total),), "nodes/")
NODES: Final[Group[Nodes]] = Group(
    "slurm_",
    (),
    (
        *of_states(
            "Nodes",
            {"alloc": "ALLOCATED", "down": "DOWN", "err": "ERROR", "idle": "IDLE", "mixed": "MIXED"},
            "{}_nodes",
        ),
        *of_flags(
            "Nodes",
            {"completing": "COMPLETING", "drain": "DRAIN", "maintenance": "MAINTENANCE", "reserved": "RESERVED"},
            "{}_nodes",
        ),
    ),
    "nodes/",
)
USER: Final = Group(
    "slurm_",
    ("user",),
    (
        Row("job_total", "Jobs that have not ended.", _unfinished),
        Row("user_pending_jobs", "Pending jobs that are not held.", _pending),
        Row("user_running_jobs", "Running jobs.", _running),
        Row("user_hold_jobs", "Pending jobs that are held.", _held),
    ),
    "jobs/",
)

GROUPS: Final = (PARTITION_NODES, PARTITION_AMOUNTS, PARTITION_JOBS, NODE, NODE_TOTAL, NODES, USER)


def families() -> Iterator[Family]:
    """Yield all declarations."""
    for group in GROUPS:
        yield from group.families()


def samples(tally: Tally, _snapshot: Snapshot, limits: Limits) -> Iterator[Samples]:
    """Yield all samples; parameters as in :func:`slurm_exporter.other_names.slurm_exporter.samples`."""
    yield from PARTITION_NODES.samples({(name,): nodes for name, nodes in tally.partition_nodes.items()})
    yield from PARTITION_AMOUNTS.samples({(name,): nodes.amounts for name, nodes in tally.partition_nodes.items()})
    yield from PARTITION_JOBS.samples({(name,): jobs for name, jobs in tally.partition_jobs.items()})
    yield from NODE.samples({(name,): amounts for name, amounts in tally.single.items()})
    yield from NODE_TOTAL.samples({(): tally.nodes})
    yield from NODES.samples({(): tally.nodes})
    yield from USER.samples({(name,): tally.users[name] for name in top(tally.users, limits.users)})
