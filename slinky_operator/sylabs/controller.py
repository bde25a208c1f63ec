"""One pass over an object of an old kind: observe, plan, create its SlurmJob, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import ValidationError
from typing_extensions import override

from slinky_api.errors import InvalidObjectError
from slinky_api.events import EventReason
from slinky_api.sylabs import slurm, wlm
from slinky_api.sylabs.common import JobStatus
from slinky_operator.kube import errors
from slinky_operator.kube.cache.parse_cache import ParseCache
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube, Recorder
from slinky_operator.kube.resources import SLURMJOBS
from slinky_operator.reconcile.cached import scripts
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.reconciler import ModelReconciler, Postponed
from slinky_operator.reconcile.text import cut
from slinky_operator.reconcile.writes.children import NameTaken, create_or_adopt
from slinky_operator.reconcile.writes.parts import controller_of
from slinky_operator.runtime import threads
from slinky_operator.runtime.controller import Result
from slinky_operator.sylabs.clusters import Chosen
from slinky_operator.sylabs.kinds import OldKind
from slinky_operator.sylabs.observation import Observer
from slinky_operator.sylabs.partitions import Clients
from slinky_operator.sylabs.plan import Plan, is_of_another, plan
from slinky_operator.sylabs.translation import status as old_status
from slinky_operator.sylabs.triggers import OldJobTriggers

LONG: Final = 32_768
"""Characters of a script from which on it is read in a thread."""

LONGEST: Final = 1000
"""Characters of an Event."""

OVERTAKEN_S: Final = 0.5
"""Seconds until the pass after one that found the object or its SlurmJob changed."""


OldJob = wlm.SlurmJob | wlm.WlmJob | slurm.SlurmJob
"""An object of an old kind."""


class OldJobReconciler(ModelReconciler[OldJob]):
    """Reconciles the objects of one old kind.

    Parameters
    ----------
    kind
        The kind.
    kube, recorder
        The API server, and Events.
    objects
        Its cache, with `observation.indexes_of`.
    jobs, clusters
        Caches of SlurmJobs and of Clusters.
    slurm
        Clients of Clusters.
    trusted
        `<namespace>/<name>` of Clusters that need no consent of a Namespace.
    with_nodes
        The same of Clusters that may have virtual Nodes, or `*`.
    clock, now
        Monotonic seconds, and the wall clock.
    """

    def __init__(
        self,
        kind: OldKind,
        kube: Kube,
        recorder: Recorder,
        objects: Store,
        jobs: Store,
        clusters: ClusterReader,
        slurm: Clients,
        *,
        trusted: Collection[str] = (),
        with_nodes: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(kind.model, kind.resource, objects, kube, recorder, clock=clock, now=now)
        self._kind = kind
        self._kube = kube
        self._recorder = recorder
        self._observer = Observer(kind, kube, jobs, clusters, trusted, with_nodes, slurm, clock=clock, now=now)
        self.triggers = OldJobTriggers(kind.resource, objects)
        """What triggers it: each handler returns the keys to reconcile."""

    @override
    async def read(self, obj: Object) -> OldJob:
        return await super().read(_readable(obj))

    @override
    def invalid(self, obj: Object, error: InvalidObjectError) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        stored = _stored(obj)
        generation = obj["metadata"].get("generation", 0)
        if stored.job_id is not None or is_of_another(stored):
            # What is known of a job stays, and so does the trace of another operator.
            return stored.to_dict(), stored.to_dict()
        return stored.to_dict(), old_status.refused(error, generation=generation).to_dict()

    @override
    async def tell(self, key: Key, error: BaseException) -> None:
        """Report the error of a pass in the old status, which has no conditions."""
        obj = self.objects.get(*key)
        failure = self.failures.note(obj, error) if obj is not None else None
        if obj is None or failure is None:
            return
        stored = _stored(obj)
        if is_of_another(stored):
            # It would look like this operator's own, and be run again.
            return
        generation = stored.observed_generation or obj["metadata"].get("generation", 0)
        changes = {
            "status": stored.status or "Pending",
            "observed_generation": generation,
            "reason": str(failure.reason),
        }
        wanted = stored.model_copy(update={**changes, "message": cut(failure.message, LONGEST)})
        _ = await self.status.write(obj, obj.get("status") or {}, wanted.to_dict())

    @override
    async def run_pass(self, key: Key, obj: Object) -> Result:
        job = await self.parse(obj)
        if job is None:
            return Result()
        snapshot = await self._observer.observe(job)
        if isinstance(snapshot.cluster, Chosen):
            job = await self._with_script(job)
            snapshot = replace(snapshot, job=job)
        script = "" if isinstance(job, wlm.WlmJob) else job.spec.batch
        if len(script) > LONG:
            planned = await threads.JOBS.run((key[0], job.kind, job.uid), plan, snapshot)
        else:
            planned = plan(snapshot)
        if planned.create is not None and not await self._create(obj, planned, planned.create):
            return Postponed(OVERTAKEN_S)
        stored, wanted = _stored(obj), planned.status
        if wanted.status == "Failed" and wanted.job_id is None and wanted.message != stored.message:
            self._recorder.warning(obj, wanted.reason, cut(wanted.message, LONGEST))
        _ = await self.status.write(obj, obj.get("status") or {}, wanted.to_dict())
        return Result(planned.wake)

    async def _with_script(self, job: OldJob) -> OldJob:
        """An object with its script, which the cache may have left out."""
        if isinstance(job, wlm.WlmJob) or not scripts.is_left_out(job.spec.batch):
            return job
        obj = await scripts.read_again(
            self._kube,
            self.resource,
            "batch",
            job.spec.batch,
            job.namespace,
            job.name,
            job.uid,
            job.metadata.generation,
        )
        readable = _readable(obj)
        # Not kept: the cache of what was parsed has the digest only.
        parsed: ParseCache[OldJob] = ParseCache(self._kind.model)
        await parsed.prepare(readable)
        return parsed.read(readable)

    async def _create(self, obj: Object, planned: Plan, body: Object) -> bool:
        """Create the SlurmJob; False if the object or the SlurmJob is another than the caches have shown."""
        metadata = obj["metadata"]
        try:
            # The cache may be behind. A SlurmJob of an object that is gone would be submitted before it is collected,
            # and one of an object that has had a job would be the second.
            live = await self._kube.get(self.resource, metadata["name"], metadata["namespace"])
        except errors.NotFound:
            return False
        if live["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            return False
        uid = metadata["uid"]

        def is_ours(found: Object) -> bool:
            return bool(controller_of(found).get("uid") == uid)

        try:
            made = await create_or_adopt(self._kube, SLURMJOBS, body, is_ours)
        except NameTaken:
            return False
        name = made["metadata"]["name"]
        words = "; ".join([f"runs as SlurmJob {name} in Cluster {planned.where}", *planned.without_effect])
        emit = self._recorder.warning if planned.without_effect else self._recorder.normal
        emit(obj, EventReason.SLURMJOB_CREATED, cut(words, LONGEST))
        return True


def _is_foreign(obj: Object) -> bool:
    """Whether the status is none that this operator could have written."""
    try:
        _ = JobStatus.model_validate(obj.get("status") or {})
    except ValidationError:
        return True
    return False


def _readable(obj: Object) -> Object:
    """An object whose status can be read: one that another operator has written is no reason to refuse the object."""
    return {**obj, "status": _stored(obj).to_dict()} if _is_foreign(obj) else obj


def _stored(obj: Object) -> JobStatus:
    """The status; one that cannot be read is that of a job of which nothing is known."""
    return JobStatus(status="Unknown") if _is_foreign(obj) else JobStatus.model_validate(obj.get("status") or {})
