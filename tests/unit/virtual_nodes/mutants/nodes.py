"""Mutants of the rules of virtual Nodes: what becomes of a Node, and what the Cluster shows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.cluster.status import PartitionJobCounts
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import VIRTUAL_NODES
from slinky_operator.slurm.jobs import job_facts
from slinky_operator.virtual_nodes.node_names import VirtualNode, virtual_node
from slinky_operator.virtual_nodes.nodes import (
    controller,
    execute,
    leases,
    observation,
    partition_poll,
    reachability_poll,
    writes,
)
from slinky_operator.virtual_nodes.nodes.model import node_object, plan, reachability, snapshot, wishes
from slinky_operator.virtual_nodes.nodes.model.node_object import WrittenRecord, record_of


def away_is_not_ready(patch: pytest.MonkeyPatch) -> None:
    """A Node is not Ready while Slurm is away: Kubernetes deletes its pods."""
    real = node_object.NodeSpec.conditions

    def conditions(self: node_object.NodeSpec) -> list[dict[str, str]]:
        found = real(self)
        away = self.availability.slurm is False
        return [{**one, "status": "False"} if one["type"] == "Ready" and away else one for one in found]

    patch.setattr(node_object.NodeSpec, "conditions", conditions)


def pods_come_while_slurm_is_away(patch: pytest.MonkeyPatch) -> None:
    """No taint keeps new pods off."""
    patch.setattr(node_object.NodeSpec, "unavailable", lambda self: None)


def nodes_go_with_their_pods(patch: pytest.MonkeyPatch) -> None:
    """A Node is removed whatever is bound to it."""

    async def remove(kube: Any, action: plan.Remove) -> str:
        about = action.obj["metadata"]
        _ = await kube.delete(VIRTUAL_NODES, about["name"], uid=about["uid"])
        return ""

    patch.setattr(writes, "remove", remove)


def nodes_go_at_once(patch: pytest.MonkeyPatch) -> None:
    """A Node is removed before kube-scheduler has seen that it takes no more pods."""
    patch.setattr(execute, "SETTLED_S", 0.0)


def an_empty_answer_counts(patch: pytest.MonkeyPatch) -> None:
    """Slurm shows no partition, so there is none."""

    class Partitions(tuple[Any, ...]):
        __slots__ = ()

        def __bool__(self) -> bool:
            return True

    real = partition_poll.PartitionPoll.known

    def known(self: partition_poll.PartitionPoll, uid: str) -> partition_poll.PartitionAnswer:
        found = real(self, uid)
        return (
            found if found.partitions is None else dataclasses.replace(found, partitions=Partitions(found.partitions))
        )

    patch.setattr(partition_poll.PartitionPoll, "known", known)


def labels_make_a_node_ours(patch: pytest.MonkeyPatch) -> None:
    """What anybody can write on a real Node makes it a virtual one."""

    def believing(obj: Object) -> VirtualNode | None:
        claimed = {**(obj.get("spec") or {}), "providerID": f"slurm://{obj['metadata'].get('name')}"}
        return virtual_node({**obj, "spec": claimed})

    for module in (observation, plan, snapshot):
        patch.setattr(module, "virtual_node", believing)


def cordons_of_others_end(patch: pytest.MonkeyPatch) -> None:
    """The partition is back, so the Node takes pods, even if somebody has cordoned it."""
    real = plan._cordon

    def cordon(now: bool, record: WrittenRecord, *, gone: bool) -> tuple[bool, dict[str, Any]]:
        return real(now, dataclasses.replace(record, cordoned=now), gone=gone)

    patch.setattr(plan, "_cordon", cordon)


def labels_of_others_go(patch: pytest.MonkeyPatch) -> None:
    """Every label of a Node is the operator's."""

    def record(obj: Object) -> WrittenRecord:
        return dataclasses.replace(record_of(obj), labels=frozenset(obj["metadata"].get("labels") or ()))

    patch.setattr(plan, "record_of", record)


def the_last_has_the_host(patch: pytest.MonkeyPatch) -> None:
    """A new Cluster takes the Nodes of an older one."""
    patch.setattr(wishes, "min", max, raising=False)


def everybody_may(patch: pytest.MonkeyPatch) -> None:
    """A Cluster needs no word of the operator's administrator."""
    patch.setattr(controller, "refusal_of", lambda *_: None)


def nodes_of_others_are_overwritten(patch: pytest.MonkeyPatch) -> None:
    """A Node that is there is the one that was to be made."""

    async def create(kube: Any, action: plan.Create) -> bool:
        kube.put(VIRTUAL_NODES, action.body)
        return True

    patch.setattr(writes, "create", create)
    patch.setattr(observation.Observation, "_others", lambda self, key: {})


def partitions_are_written_at_each_change(patch: pytest.MonkeyPatch) -> None:
    """The status is written as often as nodes register."""
    patch.setattr(controller, "PARTITIONS_EVERY_S", 0.0)


def jobs_are_listed_each_time(patch: pytest.MonkeyPatch) -> None:
    """Each question for partitions lists all jobs."""
    patch.setattr(partition_poll.PartitionPoll, "_lacks_jobs", lambda self, slurm: True)


def what_is_not_read_is_none(patch: pytest.MonkeyPatch) -> None:
    """Jobs that were not read do not wait."""

    def of(self: job_facts.PartitionJobs, partition: str) -> PartitionJobCounts:
        return self.counts.get(partition) or PartitionJobCounts(pending=0)

    patch.setattr(job_facts.PartitionJobs, "of", of)


def a_job_counts_once(patch: pytest.MonkeyPatch) -> None:
    """A job waits for the first of its partitions only."""
    real = job_facts.JobCounter.add

    def add(self: job_facts.JobCounter, job: Any) -> None:
        real(self, dataclasses.replace(job, partition=job.partition.partition(",")[0]))

    patch.setattr(job_facts.JobCounter, "add", add)


def standby_renews(patch: pytest.MonkeyPatch) -> None:
    """A process whose writes do not pass the fence says that it has renewed."""
    real = leases.NodeLeases.renew

    async def renew(self: leases.NodeLeases) -> bool:
        went_well = await real(self)
        self._renewed(0.0)
        return went_well

    patch.setattr(leases.NodeLeases, "renew", renew)


def leases_of_real_nodes(patch: pytest.MonkeyPatch) -> None:
    """The Lease of a real Node is renewed, which its kubelet does."""

    def any_node(obj: Object) -> Mapping[str, Any]:
        return obj.get("metadata") or {labels.LABEL_VIRTUAL_NODE: ""}

    patch.setattr(leases, "virtual_node", any_node)


def one_failure_counts(patch: pytest.MonkeyPatch) -> None:
    """A way that was closed once is closed."""
    patch.setattr(reachability_poll.ReachabilityPoll, "_is_closed", property(lambda _: True))


def a_busy_api_server_counts(patch: pytest.MonkeyPatch) -> None:
    """Each failure of the API server is one of the way."""
    patch.setattr(reachability, "NOT_REACHED", "")
