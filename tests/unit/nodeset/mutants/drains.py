"""Mutants that drain, undrain, end jobs and clean up records wrongly."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pytest

from slinky_operator.nodeset.disruption import eviction
from slinky_operator.nodeset.drain import deadline, drain_causes, pod_steps
from slinky_operator.nodeset.execute import delete_pods, end_jobs, slurm_writes
from slinky_operator.nodeset.execute.context import PassContext
from slinky_operator.nodeset.execute.queries import slurm_queries
from slinky_operator.nodeset.model.actions import MarkDown
from slinky_operator.nodeset.planning.plan import plan
from slinky_operator.nodeset.slurm_nodes import drains, records, registration
from slurm_client.models import Job, Node


def resume_instead_of_undrain(patch: pytest.MonkeyPatch) -> None:
    """A drain is taken back by RESUME, which calls a dead node idle."""

    async def undrain(context: PassContext, names: Sequence[str]) -> None:
        slurm: Any = context.reach()
        wanted = drains.to_undrain(names, await slurm_queries.nodes(slurm, names), context.owner)
        if wanted:
            await slurm.client.resume_nodes(wanted)
        await slurm_writes._read_back(context, slurm, names)

    patch.setattr(slurm_writes, "undrain_nodes", undrain)


def foreign_drains_undone(patch: pytest.MonkeyPatch) -> None:
    """Every drain counts as ours."""
    patch.setattr(drains, "is_ours", lambda node: node.is_drain)


def slurms_drain_is_a_strangers(patch: pytest.MonkeyPatch) -> None:
    """What Slurm drains for a bad registration counts as drained by an administrator."""
    patch.setattr(registration, "is_slurms_drain", lambda node: False)


def mended_nodes_stay_drained(patch: pytest.MonkeyPatch) -> None:
    """A node whose slurmd registers well again is left in Slurm's drain."""
    patch.setattr(registration, "is_stale_drain", lambda node: False)


def all_words_are_slurms(patch: pytest.MonkeyPatch) -> None:
    """Every drain that is not ours counts as Slurm's own."""
    patch.setattr(registration, "has_slurms_words", lambda reason: not reason.startswith(drains.PREFIX))


def rejected_nodes_count_as_ready(patch: pytest.MonkeyPatch) -> None:
    """A node whose registration Slurm does not take serves, for the budget of an update."""
    patch.setattr(registration, "is_rejected", lambda node: False)


def rejected_nodes_count_as_empty(patch: pytest.MonkeyPatch) -> None:
    """A node that gets no job for its registration is taken to hold none."""
    real = drains.is_drained
    patch.setattr(drains, "is_drained", lambda node, jobs: registration.is_invalid(node) or real(node, jobs))


def record_of_foreign_drain_deleted(patch: pytest.MonkeyPatch) -> None:
    """A record goes with its pod, no matter who drained the node."""
    real = records.settle

    def settle(orphans: Any, *rest: Any) -> records.RecordCleanup:
        orphans = list(orphans)
        found = real(orphans, *rest)
        return records.RecordCleanup(
            tuple(node.name for node in orphans if node.name not in (*found.down, *found.busy)), found.down, found.busy
        )

    patch.setattr(records, "settle", settle)
    patch.setattr(
        records,
        "to_delete",
        lambda wanted, fresh, jobs, standing, *_: [
            name for name in wanted if fresh.get(name) is not None and name not in standing
        ],
    )


def record_left_behind(patch: pytest.MonkeyPatch) -> None:
    """A name is used again whatever Slurm still sees under it."""
    patch.setattr(records, "why_blocked", lambda *_: None)


def node_cordon_overlooked(patch: pytest.MonkeyPatch) -> None:
    """A cordoned Node means nothing to Slurm."""
    patch.setattr(
        drain_causes, "cordons", lambda _, member: frozenset({drains.Cause.CORDON} if member.pod.cordoned else ())
    )


def drain_of_a_cordoned_node_stays(patch: pytest.MonkeyPatch) -> None:
    """What was drained for its Node is not given back."""
    real = drains.to_undrain

    def to_undrain(wanted: Any, fresh: Mapping[str, Node | None], owner: str) -> list[str]:
        found = real(wanted, fresh, owner)
        return [name for name in found if (node := fresh[name]) is not None and "disk" not in node.reason]

    patch.setattr(drains, "to_undrain", to_undrain)


def deadline_early(patch: pytest.MonkeyPatch) -> None:
    """Jobs get half the time."""
    real = deadline.left

    def left(node: Node, causes: Any, spec: Any, now: Any) -> float | None:
        found = real(node, causes, spec, now)
        return None if found is None else found - spec.timeout.total_seconds() / 2

    patch.setattr(deadline, "left", left)


def cordon_counts(patch: pytest.MonkeyPatch) -> None:
    """The time of a cordon counts towards the time that jobs have when the pod is to go."""
    patch.setattr(drains, "needs_write", lambda node, causes: not node.is_drain)
    patch.setattr(drains, "causes_in", lambda node: drains.REMOVAL if drains.is_ours(node) else frozenset())


def force_instead_of_wait(patch: pytest.MonkeyPatch) -> None:
    """After the deadline the pod goes, whatever the spec says."""
    real = deadline.overdue
    patch.setattr(deadline, "overdue", lambda *given: [dataclasses.replace(one, force=True) for one in real(*given)])


def arrays_ended_whole(patch: pytest.MonkeyPatch) -> None:
    """A job is named by its id, which of an array may be that of all tasks."""
    real = end_jobs._each

    async def each(jobs: Mapping[int, Job], what: str, call: Callable[[Any], Awaitable[None]]) -> list[str]:
        return await real(jobs, what, lambda job: call(job.id))

    patch.setattr(end_jobs, "_each", each)


def force_without_deadline(patch: pytest.MonkeyPatch) -> None:
    """Where no time is given, it is up at once."""
    real = deadline.left

    def left(node: Node, causes: Any, spec: Any, now: Any) -> float | None:
        return -1.0 if spec.timeout is None and drains.is_ours(node) else real(node, causes, spec, now)

    patch.setattr(deadline, "left", left)


def ended_by_our_clock(patch: pytest.MonkeyPatch) -> None:
    """The deadline of a drain is counted by the operator's clock."""

    async def clock(slurm: Any) -> datetime:
        now: datetime = slurm.client.world.now
        return now

    patch.setattr(slurm_queries, "clock", clock)


def all_jobs_requeued_by_down(patch: pytest.MonkeyPatch) -> None:
    """Nodes are marked DOWN to requeue their jobs although others die of it."""
    patch.setattr(deadline, "may_be_downed", lambda found: True)


def protection_lifted_unasked(patch: pytest.MonkeyPatch) -> None:
    """A cordoned pod may be evicted, whatever still runs on it."""
    patch.setattr(eviction, "is_wanted", lambda nodeset, state, causes: not causes)
    patch.setattr(eviction, "may_be_lifted", lambda *given: True)


def given_up_in_silence(patch: pytest.MonkeyPatch) -> None:
    """Jobs that the user has given up are not ended in Slurm."""

    def silent(seen: Any) -> Any:
        made = plan(seen)
        if not made.decisions.skip_drain:
            return made
        return dataclasses.replace(made, actions=tuple(one for one in made.actions if not isinstance(one, MarkDown)))

    patch.setattr("slinky_operator.nodeset.controller.plan", silent)


def marked_down_alive(patch: pytest.MonkeyPatch) -> None:
    """Nodes whose jobs are given up are marked DOWN before their pods have ended."""
    real = pod_steps.delete_all

    def delete_all(snapshot: Any) -> Any:
        return [MarkDown(tuple(pod.node_name for pod in snapshot.pods)), *real(snapshot)]

    async def standing(context: Any, names: Any) -> frozenset[str]:
        return frozenset()

    patch.setattr(pod_steps, "delete_all", delete_all)
    patch.setattr(delete_pods, "standing", standing)
