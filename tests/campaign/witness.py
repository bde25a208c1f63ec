"""What was seen of jobs: the lines that they wrote themselves, and the records of slurmdbd."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

FIELDS = ("jobid", "jobname", "state", "exitcode", "start", "end", "nodelist")
"""Of sacct, in the order of `Record`."""


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
        In :data:`tests.campaign.jobs.KINDS`.
    at
        When, in seconds since the epoch, as all times here.
    job
        Its id; empty where sbatch failed or gave no answer: then it may be there or not.
    """

    mark: str
    kind: str
    at: float
    job: str = ""


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
    """

    at: float
    until: float
    what: str
    said: str
    number: int = 0


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
    """

    asked: tuple[Asked, ...] = ()
    lines: Mapping[str, tuple[Line, ...]] = field(default_factory=dict)
    records: tuple[Record, ...] = ()
    happened: tuple[Happened, ...] = ()
    unsettled: tuple[str, ...] = ()
    orphans: tuple[str, ...] = ()
    costs: tuple[str, ...] = ()
    leaks: tuple[str, ...] = ()


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


def records_of(text: str, prefix: str) -> Iterator[Record]:
    """Read the lines of sacct, with ``|`` between the fields, of all jobs whose mark begins so."""
    for line in text.splitlines():
        words = line.split("|")
        if len(words) == len(FIELDS) and words[1].startswith(prefix):
            job, mark, state, code, start, end, nodes = words
            # "CANCELLED by 0"
            yield Record(job, mark, state.split()[0], code, _seconds(start), _seconds(end), nodes)


def _seconds(text: str) -> float:
    try:
        return datetime.fromisoformat(f"{text}+00:00").timestamp()
    except ValueError:
        return 0.0  # "Unknown", "None"
