"""Keys of slurm.conf that keep their running value while jobs need them. Pure.

Which keys these are, and why, is in `slinky_operator.slurm.conf.keys.rules`; what a change of lines (partitions, nodes,
GRES) would end is decided in `removals`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from slinky_operator.slurm.conf.keys.rules import Kind, rule_of
from slinky_operator.slurm.conf.syntax.parsed import Parsed

MAX_JOB_COUNT: Final = 10_000
MAX_JOB_ID: Final = 0x03FF_0000
FIRST_JOB_ID: Final = 1
MAX_ARRAY_SIZE: Final = 1001
"""Slurm's defaults if slurm.conf sets none (slurm.conf(5), 24.11 and 26.05)."""

COUNT_KEYS: Final = ("MaxJobCount", "MaxJobId", "FirstJobId")
"""Keys that set the number of job records in slurmctld."""

NAMED: Final = 10
"""Maximum number of job ids shown."""

SHOWN: Final = 60
"""Maximum characters of a value shown."""

_TASKS: Final = re.compile(r"(?P<first>\d{1,9})(?:-(?P<last>\d{1,9})(?::(?P<step>\d{1,9}))?)?")


@dataclass(frozen=True, slots=True)
class JobsThere:
    """Slurm's answer about its jobs."""

    holding: tuple[int, ...]
    """Ids of jobs that have started and not ended: running, suspended, completing."""

    records: int
    """Job records in slurmctld, including finished jobs and each task of an array."""

    shortened: int = 0
    """Arrays among them of which only the first tasks are listed; each counts as one record."""


@dataclass(frozen=True, slots=True)
class KeptKeys:
    """Keys that stay, in lower case, each with its values in the running file: none if it has none."""

    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    why: tuple[str, ...] = ()
    asks: bool = False
    """Whether it depends on Slurm's answer."""


def keys_that_stay(old: Parsed, new: Parsed, jobs: JobsThere | None, silence: str = "") -> KeptKeys:
    """Decide which keys stay.

    Parameters
    ----------
    old, new
        The running and the wanted configuration.
    jobs
        Slurm's answer; `None` if there is none, and then every key in question stays.
    silence
        Why there is no answer.
    """
    values: dict[str, tuple[str, ...]] = {}
    why: list[str] = []
    lowered = _room(new) < _room(old)
    # The maximum: an array has no more tasks than the running file allows.
    array_size = _number(old.value("MaxArraySize"), MAX_ARRAY_SIZE)
    records = None if jobs is None else jobs.records + jobs.shortened * max(0, array_size - 1)
    if lowered and (records is None or records >= _room(new)):
        values |= {key.lower(): old.keys.get(key.lower(), ()) for key in COUNT_KEYS}
        why.append(f"{_name_of_room(old, new)} stays {_room(old)} {_for_records(records, silence)}")
    guarded = [key for key in sorted(old.keys.keys() | new.keys.keys()) if _is_guarded(key, old, new)]
    if guarded and (jobs is None or jobs.holding):
        values |= {key: old.keys.get(key, ()) for key in guarded}
        why += [f"{_called(key)} stays {_shown(old.keys.get(key, ()))} {_for_jobs(jobs, silence)}" for key in guarded]
    return KeptKeys(values, tuple(why), lowered or bool(guarded))


def tasks_in(text: str) -> int | None:
    """How many tasks a record of an array has, as in `0-3,7-15:2%4`; `None` for a list that Slurm has cut."""
    listed = text.split("%", 1)[0]
    return None if "..." in listed else max(1, sum(_span(item) for item in listed.split(",")))


def _span(item: str) -> int:
    found = _TASKS.fullmatch(item)
    if found is None:
        return 1
    first, last, step = int(found["first"]), int(found["last"] or found["first"]), int(found["step"] or 1)
    return len(range(first, last + 1, step or 1)) if last >= first else 1


def _is_guarded(key: str, old: Parsed, new: Parsed) -> bool:
    before, after = (",".join(one.keys.get(key, ())) for one in (old, new))
    if before == after:
        return False
    rule = rule_of(key)
    # A key that neither release knows is mostly misspelt: the preflight rejects it at once, whatever runs.
    return rule is not None and rule.kind is Kind.WAITS and rule.concerns(before, after)


def _room(conf: Parsed) -> int:
    """Maximum records in slurmctld: fewer than `MaxJobCount` if there are not that many job ids."""
    count, last, first = (
        _number(conf.value(key), default)
        for key, default in zip(COUNT_KEYS, (MAX_JOB_COUNT, MAX_JOB_ID, FIRST_JOB_ID), strict=True)
    )
    return min(count, last - first + 1)


def _number(text: str, default: int) -> int:
    # A value that is not a number is left to Slurm to reject.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= NAMED else default


def _name_of_room(old: Parsed, new: Parsed) -> str:
    changed = [key for key in COUNT_KEYS if old.value(key) != new.value(key)]
    return "MaxJobCount" if "MaxJobCount" in changed else f"MaxJobCount (by {' and '.join(changed)})"


def _called(key: str) -> str:
    rule = rule_of(key)
    return key if rule is None else rule.name(key)


def _shown(values: Sequence[str]) -> str:
    text = ",".join(values)
    return "unset" if not text else text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _for_records(records: int | None, silence: str) -> str:
    if records is None:
        return f"until Slurm says how many job records there are{quoted(silence)}"
    return f"while there are {records} job records"


def _for_jobs(jobs: JobsThere | None, silence: str) -> str:
    if jobs is None:
        return f"until Slurm says which jobs run{quoted(silence)}"
    return f"until no job runs; there {'is' if len(jobs.holding) == 1 else 'are'} {users(jobs.holding, ())}"


def users(jobs: Iterable[int], reservations: Iterable[str]) -> str:
    """Name jobs and reservations, only the first if there are many."""
    numbers, names = list(jobs), list(reservations)
    parts = []
    if numbers:
        shown = ", ".join(map(str, numbers[:NAMED]))
        more = f" and {len(numbers) - NAMED} more" if len(numbers) > NAMED else ""
        parts.append(f"job{'s' if len(numbers) > 1 else ''} {shown}{more}")
    if names:
        parts.append(f"reservation{'s' if len(names) > 1 else ''} {', '.join(names[:NAMED])}")
    return " and ".join(parts)


def quoted(words: str) -> str:
    """Slurm's reason in brackets, if there is one."""
    return f" ({words})" if words else ""
