"""What is wanted of a Node, what it has, and the record of what the operator has written. Pure.

All names are without their prefix (`labels.KUBERNETES_NODE_PREFIX`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from slinky_api import labels
from slinky_operator.kube.objects import Object

LONGEST_NAME: Final = 63
"""Characters of a name after its prefix, and of the value of a label."""

_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class WantedLabels:
    """What a Node is to have."""

    labels: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """Names that the operator has written."""

    labels: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.labels or self.resources)

    def to_annotation(self) -> str | None:
        """The value of the annotation; None to remove it."""
        return json.dumps({"labels": sorted(self.labels), "resources": sorted(self.resources)}) if self else None


@dataclass(frozen=True, slots=True)
class Found:
    """What a Node has."""

    labels: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, str] = field(default_factory=dict)
    """Quantities, as the API server writes them."""
    record: Record = Record()


def is_name(text: str) -> bool:
    """Whether a text can be the name of a label or of a resource, after the prefix."""
    return len(text) <= LONGEST_NAME and _NAME.fullmatch(text) is not None


def is_value(text: str) -> bool:
    """Whether a text can be the value of a label."""
    return not text or is_name(text)


def found_on(obj: Object) -> Found:
    """Read a Node as `reconcile.cached.indexes.prune_node` leaves it."""
    metadata, status = obj["metadata"], obj.get("status") or {}
    annotations = metadata.get("annotations") or {}
    return Found(
        labels=_own(metadata.get("labels") or {}),
        resources=_own(status.get("capacity") or {}),
        record=_record(annotations.get(labels.ANNOTATION_NODE_RECORD)),
    )


def _own(values: Mapping[str, Any]) -> dict[str, str]:
    prefix = labels.KUBERNETES_NODE_PREFIX
    return {key.removeprefix(prefix): str(value) for key, value in values.items() if key.startswith(prefix)}


def _record(text: str | None) -> Record:
    """The record; one that somebody has made unreadable claims nothing, so that nothing is removed by it."""
    try:
        stored = json.loads(text or "{}")
        names = [stored.get(part) or [] for part in ("labels", "resources")]
        return Record(*(frozenset(one for one in part if isinstance(one, str) and is_name(one)) for part in names))
    except (ValueError, AttributeError, TypeError, RecursionError):
        return Record()
