"""What `0:53` means, said of the jobs of everybody: Slurm could not open a file of the job. Pure.

A job submitted by sbatch has no object of Kubernetes, and without its output it has nothing that says why it ended:
the Cluster gets an Event. Jobs that have failed are found in the list of states that is read anyway; how such a job
ended is asked for each, and for few at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nlargest
from typing import Final

from slurm_client.models import Job, JobStateEntry

REASON: Final = "JobFileNotOpened"

SIGNAL: Final = 53
"""Signal of a job whose output or input slurmstepd cannot open as its user (24.11 and 26.05)."""

MOST_KNOWN: Final = 10_000
"""Failed jobs that are remembered, the newest by their ids."""

MOST_ASKED: Final = 4
"""Jobs that are asked for with one count; they are named in one Event."""

LONGEST: Final = 160
"""Characters of a path, and of a name."""

MOST_DIGITS: Final = 10
"""Digits of a job's number, which has 32 bits."""

_NO_FILE: Final = frozenset({"", "/dev/null"})


@dataclass(frozen=True, slots=True)
class Failed:
    """Jobs that have failed, as a count of jobs has seen them."""

    known: frozenset[str] = frozenset()
    """Records of which it was decided whether they are asked for."""

    ask: tuple[str, ...] = ()
    """Those that are new."""


def failed(states: Iterable[JobStateEntry], before: frozenset[str] | None) -> Failed:
    """Find jobs that have failed since the last count.

    Parameters
    ----------
    states
        Of all jobs; Slurm keeps those that have ended for a while (MinJobAge).
    before
        Those known by then; None at the first count of this operator, which asks for none: an earlier one has.
    """
    now = [one.id for one in states if one.state.base == "FAILED" and one.state.is_finished]
    if len(now) > MOST_KNOWN:
        now = nlargest(MOST_KNOWN, now, key=number)
    new = [] if before is None else [one for one in now if one not in before]
    return Failed(frozenset(now), tuple(new[:MOST_ASKED]))


def words(jobs: Iterable[Job]) -> str:
    """Say which files of which jobs could not be opened; empty if it was not that."""
    told = [_told(job) for job in jobs if job.exit_code is not None and job.exit_code.signal == SIGNAL]
    if not told:
        return ""
    return (
        f"Slurm could not open a file of {'; '.join(told)}. The job ended with 0:{SIGNAL} and without output: on the "
        "node, its user must be able to write output and error, and to read input. Is there a home folder "
        "(spec.identity.homes), and does the folder of the file exist on the nodes?"
    )


def _told(job: Job) -> str:
    named = {
        "output": job.standard_output_expanded or job.standard_output,
        "error": job.standard_error_expanded or job.standard_error,
        "input": job.standard_input_expanded or job.standard_input,
    }
    kinds: dict[str, str] = {}
    for kind, path in named.items():
        if path not in _NO_FILE:
            _ = kinds.setdefault(_cut(path), kind)
    files = ", ".join(f"{kind} {path}" for path, kind in kinds.items())
    return f"job {job.id} of {_cut(job.user)} on {_cut(','.join(job.nodes))}{f' ({files})' if files else ''}"


def _cut(text: str) -> str:
    return " ".join(text[:LONGEST].split())


def number(record: str) -> int:
    """The number of a job, or of the array or the heterogeneous job that it is of; 0 for a text that has none."""
    digits = record.partition("_")[0].partition("+")[0]
    return int(digits) if digits.isdecimal() and len(digits) <= MOST_DIGITS else 0
