"""Calls to Slurm about the job of an object: submission as its user, hold, end, and history.

A job is submitted with a token of its user that lives for minutes and is kept nowhere; with a Slurm elsewhere, whose
keys are not here, with the operator's own token and the user's name. Jobs are ended with the operator's token: that
must work when the user was taken away meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from slinky_api.v1alpha1.slurmjob.kind import ArrayCounts, ArrayTasks
from slinky_operator.jobs import external
from slinky_operator.runtime import threads
from slinky_operator.slurm.releases import Release
from slinky_operator.slurm.tokens.signing_keys import SigningKey
from slinky_operator.slurmjob.model.slurm_records import marks, reading, records
from slinky_operator.slurmjob.model.slurm_records.marks import Mark
from slinky_operator.slurmjob.model.snapshot import History
from slinky_operator.slurmjob.model.stages.late_calls import SETTLED
from slurm_client import JobSpec, MintedToken, SlurmClient, errors
from slurm_client.encode.jobs import EXTERNAL
from slurm_client.errors import SlurmError
from slurm_client.models import JobRecord
from slurm_client.models.jobspec import SubmittedJob

LIFE: Final = timedelta(minutes=2)
"""Of a user's token."""

TIMEOUT: Final = 20.0
"""Seconds for a submission, all attempts to connect included; `late_calls.SETTLED` must be longer."""

TOLERANCE: Final = timedelta(seconds=5)
"""By which the clocks of operator and slurmctld may differ."""

CLOCKS: Final = timedelta(minutes=15)
"""By which they may differ before a job is missed that has begun and ended since: one with its mark is a candidate, and
nothing is submitted again. A list of more time is long."""

REFUSALS: Final = (
    errors.InvalidRequest,
    errors.NotSupported,
    errors.Unauthorized,
    errors.PermissionDenied,
    errors.NotFound,
    errors.Conflict,
)
"""Errors with which Slurm says that it has not taken a job."""

TURNED_AWAY: Final = frozenset({400, 401, 403, 404, 405, 406, 411, 413, 414, 415, 417, 431, 511})
"""Statuses that say without Slurm's words that a call was not carried out; after others of a proxy it may have been."""

PASSING: Final = frozenset(
    f"ESLURM_{name}"
    for name in (
        "ACCOUNTING_POLICY",
        "MAX_JOB_COUNT",
        "REQUESTED_NODE_CONFIG_UNAVAILABLE",
        "REQUESTED_PART_CONFIG_UNAVAILABLE",
        "NODES_BUSY",
        "NODE_NOT_AVAIL",
        "PARTITION_NOT_AVAIL",
        "LICENSES_UNAVAILABLE",
        "RESERVATION_BUSY",
        "RESERVATION_NOT_USABLE",
        "IN_STANDBY_MODE",
    )
)
"""Refusals that are over when other jobs have ended, or when nodes or a partition are there."""

OVER: Final = (errors.InvalidTransition, errors.NotFound)
"""The job has ended before it could be held or released."""


def as_user(client: SlurmClient, user: str, key: SigningKey | None) -> SlurmClient:
    """A client for a user on the operator's connections."""
    if key is None:
        return client.as_user(user)
    token = MintedToken(key.value, user, LIFE, algorithm=key.algorithm, key_id=key.key_id)
    return client.as_user(user, token)


def is_refusal(error: SlurmError) -> bool:
    """Whether Slurm has certainly not done what was asked: it says so itself, or the call has not come so far.

    A proxy's 408, 409, 425 or 429 does not say whether slurmrestd has got the call.
    """
    if not isinstance(error, REFUSALS):
        return False
    is_slurms = any(report.number is not None for report in error.reports)
    return is_slurms or error.status is None or error.status in TURNED_AWAY


def may_pass(error: SlurmError) -> bool:
    """Whether what was refused may be taken later although nobody changes it; also where Slurm does not say why."""
    return isinstance(error, errors.Unauthorized) or error.number is None or error.name in PASSING


def check_release(client: SlurmClient, job: JobSpec) -> None:
    """Refuse a job without a script where the Slurm that has answered last is older than such jobs need.

    Raises
    ------
    NotSupported
        With the release.
    """
    known, oldest = Release.read(client.slurm_version), Release.read(external.RELEASE)
    if known is None or oldest is None or EXTERNAL not in (job.flags or ()):
        return
    if (*known.series, known.patch or 0) < (*oldest.series, oldest.patch or 0):
        raise errors.NotSupported(f"this is Slurm {known}")


def told(error: SlurmError, *, is_external: bool) -> str:
    """What is said of a job that cannot be submitted; of one without a script, which Slurm has such."""
    if is_external and isinstance(error, errors.NotSupported):
        return f"a job without a script (spec.external) needs Slurm {external.RELEASE} or newer: {error}"
    return str(error)


def was_not_sent(error: SlurmError) -> bool:
    """Whether nothing was asked of Slurm: a client that is closed, for example, may or may not have sent its call."""
    return isinstance(error, errors.Unreachable) and not error.sent


async def clock(client: SlurmClient) -> datetime:
    """The time of slurmctld, whose clock is that of all times in its answers.

    Raises
    ------
    SlurmError
        Slurm did not say it.
    """
    now = (await client.diag(timeout=TIMEOUT)).now
    if now is None:
        raise errors.DecodeError("slurmctld's diagnostics contain no time")
    return now


async def submit(client: SlurmClient, user: str, key: SigningKey | None, jobs: Sequence[JobSpec]) -> SubmittedJob:
    """Submit a job, or the components of one, as its user.

    Raises
    ------
    SlurmError
        One for which `is_refusal`, or `was_not_sent`, if there is no job; any other leaves that open.
    """
    check_release(client, jobs[0])
    view = as_user(client, user, key)
    try:
        if len(jobs) > 1:
            return await view.submit_het_job(jobs, timeout=TIMEOUT)
        return await view.submit_job(jobs[0], timeout=TIMEOUT)
    finally:
        await view.close()


async def is_still_of(client: SlurmClient, job_id: int, user: str, uid: str, attempt: int | None = None) -> bool:
    """Whether a number is still that of a job of a SlurmJob, just before an order about it; False if it has ended.

    slurmctld gives numbers again after it has lost its state, and a list may be from before.

    Parameters
    ----------
    job_id
        The number.
    user
        Whose job it is.
    uid
        Of the SlurmJob.
    attempt
        Which submission it is of; None for any.

    Raises
    ------
    SlurmError
        slurmctld does not say it.
    """
    try:
        parts = await client.job_parts(job_id, details=False, timeout=TIMEOUT)
    except errors.NotFound:
        return False
    # Parts of one job were submitted together; its user may have changed the mark of some.
    found = (marks.read(one.extra) for one in parts if one.user == user and not one.state.is_finished)
    return any(mark is not None and mark.uid == uid and attempt in {None, mark.attempt} for mark in found)


async def hold(client: SlurmClient, user: str, key: SigningKey | None, job_id: int, *, held: bool) -> None:
    """Hold a job, or release it, as its user: what an administrator holds, a user cannot release.

    Raises
    ------
    SlurmError
        Slurm did not.
    """
    view = as_user(client, user, key)
    try:
        await (view.hold_job if held else view.release_job)(job_id)
    except OVER:
        return
    finally:
        await view.close()


async def cancel(client: SlurmClient, job_id: int) -> None:
    """End a job, or all tasks of an array; no error if it has ended.

    Raises
    ------
    SlurmError
        Slurm did not.
    """
    try:
        await client.cancel_job(job_id)
    except errors.NotFound:
        return


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """Which job slurmdbd is asked for."""

    mark: Mark
    user: str
    name: str
    since: datetime
    """When its submission was begun."""
    job_id: int | None = None
    """None if it is not known whether there is one."""
    counted: ArrayCounts | None = None
    """What was counted of an array when last looked."""
    tasks: ArrayTasks | None = None
    """Which of its tasks had ended."""
    settled: timedelta = SETTLED
    """How long after its beginning the submission may have reached slurmctld."""
    namespace: str = ""
    """Namespace of the SlurmJob: what is read of it has its turn by namespace."""

    @property
    def key(self) -> threads.Key:
        """What the reading of its records is known by."""
        return self.namespace, "history", self.mark.text


async def history(client: SlurmClient, wanted: HistoryQuery, now: datetime) -> History:
    """Ask slurmdbd how a job has ended, or whether a submission has become one.

    slurmdbd keeps the mark where AccountingStoreFlags has job_extra; elsewhere jobs of the same user and name that were
    submitted since then are candidates. So are jobs with the mark that were submitted at another time: users can change
    marks, and clocks may differ. Name and account are not required, since users can change those of their jobs too.

    Raises
    ------
    SlurmError
        slurmdbd did not answer.
    """
    if wanted.job_id is not None:
        fitting = [one for one in await client.db.job_records(wanted.job_id) if _fits(one, wanted)]
        # Of several jobs that had the number, the one with the mark counts.
        found = [one for one in fitting if one.extra == wanted.mark.text] or fitting
        return History(await reading.seen(wanted.key, records.of_history, found, wanted.counted, wanted.tasks))
    # By name slurmdbd cannot be asked: it takes a name with a comma for two.
    listed = await client.db.jobs(wanted.since - CLOCKS, now + CLOCKS, steps=False, users=[wanted.user])
    runs: dict[int, list[JobRecord]] = defaultdict(list)
    for one in listed:
        if one.user == wanted.user and one.extra == wanted.mark.text:
            runs[_number(one)].append(one)
    timely = [number for number, found in runs.items() if _is_timely(found, wanted)]
    if timely:
        first = min(timely, key=lambda number: (runs[number][0].name != wanted.name, number))
        return History(await reading.seen(wanted.key, records.of_history, runs[first], wanted.counted, wanted.tasks))
    unmarked = {_number(one) for one in listed if _fits(one, wanted) and not one.extra and one.name == wanted.name}
    return History(candidates=tuple(sorted(runs.keys() | unmarked)))


def _fits(record: JobRecord, wanted: HistoryQuery) -> bool:
    """Whether a record may be of the job: numbers of jobs come again after slurmctld has lost its state.

    The mark of another SlurmJob, or attempt, is proof that it is not. Any other word may be its user's.
    """
    if marks.read(record.extra) not in {None, wanted.mark}:
        return False
    began = record.submit_time
    return record.user == wanted.user and began is not None and began >= wanted.since - TOLERANCE


def _is_timely(runs: Sequence[JobRecord], wanted: HistoryQuery) -> bool:
    """Whether a job was submitted while a call was under way; what was requeued has later runs too."""
    first = min((run.submit_time for run in runs if run.submit_time is not None), default=None)
    return first is not None and wanted.since - TOLERANCE <= first <= wanted.since + wanted.settled + TOLERANCE


def _number(record: JobRecord) -> int:
    return record.array_job_id or record.id
