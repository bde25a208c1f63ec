"""What the operator has written on a Node, as an annotation of it says: labels of others are not touched. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass

from slinky_api import labels
from slinky_operator.kube.objects import Object


@dataclass(frozen=True, slots=True)
class WrittenRecord:
    """What the operator has written."""

    labels: frozenset[str] = frozenset()
    cordoned: bool = False
    """Whether it has cordoned the Node, since its partition has gone: only then it ends the cordon."""

    def to_annotation(self) -> str:
        """The value of the annotation."""
        return json.dumps({"labels": sorted(self.labels), **({"cordoned": True} if self.cordoned else {})})


def record_of(obj: Object) -> WrittenRecord:
    """Read the record; one that somebody has made unreadable claims nothing, so that nothing is removed by it."""
    annotations = obj["metadata"].get("annotations") or {}
    try:
        stored = json.loads(annotations.get(labels.ANNOTATION_VIRTUAL_NODE_RECORD) or "{}")
        names = frozenset(one for one in stored.get("labels") or () if isinstance(one, str))
        return WrittenRecord(names, stored.get("cordoned") is True)
    except (ValueError, AttributeError, TypeError, RecursionError):
        return WrittenRecord()
