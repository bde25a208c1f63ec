"""Carries out a plan: in order, side by side where that is safe, and without a rule of its own.

Before anything that cannot be undone Slurm is asked again, and the answer is put to the rules: `podstate.why_kept` for
pods, `records.to_delete` for records, `drain.to_drain` and `drain.to_undrain` for drains. A failed question is never an
answer: the action does not happen, and the failure is handed back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster import Cluster
from slinky_api.v1alpha1.nodeset import NodeSet
from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.expectations import Expectations
from slinky_operator.kube.resources import CONFIGMAPS, NODESETS, PODS
from slinky_operator.nodeset import (
    asking,
    bookkeeping,
    deadline,
    drain,
    ending,
    facts,
    guard,
    places,
    podstate,
    protection,
    records,
    takeover,
    traits,
)
from slinky_operator.nodeset import pod as pods
from slinky_operator.nodeset.actions import (
    Action,
    AddFinalizer,
    CreatePods,
    DeleteClaims,
    DeleteIdlePods,
    DeletePods,
    DeleteRecords,
    Drain,
    DropRevisions,
    EndDrains,
    EnsureGuard,
    LetGo,
    MarkDown,
    MarkRecords,
    MarkRegistered,
    Protect,
    RecordRevision,
    RenumberRevision,
    SetTraits,
    Show,
    TakeOver,
    Undrain,
    Unprotect,
)
from slinky_operator.nodeset.batches import side_by_side
from slinky_operator.nodeset.bookkeeping import NameTaken
from slinky_operator.nodeset.claims import Claim
from slinky_operator.nodeset.facts import Pod
from slinky_operator.nodeset.hosts import Host
from slinky_operator.nodeset.marks import Marks
from slinky_operator.nodeset.places import Place
from slinky_operator.nodeset.ports import Kube, Object, Recorder, Slurm
from slinky_operator.nodeset.reserved import ReservedNames
from slinky_operator.nodeset.revision import restored
from slinky_operator.nodeset.snapshot import Revision
from slurm_client import errors as slurm_errors

FIRST_BATCH: Final = 8
"""Pods created at first; each further batch is twice as large, so that a spec that is refused is refused few times."""

DELETE_BATCH: Final = 250
"""Pods deleted on one answer of Slurm's."""

SINGLY: Final = 8
"""Pods looked up one by one; for more, they are listed."""

LONGEST_LIST: Final = 10
"""Names told in an Event."""


@dataclass(slots=True)
class Outcome:
    """What became of a plan."""

    refusals: list[str] = field(default_factory=list)
    """What the API server or Slurm refused, for the NodeSet's conditions."""
    kept: list[str] = field(default_factory=list)
    """Why pods were not deleted after all."""
    slurm_error: slurm_errors.SlurmError | None = None
    """Why Slurm could not be asked or told."""
    errors: list[Exception] = field(default_factory=list)
    """What is to be tried again."""
    told_slurm: bool = False
    """Whether anything was, or may have been, written to Slurm that its cache does not show yet."""
    acted: bool = False
    """Whether anything was written that the next pass must look at."""


@dataclass(slots=True)
class Actor:
    """Carries out plans for one NodeSet in one pass.

    Parameters
    ----------
    kube
        The API server.
    slurm
        The Cluster's Slurm; None where there is none to reach.
    nodeset, cluster
        The objects the plan is about.
    obj
        The NodeSet as the API server gave it, for Events and finalizers.
    revision
        What new pods are made from.
    claims
        The NodeSet's claims as the cache shows them.
    defaults
        The operator's settings for new pods.
    expectations
        Told of every pod created or deleted.
    guards
        Uids of guards known to exist, by uid of the NodeSet.
    reserved
        Names that NodeSets are just taking.
    recorder
        Takes Events.
    now
        The wall clock.
    """

    kube: Kube
    slurm: Slurm | None
    nodeset: NodeSet
    cluster: Cluster | None
    obj: Object
    revision: Revision
    claims: tuple[Claim, ...]
    owner: str
    defaults: pods.Defaults
    expectations: Expectations
    guards: dict[str, str]
    reserved: ReservedNames
    recorder: Recorder
    now: Callable[[], datetime]
    outcome: Outcome = field(default_factory=Outcome)
    unseen: bool = False
    """Whether the action under way has written to Slurm what its cache does not show yet."""

    async def carry_out(self, actions: Iterable[Action]) -> Outcome:
        """Carry out actions in order; what fails does not keep the others from being done."""
        for action in actions:
            if self.outcome.slurm_error is not None and _asks_slurm(action):
                continue
            try:
                await self._one(action)
            except slurm_errors.SlurmError as error:
                self.outcome.slurm_error = error
            except kube_errors.KubeError as error:
                self.outcome.errors.append(error)
                if isinstance(action, AddFinalizer | TakeOver | EnsureGuard | LetGo | RecordRevision):
                    # What follows builds on these.
                    break
            except NameTaken as error:
                self.outcome.refusals.append(str(error))
                break
            finally:
                self.outcome.told_slurm |= self.unseen
                self.unseen = False
        return self.outcome

    async def _one(self, action: Action) -> None:  # noqa: C901, PLR0912 - one line for each kind
        match action:
            case AddFinalizer():
                await self._set_finalizers(add=True)
            case EnsureGuard():
                await self._ensure_guard()
            case TakeOver():
                await self._take_over()
            case MarkRecords():
                await self._mark_records(action.pods)
            case LetGo():
                await self._let_go()
            case MarkRegistered():
                self._note_marks(await self._marks().registered(action.pods))
            case Protect():
                self._note_marks(await self._marks().protect(action.pods))
            case Unprotect():
                await self._unprotect(action.pods)
            case Show():
                self._note_marks(await self._marks().show(action.showings))
            case Undrain():
                await self._undrain(action.nodes)
            case Drain():
                await self._drain(action)
            case SetTraits():
                await self._set_traits(action.hosts)
            case MarkDown():
                await self._mark_down(action.nodes)
            case EndDrains():
                await self._end_drains(action)
            case DeleteIdlePods():
                await self._delete([(pod, pod.resource_version) for pod in action.pods])
            case DeletePods():
                if action.forced:
                    await self._delete([(pod, None) for pod in action.pods])
                else:
                    await self._delete_checked(action.pods)
            case DeleteRecords():
                await self._delete_records(action.nodes)
            case RecordRevision():
                await bookkeeping.record(self.kube, self.nodeset, self.revision, action)
            case RenumberRevision():
                await bookkeeping.renumber(self.kube, self.nodeset, action)
            case DropRevisions():
                await bookkeeping.drop(self.kube, self.nodeset, action)
            case CreatePods():
                await self._create(action)
            case DeleteClaims():
                await bookkeeping.delete_claims(self.kube, self.nodeset, action)

    # Slurm

    def _reach(self) -> Slurm:
        if self.slurm is None:
            raise slurm_errors.Unreachable("there is no client for this Cluster")
        return self.slurm

    async def _drain(self, action: Drain) -> None:
        slurm, names, reason = self._reach(), action.nodes, action.reason
        wanted = drain.to_drain(names, await asking.nodes(slurm, names), self.owner, action.causes)
        if wanted:
            self.unseen = True
            await slurm.client.drain_nodes(wanted, reason)
            notes = dict(zip(action.nodes, action.notes, strict=False))
            told = _listed([notes.get(name, name) for name in wanted])
            self.recorder.normal(self.obj, "Draining", f"{told}; reason: {reason}")
        self.outcome.acted = True
        await self._read_back(slurm, names)

    async def _undrain(self, names: Sequence[str]) -> None:
        slurm = self._reach()
        wanted = drain.to_undrain(names, await asking.nodes(slurm, names), self.owner)
        if wanted:
            self.unseen = True
            await slurm.client.undrain_nodes(wanted)
            self.recorder.normal(self.obj, "Undrained", f"given back to Slurm: {_listed(wanted)}")
        self.outcome.acted = True
        await self._read_back(slurm, names)

    async def _set_traits(self, hosts: Mapping[str, Host]) -> None:
        slurm = self._reach()
        wanted = traits.to_write(hosts, await asking.nodes(slurm, list(hosts)), self.owner)
        for change, names in wanted.items():
            try:
                written = await self._write_traits(slurm, names, change)
            except slurm_errors.InvalidRequest as error:
                self.outcome.refusals.append(f"{_listed(names)}: {error.message}")
                self.recorder.warning(self.obj, "TraitsRefused", f"{_listed(names)}: {change}: {error.message}")
            else:
                self.outcome.acted |= written
                await self._read_back(slurm, names)

    async def _write_traits(self, slurm: Slurm, names: Sequence[str], change: traits.Change) -> bool:
        """Write what this Slurm takes; gives whether that is anything."""
        if change.topology is not None:
            try:
                await slurm.client.update_nodes(
                    names, features=change.features, active_features=change.active, topology=change.topology
                )
            except slurm_errors.NotSupported as error:
                # So it stays until Slurm is upgraded: it is told, and the features are written without it.
                self.recorder.warning(self.obj, "TopologyNotSupported", f"{_listed(names)}: {error.message}")
            else:
                return True
        if change.features is None:
            return False
        await slurm.client.update_nodes(names, features=change.features, active_features=change.active)
        return True

    async def _mark_down(self, names: Sequence[str]) -> None:
        slurm = self._reach()
        standing = await self._standing(names)
        plain, foreign = records.to_down(names, await asking.nodes(slurm, names), standing, self.owner)
        self.unseen = True
        if plain:
            reason = f"{drain.PREFIX}pod has ended ({self.owner})"
            await slurm.client.update_nodes(plain, state="DOWN", reason=reason)
        if foreign:
            await slurm.client.update_nodes(foreign, state="DOWN")
        if plain or foreign:
            told = _listed([*plain, *foreign])
            self.recorder.warning(
                self.obj, "NodesDown", f"pods have ended with jobs: {told}; Slurm takes the jobs back"
            )
        self.outcome.acted = True
        await self._read_back(slurm, names)

    async def _end_drains(self, action: EndDrains) -> None:
        slurm, spec = self._reach(), self.nodeset.spec.drain
        names = [pod.node_name for pod, _ in action.pods]
        answer = await asking.everything(slurm, names)
        late = deadline.overdue(action.pods, answer.nodes, answer.jobs, spec, self.owner, self.now())
        acting = [one for one in late if one.acts]
        if not acting:
            return
        told = _listed([ending.note(one, answer.jobs.get(one.pod.node_name, ())) for one in acting])
        self.recorder.warning(self.obj, str(Reason.DRAIN_TIMED_OUT), f"{ending.said(spec)}: {told}")
        forced = [(one.pod, None) for one in acting if one.force]
        if forced:
            await self._delete(forced)
        if len(forced) < len(acting):
            self.unseen = self.outcome.acted = True
            self.outcome.kept += await ending.end_jobs(slurm.client, spec.on_timeout, acting)
            await self._read_back(slurm, names)

    async def _delete_records(self, names: Sequence[str]) -> None:
        slurm = self._reach()
        standing = await self._standing(names)
        answer = await asking.about_records(slurm, names)
        wanted = records.to_delete(names, answer.nodes, answer.jobs, standing, self.owner)
        self.unseen = True
        self.outcome.acted = True
        try:
            await slurm.client.delete_nodes(wanted)
        except (slurm_errors.NotFound, slurm_errors.Conflict) as error:
            # What could be deleted is; which ones could not, the error does not tell.
            left = await asking.nodes(slurm, wanted)
            busy = [name for name in wanted if left.get(name) is not None]
            self.outcome.refusals += [f"record of node {name}: {error.message}" for name in busy]
        await self._read_back(slurm, names)

    async def _mark_records(self, wanted: Sequence[Pod]) -> None:
        slurm, names = self._reach(), [pod.node_name for pod in wanted]
        fresh = await asking.nodes(slurm, names)
        namespace = self.nodeset.namespace
        found = [
            pod.node_name
            for pod in wanted
            if (node := fresh.get(pod.node_name)) is not None and takeover.is_named_in(node, namespace, pod.name)
        ]
        if found:
            self.unseen = True
            await slurm.client.update_nodes(found, extra=self.owner)
        self.outcome.acted = True
        await self._read_back(slurm, names)

    async def _read_back(self, slurm: Slurm, names: Sequence[str]) -> None:
        """Bring the cache up to date, so that the next pass does not repeat this one."""
        if len(names) <= asking.SINGLY:
            await slurm.refresh(names)
            self.unseen = False
        else:
            # One question for all; what has changed comes as node events.
            slurm.hurry()

    # Pods

    def _marks(self) -> Marks:
        return Marks(self.kube, self.nodeset, self.expectations, self.now)

    def _note_marks(self, failures: Sequence[Exception]) -> None:
        self.outcome.acted = True
        self.outcome.errors += failures

    async def _unprotect(self, wanted: Sequence[Pod]) -> None:
        if self.nodeset.spec.workload_disruption_protection:
            answer = await asking.everything(self._reach(), [pod.node_name for pod in wanted])
            wanted = [
                pod
                for pod in wanted
                if protection.may_be_lifted(
                    pod, answer.nodes.get(pod.node_name), answer.jobs.get(pod.node_name, ()), self.owner
                )
            ]
        if wanted:
            self._note_marks(await self._marks().unprotect(wanted))

    async def _delete_checked(self, wanted: Sequence[Pod]) -> None:
        slurm = self._reach()
        for start in range(0, len(wanted), DELETE_BATCH):
            batch = wanted[start : start + DELETE_BATCH]
            answer = await asking.everything(slurm, [pod.node_name for pod in batch])
            going: list[tuple[Pod, str | None]] = []
            for pod in batch:
                node = answer.nodes.get(pod.node_name)
                jobs = answer.jobs.get(pod.node_name, ())
                why = podstate.why_kept(pod, node, jobs, self.owner, self.now())
                if why is not None:
                    self.outcome.kept.append(why)
                else:
                    # Without a record the proof is what the pod's own status shows; it must still show it.
                    going.append((pod, pod.resource_version if node is None else None))
            await self._delete(going)

    async def _delete(self, wanted: Sequence[tuple[Pod, str | None]]) -> None:
        """Delete pods of exactly these uids, and of these versions where the version is part of the proof."""
        if not wanted:
            return
        self.outcome.acted = True
        self.expectations.expect_deletions(self.nodeset.uid, [pod.uid for pod, _ in wanted])
        results = await side_by_side(self._delete_one(pod, version) for pod, version in wanted)
        done = []
        for (pod, _), result in zip(wanted, results, strict=True):
            if not isinstance(result, BaseException):
                done.append(pod.name)
                continue
            self.expectations.deletion_failed(pod.uid)
            if isinstance(result, kube_errors.NotFound):
                continue
            if not isinstance(result, Exception):
                raise result
            self.outcome.errors.append(result)
        if done:
            self.recorder.normal(self.obj, "PodsDeleted", f"deleted: {_listed(done)}")

    async def _delete_one(self, pod: Pod, version: str | None) -> None:
        await self.kube.delete(PODS, pod.name, self.nodeset.namespace, uid=pod.uid, resource_version=version)

    async def _create(self, action: CreatePods) -> None:
        wanted, guard_uid = [place for place in action.places if self._take(place)], self.guards[self.nodeset.uid]
        made_from = self._at(action.revision)
        position, size = 0, FIRST_BATCH
        created: list[str] = []
        while position < len(wanted):
            batch = wanted[position : position + size]
            position += len(batch)
            size *= 2
            names = [place.pod for place in batch]
            self.outcome.acted = True
            self.expectations.expect_creations(self.nodeset.uid, self.nodeset.namespace, names)
            results = await side_by_side(
                self._create_one(made_from, place, action.revision, guard_uid) for place in batch
            )
            if not self._created(names, results, created):
                break
        if created:
            self.recorder.normal(self.obj, str(Reason.SCALING_OUT), f"created: {_listed(created)}")

    def _take(self, place: Place) -> bool:
        """Take the name of a node, unless another NodeSet has just taken it: a moment later the cache shows its pod."""
        if self.cluster is None or self.reserved.take(self.cluster.uid, place.node, self.nodeset.uid):
            return True
        self.outcome.kept.append(f"node {place.node} is just being made by another NodeSet")
        return False

    def _created(self, names: Sequence[str], results: Sequence[object], created: list[str]) -> bool:
        """Note what became of a batch; False if no further one is to be tried."""
        go_on = True
        for name, result in zip(names, results, strict=True):
            if isinstance(result, dict):
                self.expectations.created(result)
                created.append(name)
                continue
            self.expectations.creation_failed(self.nodeset.namespace, name)
            if isinstance(result, str):
                self.outcome.refusals.append(result)
            elif isinstance(result, kube_errors.Invalid | kube_errors.Forbidden | kube_errors.BadRequest):
                self.outcome.refusals.append(f"pod {name}: {result.message}")
                self.recorder.warning(self.obj, str(Reason.POD_REFUSED), f"pod {name}: {result.message}")
                self.outcome.errors.append(result)
                go_on = False
            elif isinstance(result, Exception):
                self.outcome.errors.append(result)
                go_on = False
            elif isinstance(result, BaseException):
                raise result
        return go_on

    def _at(self, revision: str) -> NodeSet:
        """The NodeSet as it was at a revision."""
        found = next((one for one in self.revision.recorded if one.hash == revision), None)
        if revision == self.revision.hash or found is None:
            return self.nodeset
        return restored(self.nodeset, found.content)

    async def _create_one(self, nodeset: NodeSet, place: Place, revision: str, guard_uid: str) -> Object | str | None:
        """Create a pod: gives it, or why its name is taken, or None if it is there already and ours."""
        if self.cluster is None:
            raise ValueError("a pod cannot be made without a Cluster")
        body = pods.build(
            nodeset,
            self.cluster,
            place=place,
            revision=revision,
            guard_uid=guard_uid,
            defaults=self.defaults,
        )
        why = await bookkeeping.ensure_claims(self.kube, nodeset, place.pod, self.claims)
        if why is not None:
            return why
        try:
            return await self.kube.create(PODS, body)
        except kube_errors.AlreadyExists:
            name = body["metadata"]["name"]
            there = await self.kube.get(PODS, name, self.nodeset.namespace)
            if (there["metadata"].get("labels") or {}).get(labels.LABEL_NODESET_UID) == self.nodeset.uid:
                return None
            return f"there is a pod {name} that is not ours"

    async def _standing(self, names: Sequence[str]) -> frozenset[str]:
        """Of these nodes, those for which the API server itself has a pod that may be alive."""
        namespace = self.nodeset.namespace
        if len(names) > SINGLY:
            found = (await self.kube.list(PODS, namespace)).items
        else:
            pods_of = [places.pod_name(self.nodeset, name) for name in names]
            results = await side_by_side(self.kube.get(PODS, name, namespace) for name in pods_of)
            found = []
            for result in results:
                if not isinstance(result, BaseException):
                    found.append(result)
                elif not isinstance(result, kube_errors.NotFound):
                    raise result
        alive = [obj for obj in found if facts.read(obj, self.nodeset.name).slurmd is not facts.Slurmd.ENDED]
        return frozenset(map(facts.node_name, alive))

    # The NodeSet itself, and the guard

    async def _set_finalizers(self, *, add: bool) -> None:
        metadata = self.obj["metadata"]
        rest = [one for one in metadata.get("finalizers") or () if one != labels.FINALIZER_NODESET_DRAIN]
        wanted = [*rest, labels.FINALIZER_NODESET_DRAIN] if add else rest
        self.outcome.acted = True
        await self.kube.merge_patch(
            NODESETS,
            self.nodeset.name,
            {"metadata": {"finalizers": wanted}},
            self.nodeset.namespace,
            resource_version=metadata["resourceVersion"],
            uid=self.nodeset.uid,
        )

    async def _take_over(self) -> None:
        """Make another operator's pods ours, those that the API server itself shows."""
        selector = f"!{labels.LABEL_NODESET_UID}"
        found = (await self.kube.list(PODS, self.nodeset.namespace, label_selector=selector)).items
        theirs = [obj for obj in found if takeover.is_theirs(self.nodeset, obj)]
        if not theirs:
            return
        if self.cluster is None:
            raise NameTaken(
                f"pods of another operator wait for Cluster {self.nodeset.spec.cluster_name} to be taken over"
            )
        await self._ensure_guard()
        for obj in theirs:
            await bookkeeping.take_over_claims(self.kube, self.nodeset, obj)
            metadata = obj["metadata"]
            answer = await self.kube.merge_patch(
                PODS,
                metadata["name"],
                takeover.patch(self.nodeset, self.cluster, obj, self.guards[self.nodeset.uid]),
                self.nodeset.namespace,
                resource_version=metadata["resourceVersion"],
                uid=metadata["uid"],
            )
            self.expectations.expect_version(self.nodeset.uid, answer)
        names = [obj["metadata"]["name"] for obj in theirs]
        self.recorder.normal(self.obj, "PodsTakenOver", f"taken over from another operator: {_listed(names)}")

    async def _ensure_guard(self) -> None:
        try:
            obj: dict[str, Any] = await self.kube.create(CONFIGMAPS, guard.build(self.nodeset))
        except kube_errors.AlreadyExists:
            obj = await self.kube.get(CONFIGMAPS, guard.name(self.nodeset), self.nodeset.namespace)
        self.guards[self.nodeset.uid] = obj["metadata"]["uid"]

    async def _let_go(self) -> None:
        """The end, after a look past the cache: a pod whose creation was never answered may not be in it yet."""
        selector = f"{labels.LABEL_NODESET_UID}={self.nodeset.uid}"
        left = (await self.kube.list(PODS, self.nodeset.namespace, label_selector=selector)).items
        if left:
            self.outcome.kept.append(f"pod {left[0]['metadata']['name']} is still there")
            return
        await bookkeeping.delete_all_claims(self.kube, self.nodeset)
        await self._delete_guard()
        await self._set_finalizers(add=False)

    async def _delete_guard(self) -> None:
        name, namespace = guard.name(self.nodeset), self.nodeset.namespace
        try:
            obj = await self.kube.get(CONFIGMAPS, name, namespace)
            if (obj["metadata"].get("labels") or {}).get(labels.LABEL_NODESET_UID) == self.nodeset.uid:
                await self.kube.delete(CONFIGMAPS, name, namespace, uid=obj["metadata"]["uid"])
        except kube_errors.NotFound:
            pass  # gone already: this was begun before, by a pass or a process that did not live to finish it
        self.guards.pop(self.nodeset.uid, None)


def _asks_slurm(action: Action) -> bool:
    """Whether an action is of no use while Slurm does not answer."""
    match action:
        case Undrain() | Drain() | SetTraits() | MarkRecords() | MarkDown() | DeleteRecords() | EndDrains():
            return True
        case DeletePods():
            return not action.forced
        case _:
            return False


def _listed(names: Sequence[str]) -> str:
    """Names for an Event, the first of them where there are many."""
    shown = ", ".join(names[:LONGEST_LIST])
    return shown if len(names) <= LONGEST_LIST else f"{shown} and {len(names) - LONGEST_LIST} more"
