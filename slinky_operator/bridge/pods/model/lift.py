"""The one patch that gives a pod its Node and removes the gate, and how a pod shows what Slurm does. Pure.

Kubernetes allows additions to the node affinity of a pod only, and only while it has a gate: so a pin is for ever, and
is written together with the removal of the gate, once Slurm runs the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from slinky_api import labels
from slinky_operator.bridge.pods.model.snapshot import GroupJob
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import cut, moment, stamp
from slurm_client.notation.sbatch import values

CONDITION: Final = labels.BRIDGE_PREFIX + "Placed"
"""Type of the condition of a pod."""

LONGEST: Final = 500
"""Characters of its message."""

WAITS_S: Final = 60.0
"""Seconds after which a pod that has no Node yet is looked at: Kubernetes deletes those on a Node that is gone, too."""

_TOLERATION: Final = {"key": labels.TAINT_BRIDGE, "operator": "Exists", "effect": "NoSchedule"}
_NODE: Final = "metadata.name"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def lifted(pod: Object, job: GroupJob, slot: int, node: str, devices: str = "") -> Object:
    """The merge patch of a pod that Slurm has placed.

    Parameters
    ----------
    devices
        Those of its ResourceClaims.
    """
    spec = pod["spec"]
    annotations: dict[str, Any] = {
        labels.ANNOTATION_BRIDGE_SLURMJOB: job.name,
        labels.ANNOTATION_BRIDGE_SLOT: str(slot),
        labels.ANNOTATION_BRIDGE_DEADLINE: deadline(job),
        labels.ANNOTATION_BRIDGE_DEVICES: devices or None,
    }
    gates = [gate for gate in spec.get("schedulingGates") or () if gate.get("name") != labels.GATE_BRIDGE]
    tolerations = list(spec.get("tolerations") or ())
    if _TOLERATION not in tolerations:
        tolerations.append(_TOLERATION)
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    field = {"key": _NODE, "operator": "In", "values": [node]}
    own: list[Object] = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or [{}]
    terms = [{**term, "matchFields": [*(term.get("matchFields") or ()), field]} for term in own]
    return {
        "metadata": {"annotations": annotations},
        "spec": {
            "schedulingGates": gates or None,
            "tolerations": tolerations,
            "affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}},
        },
    }


def pinned_to(pod: Object) -> str:
    """The Node that a pod was given, for ever; empty if it was given none."""
    affinity = ((pod.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    for term in ((affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ())[:1]:
        for one in reversed(term.get("matchFields") or ()):
            if one.get("key") == _NODE and one.get("operator") == "In" and len(one.get("values") or ()) == 1:
                return str(one["values"][0])
    return ""


def waits_for(pod: Object, now: datetime) -> str:
    """The Node that a pod was given and for which it has waited for long; empty if it does not."""
    if (pod.get("spec") or {}).get("nodeName"):
        return ""
    placed = shown(pod)
    since = moment(placed.get("lastTransitionTime")) if placed.get("status") == "True" else None
    return pinned_to(pod) if since is not None and (now - since).total_seconds() >= WAITS_S else ""


def deadline(job: GroupJob) -> str | None:
    """When Slurm will end the job, as it says or by the limit that was asked for; None where that is not known."""
    if job.status.deadline is not None:
        return stamp(job.status.deadline)
    limit, start = job.spec.get("time"), job.status.start_time
    if limit is None or start is None:
        return None
    try:
        length = values.limit(str(limit))
    except ValueError:
        return None
    try:
        return stamp(start + length) if isinstance(length, timedelta) else None
    except OverflowError:
        return None


def other_deadline(pod: Object, job: GroupJob) -> str | None:
    """When Slurm will end the job of a pod that was placed, if the pod says otherwise; None if it does not."""
    stored = (pod["metadata"].get("annotations") or {}).get(labels.ANNOTATION_BRIDGE_DEADLINE)
    wanted = None if job.status.deadline is None else stamp(job.status.deadline)
    return wanted if wanted != stored else None


def shown(pod: Object) -> Mapping[str, Any]:
    """The condition of a pod as it is stored; empty if it has none."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one.get("type") == CONDITION), {})


def says(pod: Object, *, holds: bool, reason: str, message: str) -> bool:
    """Whether a pod shows this already."""
    stored = shown(pod)
    status = "True" if holds else "False"
    said = (stored.get("status"), stored.get("reason"), stored.get("message") or "")
    return said == (status, reason, cut(message, LONGEST))


def written_at(pod: Object) -> datetime | None:
    """When the condition was written last."""
    return moment(shown(pod).get("lastProbeTime"))


def condition(pod: Object, now: datetime, *, holds: bool, reason: str, message: str) -> Object:
    """The condition, with when it began to hold and when it was written."""
    stored, status = shown(pod), "True" if holds else "False"
    since = stored.get("lastTransitionTime") if stored.get("status") == status else None
    return {
        "type": CONDITION,
        "status": status,
        "reason": reason,
        "message": cut(message, LONGEST),
        "lastProbeTime": stamp(now),
        "lastTransitionTime": since or stamp(now),
    }
