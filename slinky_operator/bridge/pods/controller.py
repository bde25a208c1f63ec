"""One pass over a group of pods: observe, plan, carry out. Rules are in `plan`.

Passes are over groups, not pods: their keys have a namespace and a group (`membership.GroupKey`). Of writes only the
creation of a SlurmJob is waited for in the cache: which number the next one has depends on it. An eviction and an end
name what they are about, and the patch of a pod that has changed fails.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from typing_extensions import override

from slinky_api import labels
from slinky_api.v1alpha1.slurmjob.kind import SlurmJobStatus
from slinky_operator.bridge.pods import claim_writes
from slinky_operator.bridge.pods.evictions import AGAIN_S, Evictions
from slinky_operator.bridge.pods.model import lift, slurmjobs
from slinky_operator.bridge.pods.model.devices import Allocate
from slinky_operator.bridge.pods.model.membership import GroupKey, single
from slinky_operator.bridge.pods.model.plan import plan
from slinky_operator.bridge.pods.model.snapshot import GroupJob, Snapshot
from slinky_operator.bridge.pods.model.steps import CHUNK, Announce, Create, DeleteJob, End, Evict, Lift, Plan, Tell
from slinky_operator.bridge.pods.observation import GROUP, UID, Apart, NotShown, Observer
from slinky_operator.kube import errors
from slinky_operator.kube.cache.expectations import Expectations
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube, Recorder
from slinky_operator.kube.resources import BRIDGE_PODS, SLURMJOBS, Resource
from slinky_operator.reconcile.batches import gather_limited
from slinky_operator.reconcile.reconciler import Postponed, Reconciler
from slinky_operator.reconcile.text import cut
from slinky_operator.reconcile.writes.children import NameTaken, create_or_adopt
from slinky_operator.reconcile.writes.parts import stored_status
from slinky_operator.runtime.controller import Result

OVERTAKEN_S: Final = 0.2
"""Seconds until the pass after one that found an object changed."""

NOT_SHOWN_S: Final = 10.0
"""Seconds until the next look for a SlurmJob that the cache has no room for."""

LATER_S: Final = 1.0
"""Seconds until the pass after one that found a job of the group which the cache does not show yet."""

TAKEN_S: Final = 30.0
"""Seconds until the next look for a name that somebody else has taken."""

DISRUPTION_S: Final = 10.0
"""Seconds until an eviction that a disruption budget forbids is tried again."""

BUDGET: Final = timedelta(minutes=10)
"""For so long a disruption budget may keep a pod whose job Slurm has ended: then it is deleted."""

LARGE: Final = 16
"""Pods of a group from which on its events are batched."""

PODS_A_SECOND: Final = 500
"""How many pods such a group may have for each second for which they are."""

UNSEEN_S: Final = 60.0
"""A cache may be behind by so much: what has waited for less has had no job before that it does not show."""

MANAGER: Final = "slurm-operator-bridge"
"""Field manager of the condition of pods: kubelets and schedulers write the others."""


class BridgeKube(Kube, Protocol):
    """The calls that passes over groups of pods make."""

    async def evict(
        self, resource: Resource, name: str, namespace: str, *, uid: str, resource_version: str | None = None
    ) -> Object:
        """Evict a pod."""
        ...


class GroupReconciler(Reconciler):
    """Reconciles groups of pods that Slurm places.

    Parameters
    ----------
    kube, recorder
        The API server, and Events.
    pods, jobs
        Caches of pods and SlurmJobs.
    observer
        Builds snapshots.
    evictions
        How many pods are evicted.
    clock, now
        Monotonic seconds, and the wall clock.
    """

    def __init__(
        self,
        kube: BridgeKube,
        recorder: Recorder,
        pods: Store,
        jobs: Store,
        observer: Observer,
        *,
        evictions: Evictions | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(BRIDGE_PODS, pods, kube, recorder, clock=clock, now=now)
        self._kube = kube
        self._recorder = recorder
        self._observer = observer
        self._now = now
        self._evictions = evictions or Evictions(clock)
        self.expectations = Expectations(jobs, clock=clock)
        """SlurmJobs that were made, by `<namespace>/<group>`."""
        self._wakes: list[Callable[[Key], None]] = []

    def subscribe(self, wake: Callable[[Key], None]) -> None:
        """Register what is called with the keys of groups that another pass has found."""
        self._wakes.append(wake)

    @override
    async def reconcile(self, key: Key) -> Result:
        """Run one pass over a group; the keys are no names of objects."""
        group = GroupKey.read(key[1])
        return Result() if group is None else await self._pass(key, group)

    @override
    async def run_pass(self, key: Key, obj: Object) -> Result:
        return await self.reconcile(key)

    @override
    async def tell(self, key: Key, error: BaseException) -> None:
        """Report the error of a pass in an Event of a pod: its conditions are for what becomes of it."""
        group = GroupKey.read(key[1])
        if group is None:
            return
        found = self.objects.find(UID, group.name) or self.objects.find(GROUP, "/".join(key))
        if found:
            _ = self.failures.note(found[0], error)

    async def _pass(self, key: Key, group: GroupKey) -> Result:
        if not self.expectations.satisfied("/".join(key)):
            return Postponed(OVERTAKEN_S)
        snapshot = await self._observer.observe(key[0], group)
        if isinstance(snapshot, Snapshot):
            if len(snapshot.members) > LARGE:
                # Others have their turn: to read a thousand pods takes as long as to plan for them.
                await asyncio.sleep(0)
            return await self._pass_over(snapshot)
        if isinstance(snapshot, Apart):
            for uid in snapshot.pods:
                for wake in self._wakes:
                    wake((key[0], str(single(uid))))
        return Postponed(NOT_SHOWN_S) if isinstance(snapshot, NotShown) else Result()

    async def _pass_over(self, snapshot: Snapshot) -> Result:
        planned = plan(snapshot)
        try:
            again = await self._carry_out(snapshot, planned)
        except NameTaken:
            self._say_taken(snapshot)
            return Postponed(TAKEN_S)
        except (errors.Conflict, errors.NotFound):
            # The cache is behind, or somebody was faster.
            return Postponed(OVERTAKEN_S)
        for pod in snapshot.members[:1]:
            self.failures.passed(pod.uid)
        size = len(snapshot.members)
        # What one pass could not finish, the next one does soon; events of a large group are batched.
        rest = size / PODS_A_SECOND if size > LARGE and len(planned.steps) < CHUNK else 0.0
        wakes = [one for one in (planned.wake, again) if one is not None]
        return Result(min(wakes, default=None), rest)

    async def _carry_out(self, snapshot: Snapshot, planned: Plan) -> float | None:
        """Take all steps; seconds until the next look, if one could not be taken."""
        again: float | None = None
        evictions = [step for step in planned.steps if isinstance(step, Evict)]
        if evictions:
            again = await self._evict(evictions)
        for step in planned.steps:
            match step:
                case Create(body):
                    if await self._has_later(snapshot, body):
                        return LATER_S
                    await self._create(snapshot, body)
                case End(job, ended):
                    await self._end(job, dict(ended))
                case DeleteJob(job):
                    metadata = job.obj["metadata"]
                    _ = await self._kube.delete(SLURMJOBS, job.name, metadata["namespace"], uid=metadata["uid"])
                case _:
                    pass
        lifts = [step for step in planned.steps if isinstance(step, Lift)]
        writes = [step for step in planned.steps if isinstance(step, Allocate)]
        jobs = [*(step.job for step in lifts), *(step.job for step in writes if step.job is not None)]
        if jobs and not await self._still_runs(jobs[0]):
            return OVERTAKEN_S
        calls = [self._lift(step) for step in lifts]
        calls += [claim_writes.write(self._kube, step) for step in writes]
        calls += [self._announce(step) for step in planned.steps if isinstance(step, Announce)]
        calls += [self._show(step) for step in planned.steps if isinstance(step, Tell)]
        _raise_first(await gather_limited(calls))
        return again

    async def _has_later(self, snapshot: Snapshot, body: Object) -> bool:
        """Whether the API server has a later job of the group than the one that is to be made.

        The name of a job follows from those before, so a cache that is behind leads to one name twice, and to one job.
        It leads to two if the job before was deleted, and the one that followed it is not shown yet.
        """
        created = [one.created for one in snapshot.waiting if one.created is not None]
        if not created or (snapshot.now - max(created)).total_seconds() < UNSEEN_S:
            return False
        uid = str(body["metadata"]["labels"][labels.LABEL_BRIDGE_GROUP])
        selector = f"{labels.LABEL_BRIDGE_GROUP}={uid}"
        wanted = slurmjobs.attempt_of(snapshot.key, body) or 0
        async for one in self._kube.each(SLURMJOBS, snapshot.namespace, label_selector=selector):
            later = (slurmjobs.attempt_of(snapshot.key, one) or 0) > wanted
            if later and slurmjobs.is_owned(snapshot.key, one, uid):
                return True
        return False

    async def _create(self, snapshot: Snapshot, body: Object) -> None:
        group, name = f"{snapshot.namespace}/{snapshot.key}", str(body["metadata"]["name"])
        uid = str(body["metadata"]["labels"][labels.LABEL_BRIDGE_GROUP])
        self.expectations.expect_creations(group, snapshot.namespace, [name])
        try:
            made = await create_or_adopt(
                self._kube, SLURMJOBS, body, lambda found: slurmjobs.is_owned(snapshot.key, found, uid)
            )
        except (errors.KubeError, NameTaken):
            # If it was made all the same, the next try finds it by its name.
            self.expectations.creation_failed(snapshot.namespace, name)
            raise
        self.expectations.created(made)

    async def _end(self, job: GroupJob, ended: Object) -> None:
        metadata = job.obj["metadata"]
        _ = await self._kube.merge_patch(
            SLURMJOBS,
            job.name,
            {"spec": {"external": {"ended": ended}}},
            metadata["namespace"],
            uid=metadata["uid"],
            resource_version=metadata["resourceVersion"],
        )

    async def _still_runs(self, job: GroupJob) -> bool:
        """Whether Slurm runs a job as far as the API server knows: the cache may be behind."""
        metadata = job.obj["metadata"]
        found = await self._kube.get(SLURMJOBS, job.name, metadata["namespace"])
        is_same = found["metadata"].get("uid") == metadata["uid"]
        return is_same and GroupJob(found, stored_status(SlurmJobStatus, found), job.attempt, job.is_owned).is_running

    async def _lift(self, step: Lift) -> None:
        metadata = step.member.obj["metadata"]
        _ = await self._kube.merge_patch(
            BRIDGE_PODS,
            step.member.name,
            lift.lifted(step.member.obj, step.job, step.slot, step.node, step.given.shown),
            metadata["namespace"],
            uid=metadata["uid"],
            resource_version=metadata["resourceVersion"],
        )

    async def _announce(self, step: Announce) -> None:
        metadata = step.member.obj["metadata"]
        _ = await self._kube.merge_patch(
            BRIDGE_PODS,
            step.member.name,
            {"metadata": {"annotations": {labels.ANNOTATION_BRIDGE_DEADLINE: step.deadline}}},
            metadata["namespace"],
            uid=metadata["uid"],
            resource_version=metadata["resourceVersion"],
        )

    async def _evict(self, steps: Sequence[Evict]) -> float | None:
        taken = self._evictions.take(str(steps[0].member.obj["metadata"]["namespace"]), len(steps))
        again: float | None = AGAIN_S if taken < len(steps) else None
        steps = steps[:taken]
        answers = await gather_limited(self._let_go(one) for one in steps)
        rest: list[object] = []
        for step, answer in zip(steps, answers, strict=True):
            if isinstance(answer, errors.TooManyRequests):
                again = again or max(DISRUPTION_S, answer.retry_after or 0.0)
                words = cut(f"{step.why}; the eviction waits: {answer.message}", lift.LONGEST)
                self._recorder.warning(step.member.obj, "EvictionWaits", words)
            elif isinstance(answer, BaseException):
                rest.append(answer)
            else:
                self._recorder.warning(step.member.obj, "EvictedBySlurm", cut(answer, lift.LONGEST))
        _raise_first(rest)
        return again

    async def _let_go(self, step: Evict) -> str:
        """Evict a pod, or delete one that a disruption budget has kept for long enough; what is said of it."""
        about = step.member.obj["metadata"]
        where = BRIDGE_PODS, step.member.name, str(about["namespace"])
        version = str(about["resourceVersion"]) if step.is_unbound else None
        try:
            _ = await self._kube.evict(*where, uid=step.member.uid, resource_version=version)
        except errors.TooManyRequests:
            if step.is_unbound or (step.since is not None and self._now() - step.since < BUDGET):
                raise
            _ = await self._kube.delete(*where, uid=step.member.uid)
            return f"{step.why}; a PodDisruptionBudget forbids its eviction, so it is deleted"
        return step.why

    async def _show(self, step: Tell) -> None:
        pod, metadata = step.member.obj, step.member.obj["metadata"]
        shown = lift.condition(pod, self._now(), holds=step.holds, reason=step.reason, message=step.message)
        body = {
            "metadata": {"name": step.member.name, "namespace": metadata["namespace"], "uid": step.member.uid},
            "status": {"conditions": [shown]},
        }
        is_new = lift.shown(pod).get("reason") != step.reason
        _ = await self._kube.apply(BRIDGE_PODS, body, subresource="status", field_manager=MANAGER)
        if is_new and step.is_warning:
            self._recorder.warning(pod, step.reason, shown["message"])
        elif is_new:
            self._recorder.normal(pod, step.reason, shown["message"])

    def _say_taken(self, snapshot: Snapshot) -> None:
        for one in snapshot.waiting[:1]:
            words = (
                "there is a SlurmJob of the name that the job of this pod must have, which the operator has not made: "
                f"delete it (kubectl get slurmjobs -n {snapshot.namespace})"
            )
            self._recorder.warning(one.obj, "JobNotOurs", words)


def _raise_first(answers: Sequence[object]) -> None:
    """Raise what has failed, first of all what an old cache does not explain."""
    failed = [one for one in answers if isinstance(one, BaseException)]
    failed.sort(key=lambda one: isinstance(one, errors.Conflict | errors.NotFound))
    if failed:
        raise failed[0]
