"""Orders about a job that Slurm has: end, hold, release. Which of them is due is decided in `model.orders`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from slinky_api.conditions import Reason
from slinky_api.events import EventReason
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Recorder
from slinky_operator.reconcile.text import cut
from slinky_operator.slurmjob.execute import slurm_calls
from slinky_operator.slurmjob.execute.memory import Memory
from slinky_operator.slurmjob.execute.reports import LONGEST, Reports
from slinky_operator.slurmjob.execute.slurm_access import KEY_VALID_S, KeyUnknown, SlurmAccess
from slinky_operator.slurmjob.model.news import Note, with_note
from slinky_operator.slurmjob.model.slurm_records.records import Seen
from slinky_operator.slurmjob.model.snapshot import Snapshot
from slinky_operator.slurmjob.model.stages import cancellation, holds_and_cancels, late_calls
from slinky_operator.slurmjob.model.steps import GiveOrder, OrderKind, Plan
from slinky_operator.slurmjob.polling.queues import Queues
from slurm_client import SlurmClient
from slurm_client.errors import SlurmError

logger = logging.getLogger(__name__)


class Orders:
    """Gives orders to Slurm.

    Parameters
    ----------
    access
        The Slurm of Clusters.
    reports, recorder
        The status, and Events.
    queues
        The jobs of Clusters.
    now
        The wall clock.
    """

    def __init__(
        self,
        access: SlurmAccess,
        reports: Reports,
        recorder: Recorder,
        queues: Queues,
        now: Callable[[], datetime],
    ) -> None:
        self._access = access
        self._reports = reports
        self._recorder = recorder
        self._queues = queues
        self._now = now

    async def give(
        self, obj: Object, snapshot: Snapshot, order: GiveOrder, memory: Memory, planned: Plan
    ) -> tuple[Object, Snapshot, Plan]:
        """End, hold or release the job; return the object, what is known and what is to be shown after that."""
        client, job, seen, kind = self._access.client(snapshot.cluster), snapshot.job, order.seen, order.kind
        if client is None:
            return obj, snapshot, planned
        before = job.status
        try:
            key = await self._access.key(snapshot.cluster) if kind is not OrderKind.CANCEL else None
            if not await self._is_still_ours(client, snapshot, seen):
                return obj, snapshot, planned
            if kind is OrderKind.HOLD and not before.held:
                # Noted first: a hold of which nothing is known would never be released.
                job = job.model_copy(update={"status": before.model_copy(update={"held": True})})
                obj = await self._reports.patch(obj, before, job.status, memory)
            if kind is OrderKind.CANCEL:
                await slurm_calls.cancel(client, seen.job_id)
            else:
                await slurm_calls.hold(client, seen.user, key, seen.job_id, held=kind is OrderKind.HOLD)
        except KeyUnknown as error:
            return (
                obj,
                snapshot,
                Plan(order, with_note(planned.news, Note(Reason.KEY_PENDING, str(error))), KEY_VALID_S),
            )
        except SlurmError as error:
            words = cut(str(error), LONGEST) or type(error).__name__
            logger.info("%s/%s: %s failed: %s", job.namespace, job.name, kind.name.lower(), words)
            given = holds_and_cancels.answered(kind, seen, job.metadata.generation, memory.order, self._now(), words)
            wake = (given.again - given.at).total_seconds()
            memory.order, planned = given, Plan(order, with_note(planned.news, holds_and_cancels.refused(given)), wake)
            # A job whose hold was refused is not held; one whose answer was lost may be.
            is_refusal = slurm_calls.is_refusal(error)
            return obj, snapshot if is_refusal else replace(snapshot, job=job), planned
        memory.order = holds_and_cancels.answered(kind, seen, job.metadata.generation, memory.order, self._now())
        if kind is OrderKind.CANCEL and memory.cancelled != seen.job_id:
            memory.cancelled = seen.job_id
            self._recorder.normal(obj, EventReason.JOB_CANCELLED, cancellation.done(job, seen.job_id))
        elif kind is OrderKind.RELEASE:
            job = job.model_copy(update={"status": before.model_copy(update={"held": None})})
        self._look_again(snapshot, seen)
        return obj, replace(snapshot, job=job), planned

    async def _is_still_ours(
        self, client: SlurmClient, snapshot: Snapshot, seen: Seen, *, second: bool = False
    ) -> bool:
        """Whether a number is still that of the job; if slurmctld has lost it, a new list says what is left."""
        job, begun = snapshot.job, snapshot.job.status.submission
        attempt = begun.attempt if begun is not None and not second else None
        if await slurm_calls.is_still_of(client, seen.job_id, job.status.user or "", job.uid, attempt):
            return True
        logger.info("%s/%s: number %s is not that of its job any more", job.namespace, job.name, seen.job_id)
        if snapshot.cluster is not None:
            self._queues.poll_now(snapshot.cluster.uid)
        return False

    def _look_again(self, snapshot: Snapshot, seen: Seen) -> None:
        """See what has become of a job: of one with parts by the list, since its number has only one of them."""
        if snapshot.cluster is None:
            return
        if snapshot.job.status.array:
            self._queues.poll_now(snapshot.cluster.uid)
        else:
            self._queues.changed(snapshot.cluster.uid, snapshot.job.namespace, seen.job_id)

    async def cancel_second(self, obj: Object, snapshot: Snapshot, seen: Seen, memory: Memory) -> None:
        """End a second job; it is looked for again in the next pass."""
        client, job = self._access.client(snapshot.cluster), snapshot.job
        if client is None:
            return
        before = memory.second_orders.get(seen.job_id)
        refusal = ""
        try:
            if not await self._is_still_ours(client, snapshot, seen, second=True):
                return
            await slurm_calls.cancel(client, seen.job_id)
        except SlurmError as error:
            refusal = cut(str(error), LONGEST) or type(error).__name__
            logger.info("%s/%s: second job %s was not cancelled: %s", job.namespace, job.name, seen.job_id, refusal)
        given = holds_and_cancels.answered(
            OrderKind.CANCEL, seen, job.metadata.generation, before, self._now(), refusal
        )
        memory.second_orders[seen.job_id] = given
        if before is None or bool(before.refusal) != bool(refusal):
            reason = Reason.CANCEL_REFUSED if refusal else EventReason.LATE_JOB_CANCELLED
            self._recorder.warning(
                obj, reason, holds_and_cancels.refused(given).message if refusal else late_calls.words(seen, job)
            )
        self._look_again(snapshot, seen)
