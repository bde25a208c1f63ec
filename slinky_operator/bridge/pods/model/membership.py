"""To which group a pod belongs, and which of its pods it is, by what stands in the pod alone. Pure.

A group is what Slurm places together: one pod, or the pods of a Job, of an attempt of a JobSet, of a group of a
LeaderWorkerSet, or of a PodGroup. Whether a Job whose pods have indexes is a group or not, its object says
(`group_owners`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self

from typing_extensions import override

from slinky_api import labels
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.writes.parts import controller_of

INDEX: Final = "batch.kubernetes.io/job-completion-index"
JOBSET_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
JOBSET_ATTEMPT: Final = "jobset.sigs.k8s.io/restart-attempt"
JOBSET_GLOBAL_INDEX: Final = "jobset.sigs.k8s.io/job-global-index"
LWS_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
LWS_GROUP: Final = "leaderworkerset.sigs.k8s.io/group-index"
LWS_WORKER: Final = "leaderworkerset.sigs.k8s.io/worker-index"
LWS_SIZE: Final = "leaderworkerset.sigs.k8s.io/size"
POD_GROUP: Final = "scheduling.x-k8s.io/pod-group"

STRIDE: Final = 2**17
"""Ranks of a JobSet from one of its Jobs to the next: more than a Job may have indexes."""

_MOST_DIGITS: Final = 9


class GroupKind(StrEnum):
    """What holds the pods of a group together."""

    POD = "Pod"
    JOB = "Job"
    JOBSET = "JobSet"
    LEADER_WORKER_SET = "LeaderWorkerSet"
    POD_GROUP = "PodGroup"


@dataclass(frozen=True, slots=True)
class GroupKey:
    """Which group it is, within its namespace.

    Parameters
    ----------
    kind
        What holds its pods together.
    name
        Of a pod and a Job the uid, of others the name.
    part
        Of a JobSet which restart, of a LeaderWorkerSet which of its groups.
    """

    kind: GroupKind
    name: str
    part: str = ""

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Read what `__str__` writes; None for anything else."""
        kind, _, rest = text.partition("/")
        name, _, part = rest.partition("/")
        return cls(GroupKind(kind), name, part) if kind in set(GroupKind) and name and "/" not in part else None

    @property
    def has_uid(self) -> bool:
        """Whether its name is the uid of what holds the pods together."""
        return self.kind in {GroupKind.POD, GroupKind.JOB}

    @override
    def __str__(self) -> str:
        return f"{self.kind}/{self.name}/{self.part}"


def single(uid: str) -> GroupKey:
    """The group that is one pod."""
    return GroupKey(GroupKind.POD, uid)


def asked_kind(pod: Object) -> str:
    """What the annotation of a pod says: Job, Pod, or nothing."""
    return str(_annotations(pod).get(labels.LABEL_BRIDGE_GROUP) or "")


def group_of(pod: Object) -> GroupKey:
    """The group of a pod. A Job whose pods have indexes is given as one, although its pods may be groups each."""
    asked, job = asked_kind(pod), _job_uid(pod)
    if asked == GroupKind.POD:
        found = None
    elif asked == GroupKind.JOB and job:
        found = GroupKey(GroupKind.JOB, job)
    else:
        found = _labelled(pod["metadata"].get("labels") or {})
        if found is None and job and INDEX in _annotations(pod):
            found = GroupKey(GroupKind.JOB, job)
    return found or single(str(pod["metadata"].get("uid") or ""))


def _labelled(marked: Mapping[str, str]) -> GroupKey | None:
    """The group that the labels of a pod name."""
    if marked.get(POD_GROUP):
        return GroupKey(GroupKind.POD_GROUP, marked[POD_GROUP])
    if marked.get(JOBSET_NAME):
        return GroupKey(GroupKind.JOBSET, marked[JOBSET_NAME], str(_number(marked.get(JOBSET_ATTEMPT)) or 0))
    if marked.get(LWS_NAME):
        return GroupKey(GroupKind.LEADER_WORKER_SET, marked[LWS_NAME], str(_number(marked.get(LWS_GROUP)) or 0))
    return None


def rank_of(pod: Object, kind: GroupKind) -> int | None:
    """Which pod of its group it is; None where one is as good as another."""
    metadata = pod["metadata"]
    known = {**_annotations(pod), **(metadata.get("labels") or {})}
    match kind:
        case GroupKind.JOB:
            return _number(known.get(INDEX))
        case GroupKind.JOBSET:
            index, job = _number(known.get(INDEX)), _number(known.get(JOBSET_GLOBAL_INDEX))
            return None if index is None or job is None or index >= STRIDE else job * STRIDE + index
        case GroupKind.LEADER_WORKER_SET:
            return _number(known.get(LWS_WORKER))
        case _:
            return None


def owner_name(pod: Object, key: GroupKey) -> str:
    """Name of the object that holds a group together, as one of its pods says; empty if it does not."""
    if key.kind is GroupKind.POD:
        return str(pod["metadata"]["name"])
    if key.kind is not GroupKind.JOB:
        return key.name
    return str(controller_of(pod).get("name") or "") if _job_uid(pod) == key.name else ""


def gates_of(pod: Object) -> list[str]:
    """Names of the scheduling gates of a pod."""
    return [str(gate.get("name")) for gate in (pod.get("spec") or {}).get("schedulingGates") or ()]


def is_gated(pod: Object) -> bool:
    """Whether a pod waits for Slurm: what its annotations say of a place then means nothing."""
    return labels.GATE_BRIDGE in gates_of(pod)


def placed_by(pod: Object) -> str:
    """Name of the SlurmJob by which a pod was placed; empty for one that waits, or was never placed."""
    return "" if is_gated(pod) else str(_annotations(pod).get(labels.ANNOTATION_BRIDGE_SLURMJOB) or "")


def slot_of(pod: Object) -> int | None:
    """Which task of its job a pod is that was placed."""
    return _number(_annotations(pod).get(labels.ANNOTATION_BRIDGE_SLOT)) if placed_by(pod) else None


def _job_uid(pod: Object) -> str:
    controller = controller_of(pod)
    is_job = (str(controller.get("apiVersion") or "").partition("/")[0], controller.get("kind")) == ("batch", "Job")
    return str(controller.get("uid") or "") if is_job else ""


def _annotations(pod: Object) -> Mapping[str, Any]:
    found: Mapping[str, Any] = pod["metadata"].get("annotations") or {}
    return found


def _number(text: object) -> int | None:
    is_number = isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(str(text)) if is_number else None
