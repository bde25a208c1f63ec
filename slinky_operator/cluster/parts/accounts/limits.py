"""Limits as the tree writes them, and as the client library has them: both ways, and for people. Pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar

from slinky_api.v1alpha1.cluster import accounting_tree as api
from slurm_client import models
from slurm_client.models import INFINITE
from slurm_client.notation.tres import Tres

L = TypeVar("L", models.AssociationLimits, models.QosLimits)

NONE: Final = "none"
NO_LIMIT: Final = -1

_OF_ASSOCIATIONS: Final[Mapping[str, str]] = {
    "max_jobs": "max_jobs",
    "max_jobs_accrue": "max_jobs_accrue",
    "max_submit_jobs": "max_submit_jobs",
    "max_wall": "max_wall_per_job",
    "max_tres": "max_tres_per_job",
    "max_tres_per_node": "max_tres_per_node",
    "max_tres_mins": "max_tres_minutes_per_job",
    "max_tres_run_mins": "max_tres_run_minutes",
    "grp_jobs": "group_jobs",
    "grp_jobs_accrue": "group_jobs_accrue",
    "grp_submit_jobs": "group_submit_jobs",
    "grp_wall": "group_wall",
    "grp_tres": "group_tres",
    "grp_tres_mins": "group_tres_minutes",
    "grp_tres_run_mins": "group_tres_run_minutes",
    "min_prio_threshold": "min_priority_threshold",
}
"""Fields of the API, which have sacctmgr's names, and those of the client library."""

_OF_QOS: Final[Mapping[str, str]] = {
    "max_jobs_per_user": "max_jobs_per_user",
    "max_jobs_per_account": "max_jobs_per_account",
    "max_submit_jobs_per_user": "max_submit_jobs_per_user",
    "max_submit_jobs_per_account": "max_submit_jobs_per_account",
    "max_jobs_accrue_per_user": "max_jobs_accrue_per_user",
    "max_jobs_accrue_per_account": "max_jobs_accrue_per_account",
    "max_wall": "max_wall_per_job",
    "max_tres": "max_tres_per_job",
    "max_tres_per_node": "max_tres_per_node",
    "max_tres_per_user": "max_tres_per_user",
    "max_tres_per_account": "max_tres_per_account",
    "max_tres_mins": "max_tres_minutes_per_job",
    "max_tres_run_mins_per_user": "max_tres_run_minutes_per_user",
    "max_tres_run_mins_per_account": "max_tres_run_minutes_per_account",
    "min_tres": "min_tres_per_job",
    "grp_jobs": "group_jobs",
    "grp_jobs_accrue": "group_jobs_accrue",
    "grp_wall": "group_wall",
    "grp_tres": "group_tres",
    "grp_tres_mins": "group_tres_minutes",
    "grp_tres_run_mins": "group_tres_run_minutes",
    "min_prio_threshold": "min_priority_threshold",
}

_NAMES: Final = {theirs: ours for table in (_OF_ASSOCIATIONS, _OF_QOS) for ours, theirs in table.items()}


def of_association(limits: api.AssociationLimits) -> models.AssociationLimits | None:
    """Limits of an association; `None` if none is named."""
    found = _read(limits, _OF_ASSOCIATIONS)
    return models.AssociationLimits(**found) if found else None


def of_qos(limits: api.QosLimits) -> models.QosLimits | None:
    """Limits of a QOS; `None` if none is named."""
    found = _read(limits, _OF_QOS)
    return models.QosLimits(**found) if found else None


def differing(wanted: L | None, found: L) -> tuple[L | None, list[str]]:
    """The limits that are not as they are wanted, and each with what it is and what it is to be."""
    if wanted is None:
        return None, []
    unlike = {name: (value, getattr(found, name)) for name, value in _given(wanted) if not same(name, value, found)}
    if not unlike:
        return None, []
    limits = type(wanted)(**{name: value for name, (value, _) in unlike.items()})
    return limits, [f"{_name(name)} {shown(old)} -> {shown(new)}" for name, (new, old) in unlike.items()]


def same(name: str, wanted: Any, limits: models.AssociationLimits | models.QosLimits) -> bool:
    """Whether a limit is as it is wanted: no limit is one thing, however it is said."""
    return bool(_plain(wanted) == _plain(getattr(limits, name)))


def shown(value: Any) -> str:
    """A limit, for people."""
    if value is None or value is INFINITE or value == Tres():
        return NONE
    if isinstance(value, timedelta):
        minutes = -int(-value.total_seconds() // 60)
        days, hours = minutes // 1440, minutes // 60 % 24
        parts = ((days, "d"), (hours, "h"), (minutes % 60, "m"))
        return "".join(f"{number}{unit}" for number, unit in parts if number) or "0m"
    return str(value)


def wall(text: str) -> timedelta:
    """A length of time such as `1d12h`, by the rule of the API."""
    units = {"d": "days", "h": "hours", "m": "minutes"}
    return timedelta(**{units[unit]: int(number) for number, unit in re.findall(r"([0-9]+)([dhm])", text)})


def _read(limits: api.AssociationLimits | api.QosLimits, table: Mapping[str, str]) -> dict[str, Any]:
    values = {theirs: getattr(limits, ours) for ours, theirs in table.items()}
    return {name: _value(value, "wall" in name) for name, value in values.items() if value is not None}


def _value(value: int | str, is_wall: bool) -> Any:
    if isinstance(value, int):
        return INFINITE if value == NO_LIMIT else value
    if value == NONE:
        return INFINITE if is_wall else Tres()
    return wall(value) if is_wall else Tres.parse(value)


def _given(limits: models.AssociationLimits | models.QosLimits) -> Iterator[tuple[str, Any]]:
    for one in dataclasses.fields(limits):
        value = getattr(limits, one.name)
        if value is not None:
            yield one.name, value


def _plain(value: Any) -> Any:
    if isinstance(value, Tres):
        return frozenset((one.key, one.count) for one in value)
    if isinstance(value, timedelta):
        return -int(-value.total_seconds() // 60)
    return None if value is INFINITE else value


def _name(name: str) -> str:
    first, *rest = _NAMES[name].split("_")
    return first + "".join(word.capitalize() for word in rest)
