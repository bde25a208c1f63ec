"""
Records of slurmdbd in the shape that each data parser has.

Inside the fake a record is what the newest parser writes of it, plus the keys it no longer has. The recorded ones in
``records.json``, from Slurm itself, are what every new record starts from, so that nothing a reader might look at is
missing. What this leaves to others: what is true of accounts and jobs.
"""

from __future__ import annotations

import copy
import functools
import json
from importlib import resources
from typing import Any

Record = dict[str, Any]

_SINCE = (
    ("job", "time/planned", "v0.0.41"),
    ("job", "stdin", "v0.0.41"),
    ("job", "stdout", "v0.0.41"),
    ("job", "stderr", "v0.0.41"),
    ("job", "stdin_expanded", "v0.0.41"),
    ("job", "stdout_expanded", "v0.0.41"),
    ("job", "stderr_expanded", "v0.0.41"),
    ("job", "qosreq", "v0.0.42"),
    ("job", "restart_cnt", "v0.0.42"),
    ("job", "reservation/requested", "v0.0.43"),
    ("job", "segment_size", "v0.0.43"),
    ("job", "sluid", "v0.0.45"),
    ("job", "original_sluid", "v0.0.45"),
    ("job", "exclusive", "v0.0.45"),
    ("job", "oversubscribe", "v0.0.45"),
    ("step", "time/limit", "v0.0.43"),
    ("step", "step/stdin", "v0.0.43"),
    ("step", "step/stdout", "v0.0.43"),
    ("step", "step/stderr", "v0.0.43"),
    ("step", "step/stdin_expanded", "v0.0.43"),
    ("step", "step/stdout_expanded", "v0.0.43"),
    ("step", "step/stderr_expanded", "v0.0.43"),
    ("step", "submit_line", "v0.0.45"),
    ("user", "default/qos", "v0.0.44"),
    ("qos", "limits/max/jobs/count", "v0.0.42"),
    ("qos", "limits/max/tres/minutes/total", "v0.0.42"),
    ("ping", "status", "v0.0.45"),
)
"""Keys that a parser brought: kind, path in the record, parser."""

_UNTIL = (("step", "pid", "v0.0.44"), ("cluster", "select_plugin", "v0.0.44"))
"""Keys that a parser was the last to have."""


@functools.cache
def _recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(resources.files(__package__ or __name__).joinpath("records.json").read_text())
    return found


def recorded(kind: str) -> Any:
    """Return a copy of the recorded object of a kind."""
    return copy.deepcopy(_recorded()[kind])


def merge(record: Record, given: Record) -> Record:
    """
    Put what is given into a record, key by key.

    Numbers with marks for unset and infinite, and lists, are replaced as a whole; a plain number becomes a marked one
    where the record has such. Keys that the record does not have are left out.
    """
    for key, value in given.items():
        if key not in record:
            continue
        known = record[key]
        if is_number(known) and isinstance(value, int | float):
            record[key] = {"set": True, "infinite": False, "number": value}
        elif isinstance(known, dict) and isinstance(value, dict) and not is_number(known):
            merge(known, value)
        else:
            record[key] = copy.deepcopy(value)
    return record


def is_number(value: object) -> bool:
    """Whether it is a number with its marks."""
    return isinstance(value, dict) and set(value) == {"set", "infinite", "number"}


def written(kind: str, record: Record, version: str) -> Record:
    """Return a record as a data parser writes it."""
    made = copy.deepcopy(record)
    for concerned, path, first in _SINCE:
        if concerned == kind and version < first:
            _remove(made, path)
    for concerned, path, last in _UNTIL:
        if concerned == kind and version > last:
            _remove(made, path)
    if kind == "job":
        made["steps"] = [written("step", step, version) for step in made["steps"]]
    if kind == "association" and version < "v0.0.41":
        made["id"] = short(record)
    if kind == "statistics" and version < "v0.0.41":
        types = {"hourly": "internal", "daily": "user", "monthly": "unknown"}
        made["rollups"] = [recorded("rollup_before_v0_0_41") | {"type": name} for name in types.values()]
    return made


def short(association: Record) -> Record:
    """Return the part of an association that names it."""
    return {key: association[key] for key in ("account", "cluster", "partition", "user", "id")}


def _remove(record: Record, path: str) -> None:
    *above, last = path.split("/")
    for key in above:
        record = record[key]
    record.pop(last, None)
