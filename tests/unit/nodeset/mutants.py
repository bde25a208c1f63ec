"""Rules made wrong on purpose, one at a time, by name. The model must notice each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.nodeset import ClaimRetention, NodeSet
from slinky_operator.kube.resources import PODS
from slinky_operator.nodeset import (
    asking,
    availability,
    causing,
    claims,
    controller,
    creation,
    deadline,
    drain,
    facts,
    guard,
    history,
    identity,
    layout,
    matching,
    plan,
    pod_steps,
    podstate,
    protection,
    records,
    removal,
    repairs,
    rollout,
    telling,
    traits,
)
from slinky_operator.nodeset.actions import AddFinalizer
from slinky_operator.nodeset.facts import Pod, Slurmd
from slinky_operator.nodeset.matching import Fit
from slinky_operator.nodeset.means import Means
from slinky_operator.nodeset.memory import Memory
from slinky_operator.nodeset.ports import Slurm
from slinky_operator.nodeset.snapshot import Snapshot
from slinky_operator.nodeset.victims import Rank
from slurm_client import errors
from slurm_client.models import Job, Node
from tests.unit.nodeset.model.harness import Step

Mutant = Callable[[pytest.MonkeyPatch], None]


def completing_dropped(patch: pytest.MonkeyPatch) -> None:
    """A node whose job is still cleaning up counts as empty."""
    patch.setattr(drain, "NODE_BUSY", drain.NODE_BUSY - {"COMPLETING"})
    patch.setattr(drain, "JOB_HOLDING", drain.JOB_HOLDING - {"COMPLETING"})


def suspended_dropped(patch: pytest.MonkeyPatch) -> None:
    """A suspended job counts as none."""
    patch.setattr(drain, "JOB_IDLE", drain.JOB_IDLE | {"SUSPENDED"})


def stage_out_dropped(patch: pytest.MonkeyPatch) -> None:
    """A job that still writes its data out counts as ended."""
    patch.setattr(drain, "JOB_HOLDING", drain.JOB_HOLDING - {"STAGE_OUT"})


def lost_guard_overlooked(patch: pytest.MonkeyPatch) -> None:
    """Pods that have lost their guard stay without it."""
    patch.setattr(guard, "without", lambda _pods, _guard_uid: ())


def ended_by_our_clock(patch: pytest.MonkeyPatch) -> None:
    """The deadline of a drain is counted by the operator's clock."""

    async def clock(slurm: Any) -> datetime:
        now: datetime = slurm.client.world.now
        return now

    patch.setattr(asking, "clock", clock)


def fail_open_on_401(patch: pytest.MonkeyPatch) -> None:
    """Where the token is refused, the cache is taken for the answer, and no job is seen."""
    ask_nodes, ask_jobs, ask_everything = asking.nodes, asking.jobs, asking.everything

    async def nodes(slurm: Slurm, names: Collection[str]) -> Mapping[str, Node | None]:
        try:
            return await ask_nodes(slurm, names)
        except errors.Unauthorized:
            return {name: slurm.nodes.get(name) for name in names}

    async def jobs(slurm: Slurm, *, fresh: bool = False) -> Mapping[str, tuple[Job, ...]]:
        try:
            return await ask_jobs(slurm, fresh=fresh)
        except errors.Unauthorized:
            return {}

    async def everything(slurm: Slurm, names: Collection[str]) -> asking.Answer:
        try:
            return await ask_everything(slurm, names)
        except errors.Unauthorized:
            return asking.Answer(await nodes(slurm, names), {})

    patch.setattr(asking, "nodes", nodes)
    patch.setattr(asking, "jobs", jobs)
    patch.setattr(asking, "everything", everything)


def no_uid_precondition(patch: pytest.MonkeyPatch) -> None:
    """Pods are deleted by name."""

    async def delete(means: Means, pod: Pod, version: str | None) -> None:
        await means.kube.delete(PODS, pod.name, means.nodeset.namespace, uid=None, resource_version=version)

    patch.setattr(removal, "_delete_one", delete)


def prefix_match(patch: pytest.MonkeyPatch) -> None:
    """NodeSet `a` takes the nodes of `a-b` for its own."""
    patch.setattr(identity, "is_tagged", lambda node, owner: node.is_dynamic and node.extra.startswith(owner))


def stale_cache_trusted(patch: pytest.MonkeyPatch) -> None:
    """The last look before a write goes into the cache."""

    async def nodes(slurm: Slurm, names: Collection[str]) -> Mapping[str, Node | None]:
        return {name: slurm.nodes.get(name) for name in names}

    patch.setattr(asking, "nodes", nodes)


def resume_instead_of_undrain(patch: pytest.MonkeyPatch) -> None:
    """A drain is taken back by RESUME, which calls a dead node idle."""

    async def undrain(means: Means, names: Sequence[str]) -> None:
        slurm: Any = means.reach()
        wanted = drain.to_undrain(names, await asking.nodes(slurm, names), means.owner)
        if wanted:
            await slurm.client.resume_nodes(wanted)
        await telling._read_back(means, slurm, names)

    patch.setattr(telling, "undrain_nodes", undrain)


def foreign_drains_undone(patch: pytest.MonkeyPatch) -> None:
    """Every drain counts as ours."""
    patch.setattr(drain, "is_ours", lambda node: node.is_drain)


def record_of_foreign_drain_deleted(patch: pytest.MonkeyPatch) -> None:
    """A record goes with its pod whoever drained the node."""
    real = records.settle

    def settle(orphans: Any, jobs: Any, ended: Any) -> records.Settling:
        orphans = list(orphans)
        found = real(orphans, jobs, ended)
        return records.Settling(
            tuple(node.name for node in orphans if node.name not in (*found.down, *found.busy)), found.down, found.busy
        )

    patch.setattr(records, "settle", settle)
    patch.setattr(
        records,
        "to_delete",
        lambda wanted, fresh, jobs, standing, owner: [
            name for name in wanted if fresh.get(name) is not None and name not in standing
        ],
    )


def unknown_node_is_free(patch: pytest.MonkeyPatch) -> None:
    """A node that Slurm does not know any more may lose its pod."""
    real = podstate.why_kept

    def why_kept(pod: Pod, node: Node | None, *rest: Any, **more: Any) -> str | None:
        return None if node is None else real(pod, node, *rest, **more)

    patch.setattr(podstate, "why_kept", why_kept)


def budget_ignored(patch: pytest.MonkeyPatch) -> None:
    """An update takes all pods at once."""

    def choose(
        outdated: Any,
        *,
        allowed: int,
        unavailable: int,
        begun: Any,
        known: Any,
        healthy: Any,
        rank: Callable[[Pod], Rank],
    ) -> frozenset[str]:
        return frozenset(pod.name for pod in outdated)

    patch.setattr(rollout, "choose", choose)


def deadline_early(patch: pytest.MonkeyPatch) -> None:
    """Jobs get half the time."""
    real = deadline.left

    def left(node: Node, causes: Any, spec: Any, now: Any) -> float | None:
        found = real(node, causes, spec, now)
        return None if found is None else found - spec.timeout.total_seconds() / 2

    patch.setattr(deadline, "left", left)


def cordon_counts(patch: pytest.MonkeyPatch) -> None:
    """The time of a cordon counts towards the time that jobs have when the pod is to go."""
    patch.setattr(drain, "needs_write", lambda node, causes: not node.is_drain)
    patch.setattr(drain, "causes_in", lambda node: drain.REMOVAL if drain.is_ours(node) else frozenset())


def all_jobs_requeued_by_down(patch: pytest.MonkeyPatch) -> None:
    """Nodes are marked DOWN to requeue their jobs although others die of it."""
    patch.setattr(deadline, "may_be_downed", lambda found: True)


def force_instead_of_wait(patch: pytest.MonkeyPatch) -> None:
    """After the deadline the pod goes, whatever the spec says."""
    real = deadline.overdue
    patch.setattr(deadline, "overdue", lambda *given: [dataclasses.replace(one, force=True) for one in real(*given)])


def broken_pods_not_counted(patch: pytest.MonkeyPatch) -> None:
    """New pods that do not come up take nothing from the budget."""
    real = rollout.choose

    def choose(outdated: Any, *, unavailable: int, begun: Collection[str], **rest: Any) -> frozenset[str]:
        return real(outdated, unavailable=len(begun), begun=begun, **rest)

    patch.setattr(rollout, "choose", choose)


def partition_ignored(patch: pytest.MonkeyPatch) -> None:
    """An update reaches the pods below the partition."""
    patch.setattr(rollout, "target", lambda place, nodeset, revision: revision.hash)


def carried_revisions_dropped(patch: pytest.MonkeyPatch) -> None:
    """Revisions go although pods carry them."""
    real = history.upkeep

    def upkeep(revision: str, recorded: Any, *, current: str, carried: Collection[str], limit: int) -> history.Upkeep:
        return real(revision, recorded, current=revision, carried=(), limit=limit)

    patch.setattr(history, "upkeep", upkeep)


def revision_not_recorded(patch: pytest.MonkeyPatch) -> None:
    """Pods are made of a revision that is written down nowhere."""
    real = history.upkeep

    def upkeep(revision: str, recorded: Any, **rest: Any) -> history.Upkeep:
        return dataclasses.replace(real(revision, recorded, **rest), record=None)

    patch.setattr(history, "upkeep", upkeep)


def protection_lifted_unasked(patch: pytest.MonkeyPatch) -> None:
    """A cordoned pod may be evicted, whatever still runs on it."""
    patch.setattr(protection, "is_wanted", lambda nodeset, state, causes: not causes)
    patch.setattr(protection, "may_be_lifted", lambda *given: True)


def claims_of_replaced_pods_deleted(patch: pytest.MonkeyPatch) -> None:
    """A claim goes with its pod, whatever the pod went for."""
    real = claims.left_over
    patch.setattr(claims, "left_over", lambda nodeset, found, standing, wanted: real(nodeset, found, standing, ()))


def foreign_claims_used(patch: pytest.MonkeyPatch) -> None:
    """A claim of the right name is used whoever made it."""
    patch.setattr(claims, "is_ours", lambda nodeset, obj: True)


def claims_always_deleted(patch: pytest.MonkeyPatch) -> None:
    """Claims go with a scale-in whatever the spec says."""
    real = pod_steps.claims_to_delete
    policy = ClaimRetention(when_scaled="Delete")

    def to_delete(snapshot: Snapshot, *rest: Any) -> Any:
        nodeset = snapshot.nodeset
        spec = nodeset.spec.model_copy(update={"persistent_volume_claim_retention_policy": policy})
        other = nodeset.model_copy(update={"spec": spec})
        return real(dataclasses.replace(snapshot, nodeset=other), *rest)

    patch.setattr(pod_steps, "claims_to_delete", to_delete)


def record_left_behind(patch: pytest.MonkeyPatch) -> None:
    """A name is used again whatever Slurm still sees under it."""
    patch.setattr(records, "why_blocked", lambda node, jobs, owner: None)


def repairs_without_budget(patch: pytest.MonkeyPatch) -> None:
    """Every pod that does not register in time is made anew at once."""

    def choose(snapshot: Any, waits: Collection[repairs.Wait], live: Any, **rest: Any) -> frozenset[str]:
        return frozenset(one.pod.name for one in waits if one.is_over(rest["now"]))

    patch.setattr(repairs, "choose", choose)


def forgotten_pods_repaired(patch: pytest.MonkeyPatch) -> None:
    """A pod that had registered is made anew when Slurm does not know it, whatever it holds."""
    meant, why_kept = repairs.may_be_meant, podstate.why_kept

    def unregistered(pod: Pod) -> Pod:
        return dataclasses.replace(pod, registered=False)

    def kept(pod: Pod, node: Node | None, jobs: Any, *rest: Any, **more: Any) -> str | None:
        return why_kept(unregistered(pod), node, () if node is None else jobs, *rest, **more)

    patch.setattr(repairs, "may_be_meant", lambda pod, node, owner: meant(unregistered(pod), node, owner))
    patch.setattr(repairs.Wait, "is_over", lambda self, now: self.until <= now)
    patch.setattr(podstate, "why_kept", kept)


_LATE: tuple[Step, ...] = (("time", 3), ("time", 2), ("pass", 0), ("pass", 0), ("pass", 0), ("poll", 0))


def node_cordon_overlooked(patch: pytest.MonkeyPatch) -> None:
    """A cordoned Node means nothing to Slurm."""
    patch.setattr(causing, "cordons", lambda snapshot, pod: frozenset({drain.Cause.CORDON} if pod.cordoned else ()))


def drain_of_a_cordoned_node_stays(patch: pytest.MonkeyPatch) -> None:
    """What was drained for its Node is not given back."""
    real = drain.to_undrain

    def to_undrain(wanted: Any, fresh: Mapping[str, Node | None], owner: str) -> list[str]:
        found = real(wanted, fresh, owner)
        return [name for name in found if (node := fresh[name]) is not None and "disk" not in node.reason]

    patch.setattr(drain, "to_undrain", to_undrain)


def other_features_dropped(patch: pytest.MonkeyPatch) -> None:
    """A node has the features of its Node and no others."""
    real = traits.missing

    def missing(node: Node, host: Any) -> traits.Change | None:
        change = real(node, host)
        if change is None or change.features is None:
            return change
        ours = tuple(word for word in change.features if word.startswith(traits.PREFIX))
        return traits.Change(ours, ours, change.topology)

    patch.setattr(traits, "missing", missing)


def features_written_once(patch: pytest.MonkeyPatch) -> None:
    """A node that has features of its Node keeps them, whatever the Node says later."""
    real = traits.missing
    patch.setattr(traits, "missing", lambda node, host: None if len(node.features) > 1 else real(node, host))


def mismatch_overlooked(patch: pytest.MonkeyPatch) -> None:
    """A pod stays on its Node whatever becomes of it."""
    real = layout.lay_out

    def lay_out(snapshot: Any, live: Any) -> layout.Layout:
        found = real(snapshot, live)
        return dataclasses.replace(found, misplaced=(), staying=(*found.staying, *found.misplaced))

    patch.setattr(plan, "lay_out", lay_out)


def cordoned_hosts_filled(patch: pytest.MonkeyPatch) -> None:
    """A cordon keeps no pod away."""
    real = matching.fit
    patch.setattr(matching, "fit", lambda spec, host: Fit.RUN if real(spec, host) is not Fit.NO else Fit.NO)


def limit_ignored(patch: pytest.MonkeyPatch) -> None:
    """Every matching Node gets a pod, whatever number was asked for."""
    real = layout.lay_out

    def lay_out(snapshot: Any, live: Any) -> layout.Layout:
        found = real(snapshot, live)
        return dataclasses.replace(found, missing=len(found.free)) if snapshot.hosts and found.free else found

    patch.setattr(plan, "lay_out", lay_out)


def no_second_look_at_jobs(patch: pytest.MonkeyPatch) -> None:
    """The jobs are not asked for again before a record is deleted."""

    async def about_records(slurm: Slurm, names: Collection[str]) -> asking.Answer:
        return asking.Answer(await asking.nodes(slurm, names), {})

    patch.setattr(asking, "about_records", about_records)


def writes_to_slurm_not_awaited(patch: pytest.MonkeyPatch) -> None:
    """A pass is made although Slurm's cache may not show what the last one wrote."""
    patch.setattr(Memory, "must_wait_for", lambda *given: False)


def finalizer_after_the_pods(patch: pytest.MonkeyPatch) -> None:
    """Pods are made before the NodeSet is kept until they are gone."""
    real = plan.plan

    def late(snapshot: Snapshot, now: datetime) -> plan.Plan:
        metadata = snapshot.nodeset.metadata
        if snapshot.nodeset.deleting or labels.FINALIZER_NODESET_DRAIN in metadata.finalizers:
            return real(snapshot, now)
        kept = metadata.model_copy(update={"finalizers": (labels.FINALIZER_NODESET_DRAIN,)})
        other = snapshot.nodeset.model_copy(update={"metadata": kept})
        made = real(dataclasses.replace(snapshot, nodeset=other), now)
        return dataclasses.replace(made, actions=(*made.actions, AddFinalizer()))

    patch.setattr(controller, "plan", late)


def force_without_deadline(patch: pytest.MonkeyPatch) -> None:
    """Where no time is given, it is up at once."""
    real = deadline.left

    def left(node: Node, causes: Any, spec: Any, now: Any) -> float | None:
        return -1.0 if spec.timeout is None and drain.is_ours(node) else real(node, causes, spec, now)

    patch.setattr(deadline, "left", left)


def guard_of_the_nodeset(patch: pytest.MonkeyPatch) -> None:
    """The guard belongs to the NodeSet, and goes with it."""
    real = guard.build

    def build(nodeset: NodeSet) -> dict[str, Any]:
        made = real(nodeset)
        made["metadata"]["ownerReferences"] = guard.owners(nodeset, "")[:1]
        return made

    patch.setattr(guard, "build", build)


def on_delete_ignored(patch: pytest.MonkeyPatch) -> None:
    """An update takes pods that somebody is to delete."""
    real = rollout.outdated

    def outdated(pods: Any, nodeset: NodeSet, *rest: Any) -> list[Pod]:
        strategy = nodeset.spec.update_strategy.model_copy(update={"type": "RollingUpdate"})
        spec = nodeset.spec.model_copy(update={"update_strategy": strategy})
        return real(pods, nodeset.model_copy(update={"spec": spec}), *rest)

    patch.setattr(rollout, "outdated", outdated)


def impatient(patch: pytest.MonkeyPatch) -> None:
    """A pod that is Ready counts at once."""
    patch.setattr(availability, "has_come_up", lambda pod, snapshot, now: availability.is_ready(pod, snapshot))


def one_more_than_the_budget(patch: pytest.MonkeyPatch) -> None:
    """An update takes one more than it may."""
    real = rollout.budget
    patch.setattr(rollout, "budget", lambda nodeset, desired: real(nodeset, desired) + 1)


def neighbours_overlooked(patch: pytest.MonkeyPatch) -> None:
    """The name of another NodeSet's node is taken."""
    patch.setattr(creation, "_whose", lambda place, snapshot: None)


def padding_overlooked(patch: pytest.MonkeyPatch) -> None:
    """An ordinal is another one when it is written with other digits."""
    real = creation.choose

    def choose(snapshot: Snapshot, *rest: Any) -> creation.Creation:
        pods = tuple(dataclasses.replace(pod, ordinal=None) if pod.deleting else pod for pod in snapshot.pods)
        return real(dataclasses.replace(snapshot, pods=pods), *rest)

    patch.setattr(creation, "choose", choose)


def unreachable_is_ended(patch: pytest.MonkeyPatch) -> None:
    """A pod that is called Failed runs nothing any more, whoever calls it so."""
    real = facts.has_ended
    patch.setattr(
        facts, "has_ended", lambda status, deleting: status.get("phase") == "Failed" or real(status, deleting=deleting)
    )


def silence_is_enough(patch: pytest.MonkeyPatch) -> None:
    """A pod of which no kubelet has told a start has none."""
    patch.setattr(
        podstate, "is_free_blindly", lambda pod: not pod.registered and pod.slurmd in {Slurmd.NEVER, Slurmd.ENDED}
    )


_SHRINK: tuple[Step, ...] = (("scale", 0), ("scale", 1), ("see_all", 0), ("pass", 0), ("poll", 0))

_SILENT: tuple[Step, ...] = (
    *(("user_deletes_pod", 0), ("user_deletes_pod", 1), ("kubelet_ends", 0), ("stick", 6)),
    *(("come_up", 0), ("see_all", 0), ("pass", 0), ("pass", 0), ("poll", 0), ("poll", 0), ("time", 3)),
)

MUTANTS: Mapping[str, tuple[Mutant, tuple[Step, ...]]] = {
    "COMPLETING dropped": (completing_dropped, (*_SHRINK, ("job_starts", 1), ("job_ends", 1))),
    "SUSPENDED dropped": (suspended_dropped, (*_SHRINK, ("job_starts", 1), ("job_suspends", 0))),
    "STAGE_OUT dropped": (stage_out_dropped, (*_SHRINK, ("job_starts", 1), ("job_ends", 2))),
    "fail open on 401": (
        fail_open_on_401,
        (
            *(("scale", 0), ("see_all", 0), ("pass", 0), ("pass", 1), ("fault", 0), ("heal", 0)),
            *(("job_starts", 1), ("job_suspends", 0), ("job_suspends", 1)),
        ),
    ),
    "no uid precondition": (no_uid_precondition, (*_SHRINK, ("usurp", 0), ("usurp", 1))),
    "prefix match": (prefix_match, ()),
    "stale cache trusted": (stale_cache_trusted, (*_SHRINK, ("admin_drains", 0), ("job_starts", 1))),
    "RESUME instead of UNDRAIN": (
        resume_instead_of_undrain,
        (("cordon", 0), ("cordon", 1), ("node_lost", 0), ("see_all", 0), ("pass", 0), ("poll", 0)),
    ),
    "foreign drains undone": (foreign_drains_undone, (("admin_drains", 1), ("poll", 0), ("pass", 0))),
    "record of a foreign drain deleted": (
        record_of_foreign_drain_deleted,
        (*_SHRINK, ("admin_drains", 1), ("kubelet_ends", 0)),
    ),
    "unknown node is free": (unknown_node_is_free, (*_SHRINK, ("job_starts", 1), ("slurm_forgets", 0))),
    "budget ignored": (budget_ignored, (("edit", 0), ("see_all", 0), ("pass", 0), ("poll", 0), ("job_starts", 0))),
    "half the deadline": (deadline_early, (*_SHRINK, *_LATE, ("policy", 2), ("policy", 3), ("job_starts", 1))),
    "cordons count": (cordon_counts, (*_LATE, ("cordon", 0), ("cordon", 1), ("policy", 2), ("job_starts", 1))),
    "all jobs requeued by DOWN": (
        all_jobs_requeued_by_down,
        (
            ("scale", 0),
            ("see_all", 0),
            ("policy", 1),
            ("time", 3),
            ("pass", 0),
            ("pass", 0),
            ("poll", 0),
            *(("job_starts", number) for number in (1, 4, 5, 6, 7)),
        ),
    ),
    "force instead of wait": (force_instead_of_wait, (*_SHRINK, *_LATE, ("policy", 0), ("job_starts", 1))),
    "Node's cordon overlooked": (node_cordon_overlooked, (("cordon_host", 0), ("cordon_host", 1))),
    "drain of a cordoned Node stays": (
        drain_of_a_cordoned_node_stays,
        (("cordon_host", 0), ("cordon_host", 1), ("see_all", 0), ("pass", 0), ("poll", 0)),
    ),
    "broken pods not counted": (
        broken_pods_not_counted,
        (("edit", 2), ("come_up", 0), ("kubelet_ends", 0), ("see_all", 0), ("pass", 0), ("poll", 0)),
    ),
    "partition ignored": (partition_ignored, (("hold_back", 2), ("edit", 0), ("see_all", 0), ("pass", 0))),
    "carried revisions dropped": (carried_revisions_dropped, (("edit", 0), ("edit", 1), ("see_all", 0), ("pass", 0))),
    "revision not recorded": (revision_not_recorded, (("edit", 0), ("see_all", 0), ("pass", 0))),
    "protection lifted unasked": (
        protection_lifted_unasked,
        (("cordon", 0), ("see_all", 0), ("pass", 0), ("poll", 0), ("job_starts", 0), ("kubectl_drain", 0)),
    ),
    "claims of replaced pods deleted": (
        claims_of_replaced_pods_deleted,
        (("edit", 0), ("edit", 1), ("see_all", 0), ("pass", 0), ("poll", 0), ("kubelet_ends", 0)),
    ),
    "foreign claims used": (foreign_claims_used, (("scale", 0), ("scale", 3), ("squat", 2), ("see_all", 0))),
    "lost guard overlooked": (lost_guard_overlooked, (("user_deletes_guard", 0),)),
    "ended by our clock": (
        ended_by_our_clock,
        (*_SHRINK, ("slurm_clock", 1), ("policy", 2), ("policy", 3), ("job_starts", 1)),
    ),
    "claims always deleted": (
        claims_always_deleted,
        (*_SHRINK, ("retain", 1), ("retain", 5), ("kubelet_ends", 0)),
    ),
    "other features dropped": (other_features_dropped, (("annotate_host", 1), ("see_all", 0), ("pass", 0))),
    "features written once": (
        features_written_once,
        (("annotate_host", 1), ("annotate_host", 2), ("see_all", 0), ("pass", 0)),
    ),
    "mismatch overlooked": (mismatch_overlooked, (("label_host", 0), ("label_host", 1))),
    "cordoned Nodes filled": (cordoned_hosts_filled, (("cordon_host", 0), ("user_deletes_pod", 1))),
    "limit ignored": (limit_ignored, (("scale", 1), ("scale", 2))),
    "repairs without a budget": (
        repairs_without_budget,
        _SILENT,
    ),
    "forgotten pods repaired": (
        forgotten_pods_repaired,
        (("job_starts", 1), ("slurm_forgets", 0), ("poll", 0), ("time", 4), ("see_all", 0), ("pass", 0)),
    ),
    "no second look at jobs": (no_second_look_at_jobs, _SHRINK),
    "writes to Slurm not awaited": (
        writes_to_slurm_not_awaited,
        (("edit", 0), ("pass", 0), ("pass", 0), ("see_all", 0), ("lose_slurm", 0)),
    ),
    "finalizer after the pods": (
        finalizer_after_the_pods,
        (("finalizer_taken", 0), ("scale", 0), ("scale", 3), ("see_all", 0), ("pass", 0), ("kubelet_ends", 0)),
    ),
    "force without a deadline": (force_without_deadline, (*_SHRINK, ("policy", 6), ("job_starts", 1))),
    "guard of the NodeSet": (guard_of_the_nodeset, (("delete", 1), ("collect", 0), ("job_starts", 0))),
    "OnDelete ignored": (on_delete_ignored, (("hold_back", 7), ("edit", 0), ("see_all", 0), ("pass", 0))),
    "impatient": (impatient, (("patience", 2), ("edit", 0), ("see_all", 0), ("pass", 0))),
    "one more than the budget": (
        one_more_than_the_budget,
        (("edit", 0), ("see_all", 0), ("pass", 0), ("poll", 0), ("job_starts", 0)),
    ),
    "neighbours overlooked": (neighbours_overlooked, (("scale", 3), ("neighbour_comes", 2))),
    "padding overlooked": (padding_overlooked, (("pad", 0), ("pad", 1), ("user_deletes_pod", 0), ("see_all", 0))),
    "unreachable is ended": (
        unreachable_is_ended,
        (("host_goes", 0), ("host_goes", 1), ("pods_collected", 0), ("job_starts", 0), ("see_all", 0), ("pass", 0)),
    ),
    "silence is enough": (silence_is_enough, (*_SHRINK, ("fault", 0))),
    "record left behind": (
        record_left_behind,
        (("job_starts", 1), ("user_deletes_pod", 0), ("kubelet_ends", 0), ("see_all", 0), ("pass", 0), ("poll", 0)),
    ),
}
"""Each with steps that make its mistake show more often."""


def _steps(*words: str) -> tuple[Step, ...]:
    """Steps, each a name and a number where that is not 0."""
    found = [word.partition(":") for part in words for word in part.split()]
    return tuple((name, int(number or 0)) for name, _, number in found)


_ONE_LESS = _steps("scale:2 see_all pass poll pass kubelet_ends kubelet_ends see_all pass poll see_all pass")
"""a-2 is drained and deleted, and its record and its claim too."""

_ONE_ANEW = _steps("user_deletes_pod kubelet_ends kubelet_ends see_all pass poll pass see_all")
"""a-0 is deleted and made again; the controller has seen it."""

BEGINNINGS: Mapping[str, Sequence[Step]] = {
    "all jobs requeued by DOWN": _steps(
        # A job that can be put back into the queue and one that cannot, both on a-1.
        "policy:1 job_starts:5 job_starts:7 job_starts:7 job_starts:4",
        "scale:0 see_all poll pass pass time:3 time:2 poll pass pass",
    ),
    "foreign claims used": (*_ONE_LESS, *_steps("claims_go see_all squat:2 scale:3 see_all pass pass")),
    "neighbours overlooked": (*_ONE_LESS, *_steps("time:3 neighbour_comes:2 scale:3 see_all poll pass pass")),
    "no second look at jobs": _steps(
        "scale:2 see_all pass",
        "job_starts job_suspends user_deletes_pod kubelet_ends kubelet_ends see_all pass",
    ),
    "silence is enough": (
        *_ONE_ANEW,
        *_steps("schedule see_all start register job_starts fault poll scale:0 see_all pass"),
    ),
    "impatient": (
        *_steps("patience:2"),
        *_ONE_ANEW,
        *_steps("come_up see_all poll pass see_all edit see_all pass pass"),
    ),
}
"""How histories begin for those whose mistake shows only after a certain course of things."""

ON_HOSTS: Collection[str] = {
    "mismatch overlooked",
    "cordoned Nodes filled",
    "limit ignored",
}
"""Those whose mistake shows only with one pod on each Node."""
