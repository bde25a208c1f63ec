"""Fields of a SlurmJob that a pod asks for by annotations: what Kubernetes has no words for. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from slinky_api import labels
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.reconcile.text import named

SCRIPT: Final = "script"
USER: Final = "user"
_PARAMETERS: Final = "parameters"
_REQUEUE: Final = "requeue"
_NUMBERS: Final = frozenset({"tasks", "cpusPerTask"})
_TEXTS: Final = frozenset(
    {"account", "error", "features", "gres", "memory", "nodes", "output", "qos", "time", "workingDirectory"}
)
FIELDS: Final = frozenset({*_NUMBERS, *_TEXTS, _PARAMETERS, _REQUEUE, SCRIPT, USER})
"""Names that stand behind the prefix; each is a field of a SlurmJob."""

_OTHERS: Final[Mapping[str, str]] = {
    "partition": "the partition is that of the Node: select another Node",
    "array": "a pod is one job: use an Indexed Job",
    "env": "write env of the container",
    "command": "write command of the container",
    "args": "write args of the container",
}


def path(name: str) -> str:
    """Path of an annotation, for messages."""
    return f"metadata.annotations[{labels.VIRTUAL_NODE_PREFIX}{name}]"


def asked(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return what annotations of a pod ask for, by the names of SlurmJob's fields.

    Raises
    ------
    InvalidJob
        For a name that is none of `FIELDS`, and for a value that is not of its kind.
    """
    found: dict[str, Any] = {}
    for key, value in sorted((pod["metadata"].get("annotations") or {}).items()):
        if not key.startswith(labels.VIRTUAL_NODE_PREFIX) or key == labels.ANNOTATION_VIRTUAL_POD_JOB:
            continue
        name = key.removeprefix(labels.VIRTUAL_NODE_PREFIX)
        if name not in FIELDS:
            known = named(sorted(FIELDS), len(FIELDS))
            raise InvalidJob(path(name[:100]), _OTHERS.get(name, f"is no field of a job: write one of {known}"))
        found[name] = _value(name, str(value))
    return found


def _value(name: str, text: str) -> Any:
    if name in _NUMBERS:
        if not (text.isascii() and text.isdecimal() and int(text) > 0):
            raise InvalidJob(path(name), f"must be a number from 1 on, not {text[:60]!r}")
        return int(text)
    if name == _REQUEUE:
        if text not in {"true", "false"}:
            raise InvalidJob(path(name), f"must be true or false, not {text[:60]!r}")
        return text == "true"
    if name == _PARAMETERS:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidJob(path(name), f"must be JSON: {error}") from None
        if not isinstance(value, dict):
            raise InvalidJob(path(name), 'must be a JSON object, such as {"nice": 10}')
        return value
    return text
