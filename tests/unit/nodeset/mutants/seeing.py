"""Mutants that check too little: jobs that still hold a node, Slurm's current answer, the owner of a pod or a node."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS
from slinky_operator.nodeset.execute import delete_pods
from slinky_operator.nodeset.execute.context import PassContext
from slinky_operator.nodeset.execute.queries import slurm_queries
from slinky_operator.nodeset.memory import Memory
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.loads import Loads
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods import pod_facts
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.pods.registered_pods import RecordedPods
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.observation.readings import NodeReading, PodReading
from slinky_operator.nodeset.planning import registrations, steady
from slinky_operator.nodeset.planning.registrations import Registrations
from slinky_operator.nodeset.ports import Slurm
from slinky_operator.nodeset.slurm_nodes import drains, identity, records
from slinky_operator.slurm.nodes import node_references
from slinky_operator.slurm.nodes.node_references import References
from slurm_client import errors
from slurm_client.models import Job, Node


def completing_dropped(patch: pytest.MonkeyPatch) -> None:
    """A node whose job is still cleaning up counts as empty."""
    patch.setattr(drains, "NODE_BUSY", drains.NODE_BUSY - {"COMPLETING"})
    patch.setattr(drains, "JOB_HOLDING", drains.JOB_HOLDING - {"COMPLETING"})


def suspended_dropped(patch: pytest.MonkeyPatch) -> None:
    """A suspended job counts as none."""
    patch.setattr(drains, "JOB_IDLE", drains.JOB_IDLE | {"SUSPENDED"})


def stage_out_dropped(patch: pytest.MonkeyPatch) -> None:
    """A job that still writes its data out counts as ended."""
    patch.setattr(drains, "JOB_HOLDING", drains.JOB_HOLDING - {"STAGE_OUT"})


def first_node_of_a_job(patch: pytest.MonkeyPatch) -> None:
    """A job over several nodes counts on the first alone; their state still shows work, unless it is suspended."""
    real = drains.jobs_by_node
    patch.setattr(drains, "jobs_by_node", lambda jobs: real(replace(job, nodes=job.nodes[:1]) for job in jobs))


def any_change_is_load(patch: pytest.MonkeyPatch) -> None:
    """A pass is left out whatever has changed in the records of nodes."""
    patch.setattr(steady, "_is_load", lambda *_: True)


def all_pods_alike(patch: pytest.MonkeyPatch) -> None:
    """A pass is left out whatever has changed in the pods, as long as there are as many."""
    patch.setattr(pod_facts, "are_alike", lambda *_: True)


def loads_stand_still(patch: pytest.MonkeyPatch) -> None:
    """A pass that is left out keeps the counts of the one before."""
    patch.setattr(Loads, "after", lambda loads, _: loads)


def pods_read_once(patch: pytest.MonkeyPatch) -> None:
    """What was read of pods stands as long as there are as many."""
    real = PodReading.again

    def again(before: PodReading, objects: Sequence[Object], nodeset: str, now: datetime) -> PodReading:
        is_kept = before.objects and len(objects) == len(before.objects)
        return before if is_kept else real(before, objects, nodeset, now)

    patch.setattr(PodReading, "again", again)


def records_read_once(patch: pytest.MonkeyPatch) -> None:
    """Records that were once chosen stand as long as Slurm has the same names."""
    real = NodeReading.again

    def again(before: NodeReading, nodes: Mapping[str, Node]) -> NodeReading:
        return before if nodes.keys() == before.all.keys() else real(before, nodes)

    patch.setattr(NodeReading, "again", again)


def fail_open_on_401(patch: pytest.MonkeyPatch) -> None:
    """Where the token is refused, the cache is taken for the answer, and no job is seen."""
    ask_nodes, ask_jobs, ask_everything = slurm_queries.nodes, slurm_queries.jobs, slurm_queries.everything

    async def nodes(slurm: Slurm, names: Collection[str]) -> Mapping[str, Node | None]:
        try:
            return await ask_nodes(slurm, names)
        except errors.Unauthorized:
            return {name: slurm.nodes.get(name) for name in names}

    async def jobs(
        slurm: Slurm, names: Collection[str], *, since: float = -math.inf
    ) -> tuple[Mapping[str, tuple[Job, ...]], References]:
        try:
            return await ask_jobs(slurm, names, since=since)
        except errors.Unauthorized:
            return {}, {}

    async def everything(slurm: Slurm, names: Collection[str], clock: Callable[[], float]) -> slurm_queries.Answer:
        try:
            return await ask_everything(slurm, names, clock)
        except errors.Unauthorized:
            return slurm_queries.Answer(await nodes(slurm, names), {}, nodes_at=clock())

    patch.setattr(slurm_queries, "nodes", nodes)
    patch.setattr(slurm_queries, "jobs", jobs)
    patch.setattr(slurm_queries, "everything", everything)


def no_uid_precondition(patch: pytest.MonkeyPatch) -> None:
    """Pods are deleted by name."""

    async def delete(context: PassContext, pod: Pod, version: str | None, until: float) -> None:
        await context.kube.delete(PODS, pod.name, context.nodeset.namespace, uid=None, resource_version=version)

    patch.setattr(delete_pods, "_delete_one", delete)


def prefix_match(patch: pytest.MonkeyPatch) -> None:
    """NodeSet `a` takes the nodes of `a-b` for its own."""
    patch.setattr(identity, "is_tagged", lambda node, owner: node.is_dynamic and node.extra.startswith(owner))


def stale_cache_trusted(patch: pytest.MonkeyPatch) -> None:
    """The last look before a write goes into the cache."""

    async def nodes(slurm: Slurm, names: Collection[str]) -> Mapping[str, Node | None]:
        return {name: slurm.nodes.get(name) for name in names}

    patch.setattr(slurm_queries, "nodes", nodes)


def unknown_node_is_free(patch: pytest.MonkeyPatch) -> None:
    """A node that Slurm does not know any more may lose its pod."""
    real = pod_state.why_kept

    def why_kept(member: Member, now: datetime) -> str | None:
        return None if member.record is None else real(member, now)

    patch.setattr(pod_state, "why_kept", why_kept)


def no_second_look_at_jobs(patch: pytest.MonkeyPatch) -> None:
    """The jobs are not asked for again before a record is deleted."""

    async def about_records(slurm: Slurm, names: Collection[str]) -> slurm_queries.Answer:
        return slurm_queries.Answer(await slurm_queries.nodes(slurm, names), {})

    patch.setattr(slurm_queries, "about_records", about_records)


def named_nodes_overlooked(patch: pytest.MonkeyPatch) -> None:
    """The record of a node goes with its pod, although jobs name the node."""
    patch.setattr(node_references, "find", lambda *_: {})


def excluded_nodes_overlooked(patch: pytest.MonkeyPatch) -> None:
    """Only the nodes that jobs require count as named."""
    real = node_references.find
    patch.setattr(
        node_references,
        "find",
        lambda jobs, *rest: real([replace(job, excluded_nodes="") for job in jobs], *rest),
    )


def named_nodes_not_looked_up_again(patch: pytest.MonkeyPatch) -> None:
    """What names a node is known from an earlier answer only."""
    real = slurm_queries.about_records

    async def about_records(slurm: Slurm, names: Collection[str]) -> slurm_queries.Answer:
        return replace(await real(slurm, names), named={})

    patch.setattr(slurm_queries, "about_records", about_records)


def jobs_of_a_down_node_not_awaited(patch: pytest.MonkeyPatch) -> None:
    """A node that is DOWN is done with, although the jobs were asked for before that."""
    real = records.settle

    def settle(orphans: Iterable[Node], *rest: Any) -> records.RecordCleanup:
        orphans = list(orphans)
        down = {node.name for node in orphans if node.is_down}
        found = real(orphans, *rest)
        return replace(found, busy=tuple(name for name in found.busy if name not in down))

    patch.setattr(records, "settle", settle)


def names_used_again_unlisted(patch: pytest.MonkeyPatch) -> None:
    """A name is used again although Slurm may have a record of it that its cached nodes lack."""
    patch.setattr(Memory, "unlisted", lambda *given: frozenset())


def writes_to_slurm_not_awaited(patch: pytest.MonkeyPatch) -> None:
    """A pass is made although Slurm's cache may not show what the last one wrote."""
    patch.setattr(Memory, "follow_write", lambda *given: None)


def unreachable_is_ended(patch: pytest.MonkeyPatch) -> None:
    """A pod that is called Failed runs nothing any more, no matter who calls it so."""
    real = pod_facts.has_ended
    patch.setattr(
        pod_facts,
        "has_ended",
        lambda status, deleting: status.get("phase") == "Failed" or real(status, deleting=deleting),
    )


def silence_is_enough(patch: pytest.MonkeyPatch) -> None:
    """A pod whose kubelet has reported no start has none."""
    patch.setattr(
        pod_state,
        "may_delete_without_slurm",
        lambda pod: not pod.registered and pod.slurmd in {Slurmd.NEVER, Slurmd.ENDED},
    )


def registrations_remembered_alone(patch: pytest.MonkeyPatch) -> None:
    """What the status says of pods that have registered is not read: after a start nobody knows it."""
    patch.setattr(RecordedPods, "has", lambda *_: False)


def registrations_of_namesakes(patch: pytest.MonkeyPatch) -> None:
    """A pod has registered if one of its name has, however young it is."""
    real = RecordedPods.has
    patch.setattr(
        RecordedPods,
        "has",
        lambda recorded, pod: real(replace(recorded, until=recorded.until and recorded.until + timedelta(days=1)), pod),
    )


def registrations_of_the_cache(patch: pytest.MonkeyPatch) -> None:
    """Which pods have registered is not read again from the NodeSet before pods are deleted."""

    async def with_registrations(_: Any, __: Any, ___: str, pods: Sequence[Pod]) -> list[Pod]:
        return list(pods)

    patch.setattr(delete_pods, "with_registrations", with_registrations)


def forgotten_registrations_dropped(patch: pytest.MonkeyPatch) -> None:
    """The status names only pods whose nodes Slurm shows."""
    real = registrations.choose

    def choose(snapshot: Snapshot, *rest: Any) -> Registrations:
        shown = tuple(pod for pod in snapshot.pods if not pod.unmarked or pod.node_name in snapshot.slurm.nodes)
        return real(replace(snapshot, pods=shown), *rest)

    patch.setattr(registrations, "choose", choose)
