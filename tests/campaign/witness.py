"""What was seen of jobs: the lines that they wrote themselves, and the records of slurmdbd."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

FIELDS = ("jobid", "jobname", "state", "exitcode", "start", "end", "nodelist")
"""Of sacct, in the order of `Record`."""


UNENDED = frozenset({"RUNNING", "PENDING", "SUSPENDED", "REQUEUED"})
"""States of records without an end."""

NO_NODES = "None assigned"
"""What sacct says of a job that had no node."""

OBJECT = "of a SlurmJob"
"""Instead of the id of a job, where Kubernetes has accepted a SlurmJob."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A job that was submitted.

    Attributes
    ----------
    mark
        Its name, which no other job has.
    kind
        In :data:`tests.campaign.lanes.jobs.KINDS`.
    at
        When, in seconds since the epoch, as all times here.
    job
        Its id; empty where sbatch failed or gave no answer: then it may be there or not.
    name
        Its name in Slurm, where that is not the mark.
    until
        When that was answered; 0 where it is not known. Of an object when its job was taken: see `with_answers`.
    """

    mark: str
    kind: str
    at: float
    job: str = ""
    name: str = ""
    until: float = 0.0


def with_answers(asked: Iterable[Asked], submissions: Mapping[str, float]) -> tuple[Asked, ...]:
    """Jobs with when Slurm took them, where the operator has submitted them.

    Parameters
    ----------
    submissions
        By names of SlurmJobs, in seconds since the epoch.
    """
    return tuple(replace(one, until=max(one.until, submissions.get(one.name or one.mark, 0.0))) for one in asked)


@dataclass(frozen=True, slots=True)
class Line:
    """What a job wrote: `start` or `end`, of which task (``-`` for none), in which attempt, where and when."""

    what: str
    job: str
    task: str
    restarts: int
    node: str
    at: float


@dataclass(frozen=True, slots=True)
class Record:
    """One attempt of a job in slurmdbd; times are 0 where there is none."""

    job: str
    mark: str
    state: str
    code: str
    start: float
    end: float
    nodes: str


@dataclass(frozen=True, slots=True)
class Happened:
    """What the campaign did: a step or its end.

    Attributes
    ----------
    at, until
        When it began, and when all of it was done or undone.
    what
        Name of the step.
    said
        What was seen: output, or why it failed.
    number
        Of the step; 0 for what is no step.
    has_met
        Whether it broke something, where it is a fault.
    """

    at: float
    until: float
    what: str
    said: str
    number: int = 0
    has_met: bool = True


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that a round is judged by.

    Attributes
    ----------
    asked, lines, records, happened
        Jobs as submitted, what they wrote by mark, their records, and what the campaign did.
    unsettled
        What had not come to its end when the time for that was over.
    orphans
        What is there and belongs to nobody, or is not there any more.
    costs
        What costs too much at rest.
    leaks
        Where a secret was found.
    loops
        What the operator asked for so often that it turns in a loop.
    refused
        Names of pods that failed since their namespace had no tenant.
    """

    asked: tuple[Asked, ...] = ()
    lines: Mapping[str, tuple[Line, ...]] = field(default_factory=dict)
    records: tuple[Record, ...] = ()
    happened: tuple[Happened, ...] = ()
    unsettled: tuple[str, ...] = ()
    orphans: tuple[str, ...] = ()
    costs: tuple[str, ...] = ()
    leaks: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    refused: frozenset[str] = frozenset()


def lines_of(text: str) -> Iterator[Line]:
    """Read the file of one job; a line that is not whole was cut with its writer."""
    for line in text.splitlines():
        words = line.split()
        if len(words) == 6:
            what, job, task, restarts, node, at = words
            yield Line(what, job, task, int(restarts), node, float(at))


def read(folder: Path, prefix: str) -> dict[str, tuple[Line, ...]]:
    """Read the files of all jobs whose mark begins so."""
    return {path.name: tuple(lines_of(path.read_text())) for path in sorted(folder.glob(f"{prefix}*"))}


def records_of(text: str, prefix: str, names: Mapping[str, str] | None = None) -> Iterator[Record]:
    """Read the lines of sacct, with ``|`` between the fields, of all jobs whose mark begins so.

    Parameters
    ----------
    names
        Marks of jobs by the name that they have in Slurm, where that is another one.
    """
    for line in text.splitlines():
        words = line.split("|")
        if len(words) == len(FIELDS) and (words[1].startswith(prefix) or words[1] in (names or {})):
            job, name, state, code, start, end, nodes = words
            mark = (names or {}).get(name, name)
            # "CANCELLED by 0"
            yield Record(job, mark, state.split()[0], code, seconds(start), seconds(end), nodes)


def unended(found: Iterable[Record]) -> list[str]:
    """Numbers of jobs whose record has no end yet.

    slurmdbd changes the newest record of a number only, which comes last: an earlier one never gets an end.
    """
    newest = {one.job: one for one in found}
    return [one.job for one in newest.values() if one.state in UNENDED]


def seconds(text: str) -> float:
    """Seconds since the epoch of a time of Slurm, which is in UTC here; 0 where there is none."""
    try:
        return datetime.fromisoformat(f"{text}+00:00").timestamp()
    except ValueError:
        return 0.0  # "Unknown", "None"


def nodes_of(text: str) -> set[str]:
    """Names of nodes in a list of Slurm: ``a-[0-1,3],b-1``."""
    found = set()
    for name, several in re.findall(r"([\w.-]+?)(?:\[([\d,-]+)\])?(?:,|$)", text):
        for part in several.split(",") if several else ():
            first, _, last = part.partition("-")
            found |= {f"{name}{number}" for number in range(int(first), int(last or first) + 1)}
        if not several:
            found.add(name)
    return found
