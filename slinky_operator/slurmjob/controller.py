"""One pass over a SlurmJob: observe, plan, take the step, report. Rules are in `plan`, what a step does in `execute`.

What is remembered between passes is only when something was last tried; all that matters is in the status.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from typing_extensions import override

from slinky_api import labels
from slinky_api.conditions import Reason, SlurmJobCondition, find
from slinky_api.errors import InvalidObjectError
from slinky_api.events import EventReason
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob, SlurmJobStatus
from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.cache.expectations import Expectations
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube, Recorder
from slinky_operator.kube.resources import SLURMJOBS
from slinky_operator.metrics.job_changes import JobChanges
from slinky_operator.reconcile.reconciler import ModelReconciler, Postponed
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.reconcile.writes.finalizers import set_finalizer
from slinky_operator.reconcile.writes.parts import stored_status
from slinky_operator.runtime.controller import Result
from slinky_operator.slurmjob.execute import external, history
from slinky_operator.slurmjob.execute.holds_and_cancels import Orders
from slinky_operator.slurmjob.execute.memory import Memory
from slinky_operator.slurmjob.execute.reports import Reports
from slinky_operator.slurmjob.execute.resubmission import MOST, Resubmissions
from slinky_operator.slurmjob.execute.slurm_access import SlurmAccess
from slinky_operator.slurmjob.execute.submission import SOON_S, Submitter
from slinky_operator.slurmjob.model import metric_changes, report, steps
from slinky_operator.slurmjob.model.plan import plan, without_history
from slinky_operator.slurmjob.model.slurm_records import arrays
from slinky_operator.slurmjob.model.snapshot import Snapshot
from slinky_operator.slurmjob.observation import Observer
from slinky_operator.slurmjob.pods.copy_upkeep import CopyUpkeep
from slinky_operator.slurmjob.pods.log_upkeep import LogUpkeep
from slinky_operator.slurmjob.polling.queues import Queues

OVERTAKEN_S: Final = 0.2
"""Seconds until the pass after one that found the object changed."""

BEHIND_S: Final = 10.0
"""Seconds for which the cache may not show the operator's own writes; versions begin again when etcd is restored."""


class SlurmJobReconciler(ModelReconciler[SlurmJob]):
    """Reconciles SlurmJobs.

    Parameters
    ----------
    kube, recorder
        The API server, and Events.
    secrets
        Reads the keys of Clusters.
    jobs
        Their cache, with `observation.INDEXES_OF_JOBS`.
    observer
        Builds snapshots.
    queues
        The jobs of Clusters.
    logs, copies
        Keep the pods of SlurmJobs.
    changes
        Counts what has happened, for metrics.
    resubmissions
        When jobs that Slurm has refused are submitted again.
    clock, now
        Monotonic seconds, and the wall clock.
    """

    def __init__(
        self,
        kube: Kube,
        recorder: Recorder,
        secrets: SecretReader,
        jobs: Store,
        observer: Observer,
        queues: Queues,
        logs: LogUpkeep,
        copies: CopyUpkeep,
        *,
        changes: JobChanges | None = None,
        resubmissions: Resubmissions | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(SlurmJob, SLURMJOBS, jobs, kube, recorder, clock=clock, now=now)
        self._kube = kube
        self._recorder = recorder
        self._observer = observer
        self._queues = queues
        self._logs = logs
        self._changes = changes = changes or JobChanges()
        self._now = now
        self._clock = clock
        self._memory: dict[str, Memory] = {}
        self._access = SlurmAccess(secrets, observer)
        self._own_writes = writes = Expectations(jobs, clock=clock, timeout=BEHIND_S)
        self._reports = Reports(kube, recorder, logs, copies, changes, writes, now)
        self._resubmissions = again = resubmissions or Resubmissions(MOST, random.random)
        self._submitter = Submitter(self._access, self._reports, recorder, queues, copies, changes, again, now)
        self._orders = Orders(self._access, self._reports, recorder, queues, now)
        self._ends = external.Ends(self._access, self._reports, recorder, now)

    @override
    def invalid(self, obj: Object, error: InvalidObjectError) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        stored = stored_status(SlurmJobStatus, obj)
        generation = obj["metadata"].get("generation", 0)
        return stored.to_dict(), report.invalid(stored, str(error), generation, self._now()).to_dict()

    @override
    def forget(self, uid: str) -> None:
        super().forget(uid)
        _ = self._memory.pop(uid, None)
        self._logs.forget(uid)
        self._observer.forget_job(uid)
        self._own_writes.forget(uid)

    @override
    async def run_pass(self, key: Key, obj: Object) -> Result:
        uid = obj["metadata"].get("uid", "")
        if not self._own_writes.satisfied(uid):
            # Asked of the cache before anything else happens: this object is the one that it shows now.
            return Postponed(OVERTAKEN_S)
        job = await self.parse(obj)
        if job is None:
            return Result()
        memory = self._memory.setdefault(job.uid, Memory())
        try:
            snapshot = await self._observe(obj, job, memory)
        except (kube_errors.Conflict, kube_errors.NotFound):
            # The cache is behind: the script is not that of the job in it.
            return Postponed(OVERTAKEN_S)
        planned = plan(snapshot)
        if isinstance(planned.step, steps.AskHistory):
            snapshot = await history.ask(self._access, snapshot, memory, self._now())
            away_since = memory.history_away_since or snapshot.now
            planned = plan(snapshot) if snapshot.history is not None else without_history(snapshot, away_since)
        if isinstance(planned.step, steps.AskAllocation):
            planned = plan(await external.ask_allocation(self._access, snapshot, planned.step, memory, self._now))
        self._note_end(obj, snapshot, planned)
        try:
            return await self._carry_out(obj, snapshot, planned, memory)
        except (kube_errors.Conflict, kube_errors.NotFound):
            # The cache is behind, or somebody was faster: nothing was asked of Slurm.
            return Postponed(OVERTAKEN_S)

    async def _observe(self, obj: Object, job: SlurmJob, memory: Memory) -> Snapshot:
        snapshot = await self._observer.observe(obj, job)
        if job.status.job_id is None:
            memory.ready_since = metric_changes.ready_since(job, snapshot.now, memory.ready_since)
        if snapshot.looked is None or not arrays.is_lacking(snapshot.looked.seen):
            memory.missing_since = memory.history_away_since = None
        elif memory.missing_since is None:
            memory.missing_since = snapshot.now
        if snapshot.listed_at is not None:
            there = {one.job_id for one in snapshot.second_jobs}
            memory.second_orders = {number: one for number, one in memory.second_orders.items() if number in there}
        is_gone = snapshot.cluster is None and snapshot.obstacle is None
        memory.cluster_gone_since = (memory.cluster_gone_since or snapshot.now) if is_gone else None
        if _comes_again(job, memory):
            # In its turn: a new leader finds all refused jobs of a namespace at once.
            memory.refusals, memory.refused_generation = 0, job.metadata.generation
            memory.refused_until = self._resubmissions.reserve(job.namespace, snapshot.now, timedelta(0))
        return replace(
            snapshot,
            cluster_gone_since=memory.cluster_gone_since,
            refused_until=memory.refused_until,
            order=memory.order,
            second_orders=dict(memory.second_orders),
            missing_since=memory.missing_since,
            allocation_again=memory.allocation_again,
            record_since=memory.record_since,
            record_again=memory.record_again,
        )

    def _note_end(self, obj: Object, snapshot: Snapshot, planned: steps.Plan) -> None:
        """Remember a job that has ended: slurmctld may have it again after a crash."""
        finished = find(snapshot.job.status.conditions, SlurmJobCondition.FINISHED)
        is_over = finished is not None and finished.status == "True"
        if snapshot.cluster is None or not (is_over or isinstance(planned.step, steps.RemoveFinalizer)):
            return
        at = finished.last_transition_time if is_over and finished is not None else None
        self._queues.ended(snapshot.cluster.uid, obj, at or snapshot.now)

    async def _carry_out(self, obj: Object, snapshot: Snapshot, planned: steps.Plan, memory: Memory) -> Result:
        """Take the step; what it leads to is seen in the next pass, which its own write brings."""
        job = snapshot.job
        match planned.step:
            case steps.AddFinalizer() | steps.RemoveFinalizer() | steps.Delete() as step:
                await self._change(obj, job, step)
                return Result()
            case steps.Prepare() | steps.Submit() | steps.DryRun() as step:
                return await self._submitter.begin(obj, snapshot, step, memory)
            case steps.CancelSecond(seen):
                await self._orders.cancel_second(obj, snapshot, seen, memory)
                return Result(SOON_S)
            case steps.GiveOrder() as step:
                obj, snapshot, planned = await self._orders.give(obj, snapshot, step, memory, planned)
            case steps.RecordEnd() as step:
                return await self._ends.record(obj, snapshot, step, memory)
            case steps.Nothing() | steps.AskHistory() | steps.AskAllocation():
                pass
        wake = await self._reports.show(obj, snapshot, planned.news, memory)
        return Result(min((one for one in (planned.wake, wake) if one is not None), default=None))

    async def _change(
        self, obj: Object, job: SlurmJob, step: steps.AddFinalizer | steps.RemoveFinalizer | steps.Delete
    ) -> None:
        """Keep the object from going, let it go, or delete it."""
        if isinstance(step, steps.AddFinalizer):
            added = await set_finalizer(self._kube, SLURMJOBS, obj, labels.FINALIZER_SLURMJOB, present=True)
            self._own_writes.expect_version(job.uid, added)
        elif isinstance(step, steps.RemoveFinalizer):
            await self._remove_finalizer(obj, job, step)
        else:
            version = job.metadata.resource_version
            _ = await self._kube.delete(SLURMJOBS, job.name, job.namespace, uid=job.uid, resource_version=version)

    async def _remove_finalizer(self, obj: Object, job: SlurmJob, step: steps.RemoveFinalizer) -> None:
        """Remove the finalizer, and say what nobody will see any more."""
        if step.is_left_behind:
            self._recorder.warning(obj, EventReason.JOB_LEFT_BEHIND, report.left_behind(job.status))
        _ = await set_finalizer(self._kube, SLURMJOBS, obj, labels.FINALIZER_SLURMJOB, present=False)
        if step.is_left_behind:
            self._changes.left_behind()
        if step.ended is not None:
            # Its status will not be written any more.
            self._changes.ended(step.ended.shown.reason.value)


def _comes_again(job: SlurmJob, memory: Memory) -> bool:
    """Whether a job that was refused is to be tried without a pause: changed since, or refused before this process."""
    if memory.refused_generation is not None:
        return memory.refused_generation != job.metadata.generation and not job.spec.suspend
    submitted = find(job.status.conditions, SlurmJobCondition.SUBMITTED)
    return submitted is not None and submitted.reason == Reason.SUBMISSION_REFUSED
