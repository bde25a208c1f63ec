"""The judge: from what was seen to what is wrong. Pure; nobody is asked.

A job that the campaign did not cancel runs once, from start to end, and is recorded so. What Slurm itself does when
slurmctld is killed is no finding (docs/promises.md): starts and ends of the last seconds before are forgotten, so such
a job is launched again, fails, waits held, or stays RUNNING in the records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from tests.campaign.faults.claims import DATABASE_FULL, STATE_FULL
from tests.campaign.faults.machines import LOSSES, NODE_GONE, lost_after, lost_with
from tests.campaign.faults.network import SLURMCTLD_UNREACHABLE
from tests.campaign.faults.processes import (
    MARIADB_FROZEN,
    MARIADB_KILLED,
    SLURMCTLD_ENDED,
    SLURMCTLD_KILLED,
    SLURMDBD_FROZEN,
    SLURMDBD_KILLED,
)
from tests.campaign.lanes.actions import DELETE_SLURMCTLD, EDIT_CLUSTER
from tests.campaign.lanes.jobs import KINDS, RESERVATION
from tests.campaign.lanes.pods import POD_KINDS
from tests.campaign.witness import NO_NODES, OBJECT, Asked, Happened, Line, Record, Seen, nodes_of

FORGOTTEN: Final = 20.0
"""Seconds before the kill of slurmctld whose starts and ends it may forget."""

GRACE: Final = 30.0
"""Seconds that a slurmctld whose pod is deleted has for its end, in which it saves its state."""

AROUND: Final = 5.0
"""Seconds after it in which what was on its way arrives."""

AWAY: Final = 120.0
"""Seconds after a lost Node is back in which what was there may still be away."""

SLURMDBD_AWAY: Final = (
    SLURMCTLD_UNREACHABLE, SLURMDBD_KILLED, SLURMDBD_FROZEN, MARIADB_KILLED, MARIADB_FROZEN, DATABASE_FULL
)  # fmt: skip
"""What keeps slurmctld from sending records, which it has in its memory until slurmdbd has answered."""

UNSENT: Final = 60.0
"""Seconds after that in which records may still wait: a packet that was dropped is sent again after a time that doubles
each time, and slurmdbd needs its database first."""

MET_NOTHING: Final = "met nothing"
"""A finding about the campaign itself."""

KILLED: Final = "killed"
"""A finding about a job that has begun and not ended."""

ENDLESS: Final = float("inf")
POD: Final = "pod"
"""What a pod writes in the place of the number of its job, which it does not know."""

Times = tuple[tuple[float, float], ...]
"""Beginnings and ends."""

ENDED: Final = frozenset({"COMPLETED"})

TENANTS: Final = '"field": "jobs.tenants'
"""In an edit of the Cluster."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes
    ----------
    what
        Kind of it: shrinking looks for plans with the same kind.
    about
        Job, object or process.
    why
        What was seen.
    at
        When; 0 where it has no time.
    """

    what: str
    about: str
    why: str
    at: float = 0.0

    @override
    def __str__(self) -> str:
        return f"{self.what}: {self.about}: {self.why}"


def judge(seen: Seen) -> list[Finding]:
    """Everything that is wrong."""
    found = [finding for asked in seen.asked for finding in _of_job(asked, seen)]
    for what, all_of_it in (
        ("not settled", seen.unsettled),
        ("orphan", seen.orphans),
        ("cost", seen.costs),
        ("secret told", seen.leaks),
        ("hot loop", seen.loops),
    ):
        found += [Finding(what, *one.partition(": ")[::2]) for one in all_of_it]
    return [*found, *_without_effect(seen.happened)]


def _of_job(asked: Asked, seen: Seen) -> Iterator[Finding]:
    lines, kills = seen.lines.get(asked.mark, ()), _forgetful(seen.happened)
    records = [one for one in seen.records if one.mark == asked.mark and not _is_refusal(asked, one)]
    about = f"{asked.kind} job {asked.job or '(no id)'} {asked.mark}"
    kind = KINDS.get(asked.kind) or POD_KINDS[asked.kind]
    if not lines and not records and (not asked.job or (asked.mark in seen.refused and _is_granted_otherwise(seen))):
        return  # it was never accepted
    starts = [one.at for one in lines if one.what == "start"]
    ends = [one.at for one in lines if one.what == "end"]
    moments = (asked.at, max(asked.at, asked.until), *starts, *ends)
    lost = _ended_with_node(lines, records, seen.happened)
    excused = lost or any(_is_near(at, kills) for at in moments)
    ended_by_slurm = _ended_with_reservation(asked, records, seen.happened)
    if not excused and not kind.cancelled:
        found = _of_lines(asked, kind.tasks, lines, about)
        yield from (one for one in found if not (ended_by_slurm and one.what == KILLED))
    ids = {one.job for one in lines if one.job != POD} | {
        one.job.partition("_")[0].partition("+")[0] for one in records
    }
    if kind.as_object and len(ids) > 1:
        yield Finding("submitted twice", about, f"as jobs {', '.join(sorted(ids))}", asked.at)
    if kind.cancelled and len(starts) > 1 and not excused:
        yield Finding("ran twice", about, f"{len(starts)} starts: {_told(lines)}", starts[-1])
    near = (*kills, *_unrecorded(seen.happened))
    if not lost and not any(_is_near(at, near) for at in moments):
        # Slurm lets nobody complete a job without a script: that of a pod that has ended is cancelled.
        is_held = asked.kind in POD_KINDS and POD_KINDS[asked.kind].is_bridged
        kept = [one for one in records if not _was_not_launched(one, lines, records) and one not in ended_by_slurm]
        if kept or not records:
            yield from _of_records(kept, about, cancelled=kind.cancelled or is_held)


def _is_refusal(asked: Asked, record: Record) -> bool:
    """Whether slurmctld has refused a job, which it records as one that has failed without a node.

    Of a heterogeneous job it takes back the parts before the one that it refuses, and records them as cancelled.
    """
    taken_back = asked.kind == "heterogeneous" and record.state.startswith("CANCELLED")
    return asked.job in {"", OBJECT} and (record.state == "FAILED" or taken_back) and record.nodes == NO_NODES


def _is_granted_otherwise(seen: Seen) -> bool:
    """Whether somebody has changed which namespaces have users: a bare pod of one without fails, as it has to."""
    return any(one.what.startswith(EDIT_CLUSTER) and TENANTS in one.what for one in seen.happened)


def forgotten(lines: Mapping[str, tuple[Line, ...]], happened: tuple[Happened, ...]) -> set[str]:
    """Marks of jobs whose end slurmctld may have forgotten: it shows them as running although all they began has ended.

    slurmctld would see that when the node registers the next time, in minutes; an administrator cancels them before.
    """
    kills = _forgetful(happened)
    return {
        mark
        for mark, mine in lines.items()
        if len({(one.task, one.restarts) for one in mine if one.what == "start"})
        == sum(one.what == "end" for one in mine)
        and any(_is_near(one.at, kills) for one in mine if one.what == "end")
    }


def _without_effect(happened: tuple[Happened, ...]) -> Iterator[Finding]:
    """Faults that broke nothing: the campaign fails there, unless what they are about was on a Node that was lost."""
    lost = [
        (one.at - AROUND, ENDLESS if one.what == NODE_GONE else one.until + AWAY)
        for one in happened
        if one.what in LOSSES
    ]
    for one in happened:
        if not one.has_met and not any(begun <= one.at <= until for begun, until in lost):
            yield Finding(MET_NOTHING, one.what, one.said, one.at)


def _forgetful(happened: tuple[Happened, ...]) -> Times:
    """When slurmctld may have forgotten what was going on."""
    full, found = _times(happened, STATE_FULL), []
    for one in happened:
        killed = one.what == SLURMCTLD_KILLED or (one.what in LOSSES and "slurmctld" in lost_with(one.said))
        deleted = one.what.startswith(DELETE_SLURMCTLD)
        ended = killed or deleted or one.what == SLURMCTLD_ENDED
        last = one.at + GRACE if deleted else one.at
        since = [span for span in full if span[0] <= last and one.at <= span[1] + AROUND] if ended else []
        if killed or since:
            until = _killed(one) if one.what in LOSSES else one.until
            unsaved = [min(last, end) for _, end in since]
            found.append((min([one.at, *(begun for begun, _ in since)]), max([until, *unsaved])))
    return tuple(found)


def _unrecorded(happened: tuple[Happened, ...]) -> Times:
    """When MariaDB may have lost, or not taken, a record, or slurmctld lost what it had not sent yet."""
    lost = ((one.at, _killed(one)) for one in happened if one.what in LOSSES and "mariadbd" in lost_with(one.said))
    away = [span for what in SLURMDBD_AWAY for span in _times(happened, what)]
    unsent = (
        (begun, last)
        for killed, last in _forgetful(happened)
        for begun, until in away
        if begun <= last and killed <= until + UNSENT
    )
    return (*_times(happened, MARIADB_KILLED), *_times(happened, DATABASE_FULL), *lost, *unsent)


def _ended_with_node(lines: tuple[Line, ...], records: list[Record], happened: tuple[Happened, ...]) -> bool:
    """Whether a job was on a Node when that was lost: by what it wrote, or by where Slurm says that it was."""
    for one in happened:
        gone = lost_with(one.said) if one.what in LOSSES else ()
        for line in lines:
            after = [end.at for end in lines if end.what == "end" and end.task == line.task and end.at >= line.at]
            was_there = line.at - AROUND <= _killed(one) and one.at <= min(after, default=ENDLESS)
            if line.what == "start" and line.node in gone and was_there:
                return True
        for record in records:
            was_there = record.start - AROUND <= _killed(one) and one.at <= (record.end or ENDLESS)
            if nodes_of(record.nodes) & {*gone} and was_there:
                return True
    return False


def _killed(loss: Happened) -> float:
    """When the last process of a lost Node was killed."""
    return loss.at + lost_after(loss.said)


def _ended_with_reservation(asked: Asked, records: list[Record], happened: tuple[Happened, ...]) -> list[Record]:
    """Records of attempts that Slurm has ended since their reservation ended, which an administrator has done.

    A job that had not begun is held by Slurm when its reservation is deleted or ends; the administrator of the campaign
    releases it, and it has to run.
    """
    ours = RESERVATION.format(mark=asked.mark)
    commands = [one for one in happened if ours in one.what.split() and "create" not in one.what.split()]
    since = [one.at for one in commands if "in use" not in one.said]
    return [one for one in records if one.state == "TIMEOUT" and any(one.end >= at - 1 for at in since)]


def _was_not_launched(record: Record, lines: Sequence[Line], records: list[Record]) -> bool:
    """Whether Slurm has placed an attempt, not launched it, and requeued the job, which then ran.

    The node had just been lost, or slurmctld reconfigured in that moment (docs/promises.md), or the node still ran a
    job of the same number, which slurmctld had forgotten.
    """
    task = record.job.partition("_")[2]
    starts = [one.at for one in lines if one.what == "start" and task in {"", one.task}]
    began = any(record.start - 1 <= at <= record.end + 1 for at in starts)
    is_over = record.state in {"NODE_FAIL", "REQUEUED"}
    return is_over and not began and any(one.state == "COMPLETED" for one in records)


def _of_lines(asked: Asked, tasks: int, lines: tuple[Line, ...], about: str) -> Iterator[Finding]:
    whole: set[str] = set()
    for job, task in sorted({(one.job, one.task) for one in lines}):
        mine = [one for one in lines if (one.job, one.task) == (job, task)]
        starts = [one for one in mine if one.what == "start"]
        ends = [one for one in mine if one.what == "end"]
        if not ends:
            yield Finding(KILLED, about, f"it started and did not end: {_told(mine)}", starts[-1].at)
        if len(starts) > 1:
            yield Finding("ran twice", about, f"{len(starts)} starts: {_told(mine)}", starts[1].at)
        whole.add(task)
    if len(whole) < tasks:
        yield Finding("lost", about, f"{tasks - len(whole)} of {tasks} parts never started", asked.at)


def _of_records(records: list[Record], about: str, *, cancelled: bool) -> Iterator[Finding]:
    if not records:
        yield Finding("not recorded", about, "slurmdbd has no record")
    allowed = {*ENDED, "CANCELLED"} if cancelled else ENDED
    for one in records:
        if one.state not in allowed:
            yield Finding("recorded otherwise", about, f"{one.job} is {one.state} {one.code} on {one.nodes}", one.end)


def _times(happened: tuple[Happened, ...], what: str) -> Times:
    return tuple((one.at, one.until) for one in happened if one.what == what)


def _is_near(at: float, times: Times) -> bool:
    return any(begun - FORGOTTEN <= at <= until + AROUND for begun, until in times)


def _told(lines: list[Line] | tuple[Line, ...]) -> str:
    return "; ".join(f"{one.what} on {one.node} as attempt {one.restarts} at {one.at:.1f}" for one in lines)
