"""Fields of a SlurmJob that a pod asks for by annotations: the operator's own, and those of slurm-bridge. Pure.

The operator's own win over those of slurm-bridge, and those of a pod over those of the object that holds its group.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from slinky_api import labels
from slinky_operator.jobs.annotated_fields import PARAMETERS, AnnotatedFields
from slinky_operator.jobs.quantities import MIB, number_of, whole
from slinky_operator.jobs.refusal import InvalidJob

USER: Final = "user"
_FIELDS: Final = frozenset({"account", "features", "nodes", PARAMETERS, "partition", "qos", "time", USER})
_SHARE: Final = "follows from the requests of the containers: change these"
_SCRIPT: Final = "such a job has no script: the pod is what runs"

FIELDS: Final = AnnotatedFields(
    labels.BRIDGE_PREFIX,
    _FIELDS,
    {
        **dict.fromkeys(("cpusPerTask", "memory", "gres"), _SHARE),
        **dict.fromkeys(("script", "command", "args", "env", "output", "error", "workingDirectory"), _SCRIPT),
        "tasks": "follows from the number of pods",
        "array": "a group of pods is one job: use an Indexed Job",
        "requeue": "a pod that has ended is not started again by Slurm, but by its controller",
    },
    frozenset(
        {
            labels.ANNOTATION_BRIDGE_CLUSTER,
            labels.ANNOTATION_BRIDGE_DEADLINE,
            labels.ANNOTATION_BRIDGE_SLOT,
            labels.ANNOTATION_BRIDGE_SLURMJOB,
            labels.LABEL_BRIDGE_GROUP,
        }
    ),
)
"""What stands behind the operator's own prefix."""

IGNORED: Final = ("user-id", "group-id", "priority")
"""Annotations of slurm-bridge without effect: whose a job is, and before whom it runs, the administrator decides."""

_TEXTS: Final[Mapping[str, str]] = {"account": "account", "constraints": "features", "partition": "partition"} | {
    "qos": "qos",
    "timelimit": "time",
}
_PARAMETERS: Final[Mapping[str, str]] = {"job-name": "name"} | {
    one: one for one in ("licenses", "reservation", "wckey")
}
_GRES: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_-]{0,62}(?::[A-Za-z_][A-Za-z0-9_.-]{0,62})?)(?::([0-9]{1,6}))?")


@dataclass(frozen=True, slots=True)
class Asked:
    """What annotations ask for.

    Parameters
    ----------
    fields
        By the names of SlurmJob's fields.
    cpus, memory_mib, gres
        The share of a pod; None or empty where annotations say nothing.
    ignored
        Names of annotations without effect.
    """

    fields: Mapping[str, Any]
    cpus: int | None = None
    memory_mib: int | None = None
    gres: tuple[tuple[str, int], ...] = ()
    ignored: tuple[str, ...] = ()


def asked(annotations: Mapping[str, Any]) -> Asked:
    """Return what annotations ask for.

    Raises
    ------
    InvalidJob
        With the path of the annotation.
    """
    given = {
        key.removeprefix(labels.SLURMJOB_PREFIX): str(value)
        for key, value in annotations.items()
        if key.startswith(labels.SLURMJOB_PREFIX)
    }
    fields: dict[str, Any] = {field: given[name] for name, field in _TEXTS.items() if given.get(name)}
    parameters: dict[str, Any] = {field: given[name] for name, field in _PARAMETERS.items() if given.get(name)}
    if given.get("exclusive", "false") not in {"true", "false"}:
        raise InvalidJob(path("exclusive"), f"must be true or false, not {given['exclusive'][:60]!r}")
    if given.get("exclusive") == "true":
        parameters["shared"] = ["none"]
    nodes = _nodes(given)
    if nodes:
        fields["nodes"] = nodes
    own = FIELDS.asked(annotations)
    parameters |= own.pop(PARAMETERS, {})
    fields |= own
    if parameters:
        fields[PARAMETERS] = parameters
    return Asked(
        fields,
        _count(given, "cpu-per-task"),
        _memory(given),
        _gres(given),
        tuple(name for name in IGNORED if name in given),
    )


def path(name: str) -> str:
    """Path of an annotation of slurm-bridge, for messages."""
    return f"metadata.annotations[{labels.SLURMJOB_PREFIX}{name}]"


def _count(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if not text:
        return None
    if not re.fullmatch("[1-9][0-9]{0,8}", text):
        raise InvalidJob(path(name), f"must be a number from 1 on, not {text[:60]!r}")
    return int(text)


def _nodes(given: Mapping[str, str]) -> str:
    least, most = _count(given, "min-nodes"), _count(given, "max-nodes")
    if least is None and most is None:
        return ""
    if least is not None and most is not None and least > most:
        raise InvalidJob(path("min-nodes"), f"is more than max-nodes, {most}")
    return f"{least or 1}" if most is None else f"{least or 1}-{most}"


def _memory(given: Mapping[str, str]) -> int | None:
    """MiB for one pod: a number is MiB already, as in slurm-bridge."""
    text = given.get("mem-per-node")
    if not text:
        return None
    if re.fullmatch("[0-9]{1,9}", text):
        return int(text)
    return whole(number_of(text, path("mem-per-node")) / MIB, path("mem-per-node"))


def _gres(given: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    found: dict[str, int] = {}
    for word in filter(None, given.get("gres", "").split(",")):
        match = _GRES.fullmatch(word.strip().removeprefix("gres/"))
        if match is None:
            raise InvalidJob(path("gres"), f"{word[:60]!r} is no generic resource such as gpu:2 or gpu:a100:1")
        found[match[1]] = found.get(match[1], 0) + int(match[2] or 1)
    return tuple(sorted(found.items()))
