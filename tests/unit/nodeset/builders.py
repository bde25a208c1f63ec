"""Builders for tests of rules: the NodeSet `ns/a`, its pods, and their records and jobs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model.member import Member, join
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.planning import plan as planning
from slinky_operator.nodeset.planning.survey import survey
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.slurm.connection.contact import Contact, ContactState
from slurm_client.models import Job, Node
from slurm_client.models.job import JobState
from slurm_client.models.node import NodeState

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)

OWNER = "ns/a"
"""Tag of the NodeSet."""

OURS = drains.reason([Cause.SCALE_IN], OWNER)
"""Reason of a drain of ours."""


def nodeset(**spec: Any) -> NodeSet:
    metadata = {"name": "a", "namespace": "ns", "uid": "set-uid"}
    return NodeSet.parse({"metadata": metadata, "spec": {"clusterName": "c", "replicas": 4, **spec}})


def updating(**rolling: Any) -> NodeSet:
    return nodeset(updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})


ANSWERS: Final = Contact(ContactState.READY, datetime(2026, 1, 1, tzinfo=UTC), "")
"""Of a Slurm that has answered for long."""


def a_pod(**values: Any) -> Pod:
    given: dict[str, Any] = {
        "name": "a-0",
        "uid": "u",
        "ordinal": 0,
        "host": "host",
        "slurmd": Slurmd.RUNNING,
        "registered": True,
    } | values
    return Pod(**({"node_name": given["name"]} | given))


def node(words: str = "IDLE+DYNAMIC_NORM", **values: Any) -> Node:
    given: dict[str, Any] = {"name": "a-0", "extra": OWNER, "instance_id": "u", **values}
    return Node(state=NodeState.from_words(words.split("+")), **given)


def job(words: str, number: int = 1, **values: Any) -> Job:
    return Job(id=number, state=JobState.from_words(words.split("+")), **{"nodes": ("a-0",), **values})


def joined(pod: Pod, record: Node | None = None, *jobs: Job) -> Member:
    """A pod with the record and the jobs of its node."""
    return join(pod, {pod.node_name: record}, {pod.node_name: jobs}, OWNER)


def plan(snapshot: Snapshot, now: datetime) -> planning.Plan:
    """The plan from a snapshot that contains all that is to be asked."""
    return planning.plan(survey(snapshot, now))
