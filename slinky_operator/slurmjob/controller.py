"""One pass over a SlurmJob: observe, plan, take the step, report. Rules are in `plan`.

What is remembered between passes is only when something was last tried; all that matters is in the status.
"""

from __future__ import annotations

import logging
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
from slinky_api.v1alpha1.slurmjob.kind import JobSubmission, SlurmJob, SlurmJobStatus
from slinky_operator.jobs import tenants
from slinky_operator.jobs.translation import Submission
from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.cache.parse_cache import ParseCache
from slinky_operator.kube.cache.store import Key, Store, version_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import SLURMJOBS
from slinky_operator.reconcile.reconciler import Postponed, Reconciler
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.reconcile.signing_key import signing_key
from slinky_operator.reconcile.text import cut
from slinky_operator.reconcile.writes.finalizers import set_finalizer
from slinky_operator.reconcile.writes.status_writer import patch_between
from slinky_operator.runtime.controller import Result
from slinky_operator.slurm.tokens.signing_keys import SigningKey
from slinky_operator.slurmjob import slurm_calls
from slinky_operator.slurmjob.files import facts
from slinky_operator.slurmjob.files.upkeep import FileUpkeep, Told
from slinky_operator.slurmjob.logs import placing
from slinky_operator.slurmjob.logs.upkeep import Upkeep
from slinky_operator.slurmjob.memory import Memory
from slinky_operator.slurmjob.model import attempts, dependencies, orders, report
from slinky_operator.slurmjob.model.marks import Mark
from slinky_operator.slurmjob.model.plan import RETRY_S, plan, without_history
from slinky_operator.slurmjob.model.snapshot import History, Snapshot
from slinky_operator.slurmjob.model.steps import ORDERS, Plan, Step
from slinky_operator.slurmjob.observation import Observer
from slinky_operator.slurmjob.ports import Kube, Recorder
from slinky_operator.slurmjob.queues import Queues
from slurm_client import SlurmClient
from slurm_client.errors import SlurmError

logger = logging.getLogger(__name__)

OVERTAKEN_S: Final = 0.2
"""Seconds until the pass after one that found the object changed."""

BEHIND_S: Final = 10.0
"""Seconds for which a cache may be behind the operator's own writes; versions begin again when etcd is restored."""

REFUSED_S: Final = (10.0, 30.0, 60.0, 300.0)
"""Seconds after which a job that Slurm has refused is submitted again: a limit may have been the reason."""

KEY_VALID_S: Final = 10.0
"""Seconds for which a key that was read counts."""

LACKING_S: Final = 15.0
"""Seconds until it is looked again whether the volumes of a job exist now."""

BEGINNING_S: Final = 10.0
"""Seconds that the write before a submission may take: `plan.SETTLED` counts from its beginning."""

LONGEST: Final = 1000
"""Characters of Slurm's words in a condition or an Event."""

NO_HISTORY: Final = timedelta(minutes=10)
"""After which a Slurm elsewhere whose slurmdbd does not answer counts as one without."""

_WAITS: Final = frozenset(
    {
        Reason.SUSPENDED,
        Reason.DEPENDENCY_NOT_SUBMITTED,
        Reason.DEPENDENCY_NOT_FINISHED,
        Reason.SUBMITTING,
        Reason.KEY_PENDING,
        Reason.PREPARING,
    }
)
"""Reasons that need nobody's help."""

_WARNED: Final = frozenset({Reason.HOLD_REFUSED, Reason.RELEASE_REFUSED, Reason.CANCEL_REFUSED, Reason.ACCOUNTING_DOWN})
"""Reasons that are worth an Event although Slurm has the job, or had it."""


class KeyUnknown(Exception):
    """There is no key to sign a user's token with."""


class SlurmJobReconciler(Reconciler[SlurmJob]):
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
    upkeep, files
        The pods with output, and those that copy files.
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
        upkeep: Upkeep,
        files: FileUpkeep,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(SLURMJOBS, jobs, kube, recorder, clock=clock, now=now)
        self._kube = kube
        self._recorder = recorder
        self._secrets = secrets
        self._observer = observer
        self._queues = queues
        self._upkeep = upkeep
        self._files = files
        self._now = now
        self._clock = clock
        self._parsed: ParseCache[SlurmJob] = ParseCache(SlurmJob)
        self._memory: dict[str, Memory] = {}
        self._uids: dict[Key, str] = {}

    @override
    async def read(self, obj: Object) -> SlurmJob:
        await self._parsed.prepare(obj)
        return self._parsed.read(obj)

    @override
    def invalid(self, obj: Object, error: InvalidObjectError) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        try:
            stored = SlurmJobStatus.model_validate(obj.get("status") or {})
        except ValueError:
            stored = SlurmJobStatus()
        generation = obj["metadata"].get("generation", 0)
        return stored.to_dict(), report.invalid(stored, str(error), generation, self._now()).to_dict()

    @override
    async def gone(self, key: Key) -> Result:
        self._forget(self._uids.pop(key, ""))
        return Result()

    def _forget(self, uid: str) -> None:
        self._parsed.forget(uid)
        _ = self._memory.pop(uid, None)
        self._upkeep.forget(uid)

    @override
    async def run_pass(self, key: Key, obj: Object) -> Result:
        uid = obj["metadata"].get("uid", "")
        before, self._uids[key] = self._uids.get(key, uid), uid
        if before != uid:
            self._forget(before)
        job = await self.parse(obj)
        if job is None:
            return Result()
        memory = self._memory.setdefault(job.uid, Memory())
        if version_of(obj) < memory.written and self._clock() - memory.written_at < BEHIND_S:
            return Postponed(OVERTAKEN_S)
        snapshot = await self._observe(obj, job, memory)
        planned = plan(snapshot)
        if planned.step is Step.ASK_HISTORY:
            snapshot = await self._ask_history(snapshot, memory)
            away_since = memory.history_away_since or snapshot.now
            planned = plan(snapshot) if snapshot.history is not None else without_history(snapshot, away_since)
        try:
            return await self._carry_out(obj, snapshot, planned, memory)
        except (kube_errors.Conflict, kube_errors.NotFound):
            # The cache is behind, or somebody was faster: nothing was asked of Slurm.
            return Postponed(OVERTAKEN_S)

    async def _observe(self, obj: Object, job: SlurmJob, memory: Memory) -> Snapshot:
        snapshot = await self._observer.observe(obj, job)
        if snapshot.looked is None or snapshot.looked.seen is not None:
            memory.missing_since = memory.history_away_since = None
        elif memory.missing_since is None:
            memory.missing_since = snapshot.now
        return replace(
            snapshot,
            refused_until=memory.refused_until,
            order=memory.order,
            missing_since=memory.missing_since,
        )

    async def _carry_out(self, obj: Object, snapshot: Snapshot, planned: Plan, memory: Memory) -> Result:
        """Take the step; what it leads to is seen in the next pass, which its own write brings."""
        job = snapshot.job
        step = planned.step
        if step is Step.ADD_FINALIZER:
            self._note(memory, await set_finalizer(self._kube, SLURMJOBS, obj, labels.FINALIZER_SLURMJOB, present=True))
            return Result()
        if step is Step.REMOVE_FINALIZER:
            if planned.left_behind and job.status.job_id is not None:
                words = f"job {job.status.job_id} was not cancelled: its Cluster is gone"
                self._recorder.warning(obj, EventReason.JOB_LEFT_BEHIND, words)
            _ = await set_finalizer(self._kube, SLURMJOBS, obj, labels.FINALIZER_SLURMJOB, present=False)
            return Result()
        if step is Step.DELETE:
            _ = await self._kube.delete(
                SLURMJOBS, job.name, job.namespace, uid=job.uid, resource_version=job.metadata.resource_version
            )
            return Result()
        if step in {Step.PREPARE, Step.SUBMIT}:
            return await self._begin(obj, snapshot, planned, memory)
        if step in ORDERS:
            obj, snapshot, planned = await self._order(obj, snapshot, planned, memory)
        wake = await self._show(obj, snapshot, planned)
        return Result(min((one for one in (planned.wake, wake) if one is not None), default=None))

    # submission

    async def _begin(self, obj: Object, snapshot: Snapshot, planned: Plan, memory: Memory) -> Result:
        """Submit the job, or prepare that; without the volumes that it needs neither is done."""
        lacking = await self._files.lacking(snapshot.job) if not planned.attempt else ""
        if lacking:
            words = f"{lacking}: create it, or name another in another SlurmJob"
            _ = await self._show(obj, snapshot, Plan(why=(Reason.VOLUME_NOT_FOUND, words)))
            return Result(LACKING_S)
        if planned.step is Step.PREPARE:
            return await self._prepare(obj, snapshot)
        return await self._submit(obj, snapshot, planned, memory)

    async def _prepare(self, obj: Object, snapshot: Snapshot) -> Result:
        """Let files be copied to the nodes; the job is submitted in a pass after that."""
        job, granted, submission = snapshot.job, snapshot.granted, snapshot.submission
        assert isinstance(granted, tenants.Grant)  # noqa: S101 - as planned
        assert isinstance(submission, Submission)  # noqa: S101
        assert snapshot.cluster is not None  # noqa: S101
        told = await self._files.prepare(job, granted, submission.job, snapshot.cluster, self._now())
        status, _, message = told.condition
        if status == "True":
            why = Reason.PREPARING, "the files of spec.prepare are on the nodes"
        elif told.wake is None:
            why = Reason.PREPARE_FAILED, f"{message}; the job is not submitted: create the SlurmJob again"
        else:
            why = Reason.PREPARING, message
        _ = await self._show(obj, snapshot, Plan(why=why), told)
        return Result(OVERTAKEN_S if status == "True" else told.wake)

    async def _submit(self, obj: Object, snapshot: Snapshot, planned: Plan, memory: Memory) -> Result:
        """Begin in the status, ask Slurm, and write down what it has said."""
        job, granted, submission = snapshot.job, snapshot.granted, snapshot.submission
        ready = snapshot.dependency
        client = self._client(snapshot)
        assert isinstance(granted, tenants.Grant)  # noqa: S101 - as planned
        assert isinstance(submission, Submission)  # noqa: S101
        assert isinstance(ready, dependencies.Ready)  # noqa: S101
        try:
            key = await self._key(snapshot)
        except KeyUnknown as error:
            _ = await self._show(obj, snapshot, Plan(why=(Reason.KEY_PENDING, str(error))))
            return Result(KEY_VALID_S)
        if client is None:
            return Result(OVERTAKEN_S)
        started = self._now().replace(microsecond=0)
        begun = JobSubmission(attempt=planned.attempt, started_at=started, name=submission.job.name or job.name)
        failed = (*(job.status.failed_attempts or ()), *([planned.failed] if planned.failed is not None else []))
        changes = {
            "submission": begun,
            "job_id": None,
            "user": granted.user,
            "failed_attempts": failed or None,
            "held": None,
            "exit_code": None,
            "signal": None,
            "start_time": None,
            "end_time": None,
            "nodes": None,
            "restarts": None,
            # What is counted of an array is never counted down.
            "array": None,
            "logs": placing.begun(snapshot.logs, job.status, is_again=planned.failed is not None),
            "files": facts.begun(job.status),
        }
        status = job.status.model_copy(update=changes)
        # For the version that was read: another process that has begun it, or this one, is never overlooked.
        answer = await self._patch(obj, job.status, status, obj["metadata"]["resourceVersion"])
        if (self._now() - started).total_seconds() > BEGINNING_S:
            # Others may look for the job before this call has ended: it is asked for once that is settled.
            logger.info("%s/%s: its submission began too slowly, and waits", job.namespace, job.name)
            return Result(RETRY_S)
        wanted = replace(
            submission.job,
            extra=Mark(job.uid, planned.attempt).text,
            dependency=dependencies.joined(submission.job.dependency, ready.text),
        )
        try:
            submitted = await slurm_calls.submit(client, granted.user, key, wanted)
        except SlurmError as error:
            return await self._not_submitted(answer, snapshot, status, error, memory)
        memory.refusals, memory.refused_until = 0, None
        self._tell_submission(obj, submitted.id, submission, [submitted.message, *map(str, submitted.warnings)])
        taken = status.model_copy(
            update={
                "job_id": submitted.id,
                "state": "Pending",
                "reason": str(Reason.SUBMITTED),
                "summary": "",
                "submission": begun.model_copy(update={"answered_at": self._now()}),
                "submit_time": self._now().replace(microsecond=0),
                "conditions": report.submitted(job, submitted.id, self._now()),
                "observed_generation": job.metadata.generation,
            }
        )
        _ = await self._patch(answer, status, taken, None)
        if snapshot.cluster is not None:
            _ = self._queues.get(snapshot.cluster.uid)
            self._queues.poke(snapshot.cluster.uid)
        return Result()

    async def _not_submitted(
        self, obj: Object, snapshot: Snapshot, begun: SlurmJobStatus, error: SlurmError, memory: Memory
    ) -> Result:
        """Slurm has refused, or its answer is not known."""
        job = snapshot.job
        words = cut(str(error), LONGEST)
        is_refusal = isinstance(error, slurm_calls.REFUSALS)
        if not is_refusal and not slurm_calls.was_not_sent(error):
            logger.info("%s/%s: the answer to its submission is not known: %s", job.namespace, job.name, words)
            shown = Plan(why=(Reason.SUBMITTING, f"the answer to the submission is not known: {words}"))
            unknown = job.model_copy(update={"status": begun})
            _ = await self._show(obj, replace(snapshot, job=unknown), shown)
            return Result(1.0)
        pause, why = RETRY_S, (Reason.SLURM_UNREACHABLE, f"Slurm does not answer: {words}")
        if is_refusal:
            pause = REFUSED_S[min(memory.refusals, len(REFUSED_S) - 1)]
            memory.refusals += 1
            why = (
                Reason.SUBMISSION_REFUSED,
                f"Slurm refuses the job, which is submitted again every few minutes: {words}",
            )
            self._recorder.warning(obj, Reason.SUBMISSION_REFUSED, words)
        memory.refused_until = self._now() + timedelta(seconds=pause)
        kept = None if begun.submission is None or not begun.submission.attempt else job.status.submission
        before = job.status.model_copy(update={"submission": kept, "user": begun.user})
        refused = job.model_copy(update={"status": before})
        wanted = report.status(replace(snapshot, job=refused), Plan(why=why))
        _ = await self._patch(obj, begun, wanted, None)
        return Result(pause)

    def _tell_submission(self, obj: Object, job_id: int, submission: Submission, slurms: list[str]) -> None:
        notes = [*map(str, submission.conflicts), *submission.without_effect, *(one for one in slurms if one)]
        words = cut("; ".join([f"Slurm has taken it as job {job_id}", *notes]), LONGEST)
        if notes:
            self._recorder.warning(obj, EventReason.JOB_SUBMITTED, words)
        else:
            self._recorder.normal(obj, EventReason.JOB_SUBMITTED, words)

    # other calls

    async def _ask_history(self, snapshot: Snapshot, memory: Memory) -> Snapshot:
        """Ask slurmdbd; without an answer nothing is concluded."""
        client, begun = self._client(snapshot), snapshot.job.status.submission
        if client is None or begun is None:
            return snapshot
        status = snapshot.job.status
        wanted = slurm_calls.Wanted(
            mark=Mark(snapshot.job.uid, begun.attempt),
            user=status.user or "",
            name=begun.name,
            since=begun.started_at or snapshot.now,
            job_id=status.job_id,
            counted=status.array,
        )
        try:
            found = await slurm_calls.history(client, wanted, self._now())
        except SlurmError as error:
            logger.info("%s/%s: slurmdbd was not asked: %s", snapshot.job.namespace, snapshot.job.name, error)
            since = memory.history_away_since = memory.history_away_since or snapshot.now
            # It has time to hear of an end from when on it answers.
            memory.missing_since = None
            if snapshot.cluster is not None and snapshot.cluster.spec.external and snapshot.now - since > NO_HISTORY:
                # Whether that Slurm has a slurmdbd is not known.
                return replace(snapshot, keeps_history=False, history=History())
            return snapshot
        memory.history_away_since = None
        return replace(snapshot, history=found)

    async def _order(
        self, obj: Object, snapshot: Snapshot, planned: Plan, memory: Memory
    ) -> tuple[Object, Snapshot, Plan]:
        """End, hold or release the job."""
        client, job, seen, step = self._client(snapshot), snapshot.job, planned.seen, planned.step
        if client is None or seen is None:
            return obj, snapshot, planned
        before = job.status
        try:
            key = await self._key(snapshot) if step is not Step.CANCEL else None
            if step is Step.HOLD and not before.held:
                # Noted first: a hold of which nothing is known would never be released.
                job = job.model_copy(update={"status": before.model_copy(update={"held": True})})
                obj = await self._patch(obj, before, job.status, None)
            if step is Step.CANCEL:
                await slurm_calls.cancel(client, seen.job_id)
            else:
                await slurm_calls.hold(client, seen.user, key, seen.job_id, held=step is Step.HOLD)
        except KeyUnknown as error:
            return obj, snapshot, replace(planned, wake=KEY_VALID_S, why=(Reason.KEY_PENDING, str(error)))
        except SlurmError as error:
            words = cut(str(error), LONGEST) or type(error).__name__
            logger.info("%s/%s: %s failed: %s", job.namespace, job.name, step.name.lower(), words)
            given = orders.answered(step, seen, job.metadata.generation, memory.order, self._now(), words)
            why, wake = orders.refused(given), (given.again - given.at).total_seconds()
            memory.order, planned = given, replace(planned, wake=wake, why=why)
            # A job whose hold was refused is not held; one whose answer was lost may be.
            is_refusal = isinstance(error, slurm_calls.REFUSALS)
            return obj, snapshot if is_refusal else replace(snapshot, job=job), planned
        memory.order = orders.answered(step, seen, job.metadata.generation, memory.order, self._now())
        if step is Step.CANCEL:
            words = f"job {seen.job_id} was cancelled, since the SlurmJob is being deleted"
            self._recorder.normal(obj, EventReason.JOB_CANCELLED, words)
        elif step is Step.RELEASE:
            job = job.model_copy(update={"status": before.model_copy(update={"held": None})})
        if snapshot.cluster is not None:
            self._queues.poke(snapshot.cluster.uid)
        return obj, replace(snapshot, job=job), planned

    def _client(self, snapshot: Snapshot) -> SlurmClient | None:
        entry = self._observer.entry(snapshot.cluster) if snapshot.cluster is not None else None
        return entry.client if entry is not None else None

    async def _key(self, snapshot: Snapshot) -> SigningKey | None:
        """The key of users' tokens; None where the operator's own token stands for users."""
        cluster = snapshot.cluster
        if cluster is None or cluster.spec.external:
            return None
        key = await signing_key(self._secrets, cluster, KEY_VALID_S)
        if key is None:
            raise KeyUnknown(f"the key of Cluster {cluster.name} that tokens are signed with is not known yet")
        return key

    # reports

    async def _show(self, obj: Object, snapshot: Snapshot, planned: Plan, prepared: Told | None = None) -> float | None:
        """Write the status, and tell of what has happened; return in how many seconds the output needs another look."""
        stored = SlurmJobStatus.model_validate(obj.get("status") or {})
        wanted = report.status(snapshot, planned)
        # Before the status: what it says of an end is not looked at again.
        records = snapshot.looked.records if snapshot.looked is not None else ()
        wanted = report.with_files(snapshot.job, wanted, prepared, self._now())
        wanted = facts.kept(snapshot.job, wanted, records)
        told = await self._upkeep.follow(snapshot.job, wanted, records, snapshot.cluster, self._now())
        wanted = report.with_logs(snapshot.job, wanted, told, self._now())
        collected = await self._files.collect(snapshot.job, wanted, snapshot.cluster, self._now())
        wanted = report.with_files(snapshot.job, wanted, collected, self._now())
        if planned.is_followed and planned.seen is not None:
            self._recorder.warning(obj, *attempts.words(snapshot.job, planned.seen))
        trouble = report.trouble(stored, collected)
        if trouble is not None:
            self._recorder.warning(obj, trouble[0], cut(trouble[1], LONGEST))
        if report.end(stored) is None:
            ended = report.end(wanted)
            if ended is not None:
                emit = self._recorder.normal if ended[0] else self._recorder.warning
                emit(obj, EventReason.JOB_ENDED, ended[1])
        before = find(stored.conditions, SlurmJobCondition.SUBMITTED)
        is_news = planned.why is not None and (before is None or before.reason != planned.why[0])
        if planned.why is not None and is_news and (wanted.job_id is None or planned.why[0] in _WARNED):
            emit = self._recorder.normal if planned.why[0] in _WAITS else self._recorder.warning
            emit(obj, planned.why[0], cut(planned.why[1], LONGEST))
        written = await self.status.write(obj, obj.get("status") or {}, wanted.to_dict())
        if written is not None:
            self._note(self._memory.setdefault(obj["metadata"]["uid"], Memory()), written.answer)
        return min((one.wake for one in (told, collected) if one is not None and one.wake is not None), default=None)

    def _note(self, memory: Memory, obj: Object) -> None:
        """Remember the object as it is after a write."""
        memory.written, memory.written_at = version_of(obj), self._clock()

    async def _patch(self, obj: Object, stored: SlurmJobStatus, wanted: SlurmJobStatus, version: str | None) -> Object:
        metadata = obj["metadata"]
        answer = await self._kube.patch_status(
            SLURMJOBS,
            metadata["name"],
            patch_between(stored.to_dict(), wanted.to_dict()),
            metadata["namespace"],
            resource_version=version,
            uid=metadata["uid"],
        )
        self._note(self._memory.setdefault(metadata["uid"], Memory()), answer)
        return answer
