"""What the caches keep of pods and claims: the fields that rules read, and no others.

Users decide what is in a pod: commands, environments, annotations of other programs. None of that is read here, and a
thousand of such pods would fill the memory. A unit test runs the rules over objects that record which fields are read,
and fails if one of them is not in these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from slinky_api import labels
from slinky_operator.kube.objects import Object


@dataclass(frozen=True, slots=True)
class Each:
    """The items of a list."""

    fields: Fields


WHOLE: Final = None
"""The value as it is."""

Fields = Mapping[str, Any]
"""Names of fields, with what is kept of each: `WHOLE`, fields of its own, `Each`, or a choice among keys."""


def is_ours(key: str) -> bool:
    """Whether a label or an annotation is the operator's, or one by which workloads find their pods."""
    prefix, slash, _ = key.rpartition("/")
    if not slash:
        return key in _BARE
    return prefix in _PREFIXES or f"{prefix}/".endswith(_DOMAIN)


_DOMAIN: Final = labels.LEGACY_PREFIX
_PREFIXES: Final = frozenset({"app.kubernetes.io", "statefulset.kubernetes.io"})
_BARE: Final = frozenset({labels.LABEL_REVISION, "pod-template-hash"})

_METADATA: Final[Fields] = {
    "name": WHOLE,
    "namespace": WHOLE,
    "uid": WHOLE,
    "resourceVersion": WHOLE,
    "generation": WHOLE,
    "creationTimestamp": WHOLE,
    "deletionTimestamp": WHOLE,
    "finalizers": WHOLE,
    "labels": is_ours,
    "annotations": is_ours,
    "ownerReferences": Each({"apiVersion": WHOLE, "kind": WHOLE, "name": WHOLE, "uid": WHOLE, "controller": WHOLE}),
}

_CONTAINERS: Final = Each(
    {
        "name": WHOLE,
        "image": WHOLE,
        "securityContext": WHOLE,
        "readinessProbe": WHOLE,
        "volumeMounts": Each({"mountPath": WHOLE}),
    }
)

_ENDED: Final[Fields] = {
    "exitCode": WHOLE,
    "signal": WHOLE,
    "reason": WHOLE,
    "message": WHOLE,
    "startedAt": WHOLE,
    "finishedAt": WHOLE,
}

_STATE: Final[Fields] = {
    "waiting": {"reason": WHOLE, "message": WHOLE},
    "running": {"startedAt": WHOLE},
    "terminated": _ENDED,
}

_STATUSES: Final = Each(
    {
        "name": WHOLE,
        "image": WHOLE,
        "ready": WHOLE,
        "started": WHOLE,
        "restartCount": WHOLE,
        "state": _STATE,
        "lastState": _STATE,
    }
)

SHARED_SOURCES: Final = frozenset({"persistentVolumeClaim", "nfs", "csi", "hostPath", "cephfs", "glusterfs"})
"""Kinds of volumes that several pods can mount; each pod has an emptyDir of its own."""

_TERMS: Final = Each({"matchFields": Each({"key": WHOLE, "operator": WHOLE, "values": WHOLE})})

POD: Final[Fields] = {
    "apiVersion": WHOLE,
    "kind": WHOLE,
    "metadata": _METADATA,
    "spec": {
        "nodeName": WHOLE,
        "hostname": WHOLE,
        "imagePullSecrets": Each({"name": WHOLE}),
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": _TERMS}},
        },
        "volumes": Each(
            {
                "name": WHOLE,
                "configMap": {"name": WHOLE},
                "secret": {"secretName": WHOLE},
                "projected": {"sources": Each({"secret": {"name": WHOLE}})},
                **dict.fromkeys(SHARED_SOURCES, WHOLE),
            }
        ),
        "containers": _CONTAINERS,
        "initContainers": _CONTAINERS,
    },
    "status": {
        "phase": WHOLE,
        "reason": WHOLE,
        "message": WHOLE,
        "podIP": WHOLE,
        "podIPs": Each({"ip": WHOLE}),
        "conditions": Each(
            {"type": WHOLE, "status": WHOLE, "reason": WHOLE, "message": WHOLE, "lastTransitionTime": WHOLE}
        ),
        "containerStatuses": _STATUSES,
        "initContainerStatuses": _STATUSES,
        "ephemeralContainerStatuses": _STATUSES,
    },
}
"""Of a pod."""

CLAIM: Final[Fields] = {"apiVersion": WHOLE, "kind": WHOLE, "metadata": _METADATA}
"""Of a claim."""


def prune_pod(obj: Object) -> None:
    """Reduce a pod, in place, to what controllers read."""
    _prune(obj, POD)


def prune_claim(obj: Object) -> None:
    """Reduce a claim, in place, to what controllers read."""
    _prune(obj, CLAIM)


def _prune(obj: Object, fields: Fields) -> None:
    kept = _kept(obj, fields)
    obj.clear()
    obj.update(kept)


def _kept(value: Any, wanted: Any) -> Any:
    """The part of a value that is wanted; a value of another shape than expected is left to those who read it."""
    if wanted is WHOLE:
        return value
    if isinstance(wanted, Each):
        if not isinstance(value, list):
            return value
        return [_kept(one, wanted.fields) for one in value]
    if not isinstance(value, dict):
        return value
    if callable(wanted):
        return {key: one for key, one in value.items() if wanted(key)}
    return {key: _kept(value[key], below) for key, below in wanted.items() if key in value}
