"""One pass over a pod on a virtual Node: observe, plan, show, take the step. Rules are in `plan`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Final, Protocol

from typing_extensions import override

from slinky_api import labels
from slinky_api.events import EventReason
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Key, Store, version_of
from slinky_operator.kube.objects import Object, Page
from slinky_operator.kube.ports import Kube, Recorder
from slinky_operator.kube.resources import SLURMJOBS, VIRTUAL_PODS, Resource
from slinky_operator.reconcile.reconciler import Postponed, Reconciler
from slinky_operator.reconcile.text import cut
from slinky_operator.reconcile.writes.children import NameTaken, create_or_adopt
from slinky_operator.reconcile.writes.finalizers import set_finalizer
from slinky_operator.reconcile.writes.status_writer import patch_between
from slinky_operator.runtime.controller import Result
from slinky_operator.virtual_nodes.pod_jobs import owner_pod
from slinky_operator.virtual_nodes.pods import slurmjobs
from slinky_operator.virtual_nodes.pods.observation import Observer
from slinky_operator.virtual_nodes.pods.plan import Create, DeleteJob, Leave, Plan, Release, Reserve, TakeOver, plan

OVERTAKEN_S: Final = 0.2
"""Seconds until the pass after one that found the pod or its SlurmJob changed."""

LONGEST: Final = 1000
"""Characters of an Event."""

BEHIND_S: Final = 10.0
"""Seconds until SlurmJobs are listed again that the cache does not show: versions begin again when etcd is restored."""


class PodKube(Kube, Protocol):
    """The calls that passes over pods make."""

    @override
    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None,
        resource_version: str | None = None,
        grace_seconds: int | None = None,
    ) -> Object:
        """Delete an object, pods after a time."""
        ...

    def pages(
        self, resource: Resource, namespace: str | None = None, *, label_selector: str | None = None
    ) -> AsyncIterator[Page]:
        """Read a collection page by page."""
        ...


class PodReconciler(Reconciler):
    """Reconciles pods on virtual Nodes.

    Parameters
    ----------
    kube, recorder
        The API server, and Events.
    pods, jobs
        Caches of pods and of SlurmJobs.
    observer
        Builds snapshots.
    clock, now
        Monotonic seconds, and the wall clock.
    """

    def __init__(
        self,
        kube: PodKube,
        recorder: Recorder,
        pods: Store,
        jobs: Store,
        observer: Observer,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(VIRTUAL_PODS, pods, kube, recorder, clock=clock, now=now)
        self._kube = kube
        self._recorder = recorder
        self._jobs = jobs
        self._observer = observer
        self._now = now
        self._clock = clock
        self._made: dict[str, None] = {}
        """Uids of pods whose SlurmJob this process has made, and that have not gone."""
        self._uids: dict[Key, str] = {}
        self._newest: dict[str, int] = {}
        """By namespace, the version that the cache of SlurmJobs must have reached: what an earlier leader has left."""
        self._behind_since: dict[str, float] = {}

    @override
    async def gone(self, key: Key) -> Result:
        self._made.pop(self._uids.pop(key, ""), None)
        return Result()

    @override
    async def tell(self, key: Key, error: BaseException) -> None:
        """Report the error of a pass in an Event: the conditions of a pod are for those who wait for it."""
        obj = self.objects.get(*key)
        if obj is not None:
            _ = self.failures.note(obj, error)

    @override
    async def run_pass(self, key: Key, obj: Object) -> Result:
        uid = str(obj["metadata"]["uid"])
        before, self._uids[key] = self._uids.get(key, uid), uid
        if before != uid:
            self._made.pop(before, None)
        snapshot = await self._observer.observe(obj, is_made=uid in self._made)
        planned = plan(snapshot)
        if isinstance(planned.step, Reserve | Create | TakeOver) and not await self._has_all_jobs(key[0]):
            return Postponed(OVERTAKEN_S)
        try:
            return await self._carry_out(obj, planned)
        except (errors.Conflict, errors.NotFound, NameTaken):
            # The cache is behind, or somebody was faster.
            return Postponed(OVERTAKEN_S)

    async def _carry_out(self, obj: Object, planned: Plan) -> Result:
        shown = await self._show(obj, planned)
        match planned.step:
            case Reserve(name):
                await self._reserve(obj, name)
            case Create(body):
                await self._create(obj, body)
            case TakeOver(job):
                await self._take_over(obj, job)
            case Leave(job, why):
                await self._leave(obj, job, why)
            case DeleteJob(job):
                about = job["metadata"]
                _ = await self._kube.delete(SLURMJOBS, about["name"], about["namespace"], uid=about["uid"])
            case Release():
                await self._release(shown)
            case None:
                pass
        return Result(planned.wake)

    async def _show(self, obj: Object, planned: Plan) -> Object:
        """Write the status if it differs, and return the pod as it is then."""
        if planned.status is None:
            return obj
        patch = patch_between(obj.get("status") or {}, planned.status)
        if not patch:
            return obj
        if planned.warning is not None:
            reason, message = planned.warning
            self._recorder.warning(obj, reason, cut(message, LONGEST))
        metadata = obj["metadata"]
        return await self._kube.patch_status(
            VIRTUAL_PODS,
            metadata["name"],
            patch,
            metadata["namespace"],
            uid=metadata["uid"],
            resource_version=metadata["resourceVersion"],
        )

    async def _reserve(self, obj: Object, name: str) -> None:
        metadata = obj["metadata"]
        others = [one for one in metadata.get("finalizers") or () if one != labels.FINALIZER_VIRTUAL_POD]
        wanted = {
            "annotations": {labels.ANNOTATION_VIRTUAL_POD_JOB: name},
            "finalizers": [*others, labels.FINALIZER_VIRTUAL_POD],
        }
        _ = await self._kube.merge_patch(
            VIRTUAL_PODS,
            metadata["name"],
            {"metadata": wanted},
            metadata["namespace"],
            uid=metadata["uid"],
            resource_version=metadata["resourceVersion"],
        )

    async def _create(self, obj: Object, body: Object) -> None:
        uid = str(obj["metadata"]["uid"])
        _ = await create_or_adopt(self._kube, SLURMJOBS, body, lambda found: owner_pod(found) == uid)
        self._made[uid] = None

    async def _take_over(self, obj: Object, job: Object) -> None:
        about = job["metadata"]
        _ = await self._kube.merge_patch(
            SLURMJOBS,
            about["name"],
            slurmjobs.taken_over(obj),
            about["namespace"],
            uid=about["uid"],
            resource_version=about["resourceVersion"],
        )
        self._made[str(obj["metadata"]["uid"])] = None
        self._recorder.normal(
            obj, EventReason.JOB_TAKEN_OVER, f"takes over SlurmJob {about['name']}, which an outage left"
        )

    async def _leave(self, obj: Object, job: Object, why: str) -> None:
        about = job["metadata"]
        left = await self._kube.merge_patch(
            SLURMJOBS,
            about["name"],
            slurmjobs.detached(why, self._now()),
            about["namespace"],
            uid=about["uid"],
            resource_version=about["resourceVersion"],
        )
        # A pod that comes in the place of this one must find it.
        self._newest[about["namespace"]] = max(version_of(left), self._newest.get(about["namespace"], 0))
        words = slurmjobs.kept(obj, job, why)
        self._recorder.warning(obj, EventReason.JOB_KEPT, words)
        self._recorder.warning(left, EventReason.JOB_KEPT, words)

    async def _release(self, obj: Object) -> None:
        metadata = obj["metadata"]
        if labels.FINALIZER_VIRTUAL_POD in (metadata.get("finalizers") or ()):
            obj = await set_finalizer(self._kube, VIRTUAL_PODS, obj, labels.FINALIZER_VIRTUAL_POD, present=False)
        if metadata.get("deletionTimestamp"):
            # Nobody else is the kubelet that a pod waits for.
            _ = await self._kube.delete(
                VIRTUAL_PODS, metadata["name"], metadata["namespace"], uid=metadata["uid"], grace_seconds=0
            )

    async def _has_all_jobs(self, namespace: str) -> bool:
        """Whether the cache shows what was written of SlurmJobs of pods before, also by an earlier leader.

        Without that, a pod that comes in the place of another would not see that the job runs, and begin it again.
        """
        if namespace not in self._newest:
            newest = 0
            selector = labels.LABEL_VIRTUAL_POD
            async for page in self._kube.pages(SLURMJOBS, namespace, label_selector=selector):
                newest = max((newest, *map(version_of, page.items)))
            self._newest[namespace] = newest
        newest = self._newest[namespace]
        if newest and self._jobs.newest(namespace) < newest:
            if self._clock() - self._behind_since.setdefault(namespace, self._clock()) > BEHIND_S:
                del self._newest[namespace], self._behind_since[namespace]
            return False
        self._behind_since.pop(namespace, None)
        self._newest[namespace] = 0
        return True
