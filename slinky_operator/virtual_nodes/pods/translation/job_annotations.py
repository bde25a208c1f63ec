"""Fields of a SlurmJob that a pod on a virtual Node asks for by annotations. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from slinky_api import labels
from slinky_operator.jobs.annotated_fields import NUMBERS, PARAMETERS, REQUEUE, AnnotatedFields

SCRIPT: Final = "script"
USER: Final = "user"
_TEXTS: Final = frozenset(
    {"account", "error", "features", "gres", "memory", "nodes", "output", "qos", "time", "workingDirectory"}
)
FIELDS: Final = frozenset({*NUMBERS, *_TEXTS, PARAMETERS, REQUEUE, SCRIPT, USER})
"""Names that stand behind the prefix; each is a field of a SlurmJob."""

OTHERS: Final[Mapping[str, str]] = {
    "partition": "the partition is that of the Node: select another Node",
    "array": "a pod is one job: use an Indexed Job",
    "env": "write env of the container",
    "command": "write command of the container",
    "args": "write args of the container",
}
"""Why other fields cannot be asked for."""

_READER: Final = AnnotatedFields(
    labels.VIRTUAL_NODE_PREFIX, FIELDS, OTHERS, frozenset({labels.ANNOTATION_VIRTUAL_POD_JOB})
)

path: Final = _READER.path
"""Path of an annotation, for messages."""


def asked(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return what annotations of a pod ask for, by the names of SlurmJob's fields.

    Raises
    ------
    InvalidJob
        For a name that is none of `FIELDS`, and for a value that is not of its kind.
    """
    return _READER.asked(pod["metadata"].get("annotations") or {})
