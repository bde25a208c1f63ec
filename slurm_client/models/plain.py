"""
Models as JSON has them: texts, numbers, Booleans, lists and objects, and nothing else.

One way only: what is read from slurmrestd is the business of :mod:`slurm_client.decode`.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from typing import Any

from slurm_client.models.database.usage import Usages
from slurm_client.models.values import State
from slurm_client.notation.jobid import JobId

__all__ = ["to_dict"]


def to_dict(model: Any) -> dict[str, Any]:
    """
    Return a model as a dictionary that ``json.dumps`` takes.

    Keys are the fields of the model. Times are ISO 8601 with their offset (``2026-01-31T12:00:00+00:00``), lengths of
    time are seconds, sets are sorted lists, ``INFINITE`` is the word ``"INFINITE"``, ``None`` is ``null``. A state is a
    list of its words with the base word first: ``["IDLE", "DRAIN"]``. The details of a job are a model of their own:
    ``to_dict(job.details)``.

    Parameters
    ----------
    model
        Any model of :mod:`slurm_client.models`, a listing, an event of a watch or a report of an error.

    Raises
    ------
    TypeError
        For anything else, or if a value that the caller put into the model is nothing that JSON has.
    """
    if not dataclasses.is_dataclass(model) or isinstance(model, type):
        raise TypeError(f"a {type(model).__name__} is no model")
    return {name: _plain(getattr(model, name)) for name in _fields(type(model))}


@functools.cache
def _fields(kind: Any) -> tuple[str, ...]:
    """Return the public fields of a class of models."""
    return tuple(field.name for field in dataclasses.fields(kind) if not field.name.startswith("_"))


def _plain(value: Any) -> Any:  # noqa: PLR0911 - one line for each kind of value
    """Return a value as JSON has it."""
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple | Usages):
        return [_plain(each) for each in value]
    if isinstance(value, State):
        return [value.base, *sorted(value.flags)]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
        return int(seconds) if seconds.is_integer() else seconds
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(held) for key, held in value.items()}
    if isinstance(value, AbstractSet):
        return sorted((_plain(each) for each in value), key=str)
    if isinstance(value, JobId):
        return str(value)
    return to_dict(value)
