"""Cancels jobs that had ended and that slurmctld runs again after a crash (`model.slurm_records.returned`).

They are found in the list of jobs that is read for all SlurmJobs. It is read until one that was asked for some time
after the end has shown no such job: by then slurmctld has written that the job is over. A SlurmJob that is deleted in
this time is remembered so long; one that is there is recognised whenever its job comes back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from slinky_api import labels
from slinky_api.conditions import SlurmJobCondition
from slinky_api.events import EventReason
from slinky_operator.kube.errors import KubeError
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Recorder
from slinky_operator.slurmjob.model.slurm_records import marks, returned
from slurm_client.errors import NotFound, SlurmError
from slurm_client.models import Job

logger = logging.getLogger(__name__)

SAVED: Final = timedelta(seconds=30)
"""After a change slurmctld has surely written it: it waits for 5 s, and writing takes its time."""

MOST: Final = 10_000
"""SlurmJobs of a Cluster that are remembered; of more, the first of the namespace that has most are forgotten."""

AGAIN_S: Final = 15.0
"""Seconds until a cancellation is tried again that Slurm has not carried out."""


class Client(Protocol):
    """What is used of `slurm_client.SlurmClient`."""

    async def job_parts(self, job_id: int, *, details: bool = True) -> tuple[Job, ...]:
        """All records of a job."""
        ...

    async def cancel_job(self, job_id: int) -> None:
        """End a job."""
        ...


@dataclass(frozen=True, slots=True)
class _Noted:
    obj: Object
    until: datetime


def _kept(obj: Object) -> Object:
    """What is read of a SlurmJob here, and what an Event needs: the cache does not count its long texts any more."""
    about, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    metadata = {key: about[key] for key in ("name", "namespace", "uid", "deletionTimestamp") if key in about}
    if labels.is_true(about.get("annotations"), labels.ANNOTATION_CANCEL):
        metadata["annotations"] = {labels.ANNOTATION_CANCEL: "true"}
    finished = [{key: one.get(key) for key in ("type", "status")} for one in status.get("conditions") or ()]
    return {
        **{key: obj[key] for key in ("apiVersion", "kind") if key in obj},
        "metadata": metadata,
        "spec": {
            **({"external": {}} if spec.get("external") is not None else {}),
            **({"cancelPolicy": spec["cancelPolicy"]} if "cancelPolicy" in spec else {}),
        },
        "status": {
            **{key: status[key] for key in ("user", "jobId", "failedAttempts") if key in status},
            "submission": {"attempt": (status.get("submission") or {}).get("attempt")},
            "conditions": [one for one in finished if one["type"] == SlurmJobCondition.FINISHED],
        },
    }


class _OfCluster:
    """SlurmJobs of one Cluster, by uid; a namespace that deletes thousands keeps no other one from being remembered."""

    def __init__(self, known: Iterable[_Noted] = ()) -> None:
        self.by_uid: dict[str, _Noted] = {}
        self._uids: dict[str, dict[str, None]] = {}
        """By namespace, in the order in which they came."""
        for one in known:
            self.add(one)

    def add(self, one: _Noted) -> None:
        about = one.obj["metadata"]
        uid = str(about.get("uid"))
        self.by_uid[uid] = one
        self._uids.setdefault(str(about.get("namespace")), {})[uid] = None
        if len(self.by_uid) > MOST:
            largest = max(self._uids.values(), key=len)
            first = next(iter(largest))
            del largest[first], self.by_uid[first]


class EndedJobs:
    """SlurmJobs of all Clusters whose jobs have ended.

    Parameters
    ----------
    find
        SlurmJobs by uid, from the cache.
    recorder
        Events.
    """

    def __init__(self, find: Callable[[str], Iterable[Object]], recorder: Recorder) -> None:
        self._find = find
        self._recorder = recorder
        self._noted: dict[str, _OfCluster] = {}
        """By the uid of the Cluster."""
        self._looked_at: dict[str, datetime] = {}
        """When the last list of each Cluster was asked for that was looked through."""

    def note(self, cluster_uid: str, obj: Object, ended_at: datetime) -> bool:
        """Remember a SlurmJob whose job nobody wants any more; whether lists of its Cluster are needed for that."""
        looked_at = self._looked_at.get(cluster_uid)
        until = ended_at + SAVED
        status = obj.get("status") or {}
        if not any(status.get(key) for key in ("submission", "jobId", "failedAttempts")):
            # It was never submitted.
            return False
        if not returned.is_unwanted(obj) or (looked_at is not None and looked_at >= until):
            return False
        self._noted.setdefault(cluster_uid, _OfCluster()).add(_Noted(_kept(obj), until))
        return True

    def looked(self, cluster_uid: str, asked_at: datetime) -> None:
        """A list of all jobs has been looked through: what had ended some time before it stays so."""
        self._looked_at[cluster_uid] = asked_at
        known = self._noted.pop(cluster_uid, _OfCluster()).by_uid
        left = [one for one in known.values() if one.until > asked_at]
        if left:
            self._noted[cluster_uid] = _OfCluster(left)

    def forget(self, cluster_uid: str) -> None:
        """A Cluster is gone."""
        _ = self._noted.pop(cluster_uid, None)
        _ = self._looked_at.pop(cluster_uid, None)

    def is_waiting(self, cluster_uid: str) -> bool:
        """Whether lists of a Cluster's jobs are needed."""
        return cluster_uid in self._noted

    def owner(self, cluster_uid: str, record: Job) -> Object | None:
        """The SlurmJob of a job that has ended, if this record shows that it is back."""
        mark = marks.read(record.extra)
        if mark is None or record.state.is_finished:
            return None
        of_cluster = self._noted.get(cluster_uid)
        noted = of_cluster.by_uid.get(mark.uid) if of_cluster is not None else None
        obj = next(iter(self._find(mark.uid)), noted.obj if noted is not None else None)
        return obj if obj is not None and returned.is_back(obj, mark, record) else None

    def tell(self, obj: Object, number: int) -> None:
        """Say that such a job was cancelled."""
        words = (
            f"job {number} had ended, and Slurm had it in its queue again: slurmctld was killed before it had written "
            "the end. The job was cancelled"
        )
        self._recorder.warning(obj, EventReason.ENDED_JOB_CANCELLED, words)


class Cancelling:
    """Cancels such jobs of one Cluster.

    Parameters
    ----------
    cluster_uid
        The Cluster.
    client
        Of its Slurm.
    ended
        The SlurmJobs whose jobs have ended.
    pause_s
        Seconds until what has failed is tried again.
    """

    def __init__(self, cluster_uid: str, client: Client, ended: EndedJobs, pause_s: float = AGAIN_S) -> None:
        self._cluster_uid = cluster_uid
        self._client = client
        self._ended = ended
        self._pause_s = pause_s
        self._due: dict[int, None] = {}
        self._task: asyncio.Task[None] | None = None

    def seen(self, record: Job) -> None:
        """Look at what the list of jobs shows."""
        if self._ended.owner(self._cluster_uid, record) is None:
            return
        self._due[marks.number_of(record)] = None
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="cancel jobs that had ended")

    def stop(self) -> None:
        """Cancel no more."""
        self._due.clear()
        if self._task is not None:
            _ = self._task.cancel()

    async def _run(self) -> None:
        while self._due:
            for number in list(self._due):
                try:
                    await self._cancel(number)
                except (SlurmError, KubeError) as error:
                    logger.info("job %s, which had ended, was not cancelled: %s", number, error)
                else:
                    _ = self._due.pop(number, None)
            if self._due:
                await asyncio.sleep(self._pause_s)

    async def _cancel(self, number: int) -> None:
        """Cancel a job, if slurmctld still has it as that of a SlurmJob which has ended."""
        try:
            parts = await self._client.job_parts(number, details=False)
            owners = [self._ended.owner(self._cluster_uid, one) for one in parts if not one.state.is_finished]
            if not owners or None in owners:
                return
            await self._client.cancel_job(number)
        except NotFound:
            return
        if owners[0] is not None:
            self._ended.tell(owners[0], number)
