"""A Cluster with some of everything, as facts: what the screens of the documentation show."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kubectl_slurm.facts.objects import ClusterFacts, Condition, KeyFacts, NodeSetFacts, PodFacts, TokenFacts
from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules.changes import preflight, trial
from kubectl_slurm.rules.status import Overview
from kubectl_slurm.rules.verification import Result, Verdict
from slurm_client.models import Job, JobState, Node, NodeState, Partition, PartitionState
from slurm_client.models.database.accounts import Association
from slurm_client.models.database.limits import AssociationLimits
from slurm_client.notation.tres import Tres

NOW = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)
OPERATOR_DRAIN = "slurm-operator: scale-in"


def before(**length: float) -> datetime:
    return NOW - timedelta(**length)


def node(name: str, state: str = "IDLE", **values: Any) -> Node:
    """A node with 16 CPUs and 64 GiB; its state as words joined by ``+``."""
    base, *flags = state.split("+")
    given: dict[str, Any] = {
        "cpus": 16,
        "effective_cpus": 16,
        "real_memory_mib": 65536,
        "partitions": ("all",),
        "features": ("cpu",),
        "active_features": ("cpu",),
        "threads": 1,
    }
    return Node(name=name, state=NodeState(base, frozenset(flags)), **{**given, **values})


def job(number: int, state: str = "PENDING", **values: Any) -> Job:
    """A job of alice's in the partition all."""
    base, *flags = state.split("+")
    given: dict[str, Any] = {
        "name": "train",
        "user": "alice",
        "account": "physics",
        "partition": "all",
        "qos": "normal",
        "node_count": 1,
        "cpus": 1,
        "priority": 100,
        "submit_time": before(hours=2),
    }
    return Job(id=number, state=JobState(base, frozenset(flags)), **{**given, **values})


def partition(name: str = "all", state: str = "UP", **values: Any) -> Partition:
    return Partition(name=name, state=PartitionState(state, frozenset()), **values)


CLUSTER = ClusterFacts(
    name="slurm",
    namespace="slurm",
    ready=True,
    summary="1 node down, 2 nodes drained by others",
    slurm_version="26.05.1",
    conditions=(
        Condition("Ready", "True", "AsExpected", "", before(days=3)),
        Condition("Degraded", "False", "AsExpected", "", before(days=3)),
        Condition(
            "Progressing", "True", "WaitingForJobs", "partition old is removed after job 4102", before(minutes=9)
        ),
        Condition("NodesOutOfService", "True", "NodeDown", "1 node down, 2 nodes drained by others", before(hours=5)),
    ),
    running=3,
    pending=9,
    waiting=(("Resources", 5), ("Priority", 4)),
)

NODESETS = (
    NodeSetFacts(name="cpu", cluster="slurm", desired=4, ready=4, summary="4 nodes ready"),
    NodeSetFacts(
        name="gpu",
        cluster="slurm",
        desired=2,
        ready=2,
        draining=1,
        conditions=(
            Condition("Draining", "True", "ScaleIn", "gpu-2 waits for job 4102 (running for 5h)", before(minutes=40)),
        ),
    ),
)

NODES = (
    node("cpu-0", "MIXED", alloc_cpus=12, alloc_memory_mib=8192),
    node("cpu-1"),
    node("cpu-2", "IDLE+DRAIN", reason="new fans", reason_set_by="root", reason_changed_at=before(hours=5)),
    node("cpu-3", "IDLE+DRAIN", reason="new fans", reason_set_by="root", reason_changed_at=before(hours=5)),
    node("gpu-0", "ALLOCATED", gres="gpu:a100:4", gres_used="gpu:a100:4", alloc_cpus=16, partitions=("all", "gpu")),
    node(
        "gpu-1",
        "DOWN+NOT_RESPONDING",
        reason="Not responding",
        reason_set_by="slurm",
        reason_changed_at=before(minutes=12),
    ),
    node(
        "gpu-2",
        "MIXED+DRAIN",
        reason=OPERATOR_DRAIN,
        reason_set_by="slurm",
        reason_changed_at=before(minutes=40),
        alloc_cpus=4,
    ),
)

JOBS = (
    job(4102, "RUNNING", nodes=("gpu-2",), node_list="gpu-2", cpus=4, start_time=before(hours=5)),
    job(4110, "RUNNING", nodes=("cpu-0",), node_list="cpu-0", cpus=12, user="bob", start_time=before(hours=1)),
    job(4120, state_reason="Resources", cpus=16),
    *(job(number, state_reason="AssocGrpCpuLimit", cpus=8) for number in range(4121, 4125)),
    job(4130, state_reason="Priority", priority=50),
    job(4140, state_reason="DependencyNeverSatisfied", dependency="afterok:4100(failed)"),
)

POD = PodFacts(name="cpu-2", nodeset="cpu", node="host-7", phase="Running", ready=True)

TOKENS = (
    TokenFacts(
        name="portal",
        cluster="slurm",
        cluster_namespace="slurm",
        user="nobody",
        secret="portal",
        issued=before(minutes=5),
        expires=NOW + timedelta(minutes=10),
        ready=Condition("Ready", "True", "AsExpected"),
    ),
    TokenFacts(
        name="workflow",
        cluster="slurm",
        cluster_namespace="slurm",
        user="ci",
        secret="workflow",
        refresh=False,
        issued=before(hours=4),
        expires=NOW + timedelta(hours=4),
        ready=Condition("Ready", "True", "AsExpected"),
    ),
    TokenFacts(
        name="web",
        cluster="slurm",
        cluster_namespace="slurm",
        user="alice",
        secret="web",
        ready=Condition("Ready", "False", "NotGranted", "Cluster slurm does not grant user alice to namespace slurm"),
    ),
)

KEYS = (KeyFacts("slurm-auth-slurm/slurm.jwks 2026-10", NOW + timedelta(days=3)),)

PICTURE = SlurmPicture(now=NOW, jobs=JOBS, nodes=NODES, partitions=(partition(),), version="26.05.1")

ASSOCIATIONS = (
    Association(account="root"),
    Association(account="physics", parent_account="root", limits=AssociationLimits(group_tres=Tres.parse("cpu=20"))),
    Association(account="physics", user="alice"),
)

ACCOUNTED = replace(PICTURE, associations=ASSOCIATIONS, qos=())
"""The same with slurmdbd's part."""

OVERVIEW = Overview(now=NOW, cluster=CLUSTER, nodesets=NODESETS, tokens=TOKENS, keys=KEYS, slurm=PICTURE)

RESULTS = (
    Result("the operator reports the Cluster as ready", Verdict.PASSED),
    Result("slurmctld answers", Verdict.PASSED, "26.05.1"),
    Result("pods and Slurm nodes have the same names", Verdict.PASSED, "6 pods"),
    Result(
        "all daemons know a user alike",
        Verdict.FAILED,
        "alice: slurmctld, slurmrestd, slurmd of gpu: uid 1000, gid 2001, groups 2001,2100; login: unknown",
    ),
    Result("a job runs in partition all", Verdict.PASSED, "job 4150"),
    Result("the node knows the job's user by the same name", Verdict.PASSED, "job 4151"),
    Result("a job sees no more CPUs than it has", Verdict.FAILED, "job 4152 ended with exit status 1"),
    Result("a job with one GPU sees one", Verdict.SKIPPED, "no GPUs, not checked"),
    Result("a user may not drain a node", Verdict.PASSED, "nobody"),
    Result("a node is drained and undrained", Verdict.PASSED, "cpu-1"),
    Result("a drain in Slurm shows on its pod", Verdict.PASSED, "cpu-1"),
    Result("a cordoned pod's node is drained, and comes back", Verdict.PASSED, "cpu-1"),
    Result("a cordoned Kubernetes node drains its Slurm nodes, and back", Verdict.PASSED, "host-7"),
    Result(
        "another namespace gets no token that is not granted",
        Verdict.SKIPPED,
        "name another namespace where you may create Tokens with --other-namespace",
    ),
)

PREFLIGHT = (
    preflight.section(
        "Cluster slurm",
        "",
        preflight.cluster(
            {"partitions": [{"name": "old"}]},
            {"extraConf": "SchedulerTimeSlice=x"},
            SlurmPicture(now=NOW, jobs=(job(4102, "RUNNING", partition="old"),)),
        ),
    ),
    trial.section(
        trial.Trial(
            "slurm",
            trial.Verdict.REFUSED,
            'slurmctld: error: Invalid number "x" for SchedulerTimeSlice / fatal: Unable to process configuration file',
            stays=("partition old is closed to new jobs before it goes",),
        )
    ),
)
