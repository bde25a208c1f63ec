"""What the object that holds a group of pods together says: how many there are, and whether their work is over. Pure.

Such objects are read one by one, when a group is new and when none of its pods lives; nobody watches them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from slinky_api import labels
from slinky_operator.bridge.pods.model.membership import LWS_SIZE, GroupKey, GroupKind
from slinky_operator.jobs.task_sets import TaskSet
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import BATCH_JOBS, JOBSETS, LEADERWORKERSETS, PODGROUPS, PODS, Resource

RESOURCES: Final[Mapping[GroupKind, Resource]] = {
    GroupKind.POD: PODS,
    GroupKind.JOB: BATCH_JOBS,
    GroupKind.JOBSET: JOBSETS,
    GroupKind.LEADER_WORKER_SET: LEADERWORKERSETS,
    GroupKind.POD_GROUP: PODGROUPS,
}
"""The kind of the object, by that of the group."""

COMPLETE: Final = "Complete"
"""The end of work that has succeeded."""


@dataclass(frozen=True, slots=True)
class Owner:
    """What is known of the object.

    Parameters
    ----------
    name, uid
        Of the object.
    pods
        How many pods there must be now: those of indexes that have ended do not come again.
    is_group
        Whether its pods are one group; if not, each is one.
    end
        Why its work is over, in a word: Complete, Failed, Suspended, Deleted, Restarted; empty while it is not.
    deadline_s
        Seconds that it may take from its creation on; None for no limit.
    annotations
        What it asks for, where its pods ask for nothing else.
    problem
        Why its pods cannot be placed by Slurm: the field, and what to do.
    """

    name: str
    uid: str
    pods: int
    is_group: bool = True
    end: str = ""
    deadline_s: int | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    problem: tuple[str, str] | None = None


def read_owner(key: GroupKey, obj: Object, asked: str, sizes: Mapping[str, str]) -> Owner | None:
    """Read the object of a group; None if it is another one of the same name.

    Parameters
    ----------
    key
        The group.
    obj
        The object.
    asked
        What the annotation of its pods says the group is.
    sizes
        Annotations of one of its pods.
    """
    metadata, spec, status = obj["metadata"], _map(obj.get("spec")), _map(obj.get("status"))
    uid = str(metadata.get("uid") or "")
    if key.has_uid and uid != key.name:
        return None
    found: dict[str, Any] = {
        "name": str(metadata["name"]),
        "uid": uid,
        "annotations": _map(metadata.get("annotations")),
        "end": "Deleted" if metadata.get("deletionTimestamp") else "",
    }
    match key.kind:
        case GroupKind.JOB:
            found |= _job(spec, status, asked)
        case GroupKind.JOBSET:
            found |= _jobset(spec, status, int(key.part or 0))
        case GroupKind.LEADER_WORKER_SET:
            found |= _leader_worker_set(spec, sizes)
        case GroupKind.POD_GROUP:
            found["pods"] = max(1, _whole(spec.get("minMember"), 1))
        case GroupKind.POD:
            # It runs until its kubelet says that it has ended, whatever else is said of it.
            end = {"Succeeded": COMPLETE, "Failed": "Failed"}.get(str(status.get("phase")), "")
            found |= {"pods": 1, "end": end}
    return Owner(**found)


def _job(spec: Mapping[str, Any], status: Mapping[str, Any], asked: str) -> dict[str, Any]:
    parallelism = _whole(spec.get("parallelism"), 1)
    completions = spec.get("completions")
    is_indexed = spec.get("completionMode") == "Indexed"
    if is_indexed:
        # A failed index does not run again either.
        over = len(TaskSet.read(str(status.get("completedIndexes") or "")))
        over += len(TaskSet.read(str(status.get("failedIndexes") or "")))
    else:
        over = _whole(status.get("succeeded"), 0)
    left = parallelism if completions is None else _whole(completions, 1) - over
    found: dict[str, Any] = {
        "pods": max(0, min(parallelism, left)),
        "is_group": asked == GroupKind.JOB or (is_indexed and completions == parallelism),
        "deadline_s": spec.get("activeDeadlineSeconds"),
    }
    end = _end(status, ("Complete", "Failed")) or ("Suspended" if spec.get("suspend") else "")
    return {**found, "end": end} if end else found


def _jobset(spec: Mapping[str, Any], status: Mapping[str, Any], attempt: int) -> dict[str, Any]:
    found = [_map(one) for one in spec.get("replicatedJobs") or ()]
    # Others, such as those that fetch data first, may run without Slurm.
    placed = [one for one in found if _has_label(one)] or found
    pods = sum(_whole(one.get("replicas"), 1) * _pods_of(one) for one in placed)
    end = _end(status, ("Completed", "Failed")) or ("Suspended" if spec.get("suspend") else "")
    if not end and _whole(status.get("restarts"), 0) > attempt:
        end = "Restarted"
    read: dict[str, Any] = {"pods": pods, "problem": _order(spec, placed)}
    return {**read, "end": COMPLETE if end == "Completed" else end} if end else read


def _template(replicated: Mapping[str, Any]) -> Mapping[str, Any]:
    """The spec of the Jobs of a JobSet."""
    return _map(_map(replicated.get("template")).get("spec"))


def _has_label(replicated: Mapping[str, Any]) -> bool:
    """Whether its pods are to be placed by Slurm."""
    metadata = _map(_map(_template(replicated).get("template")).get("metadata"))
    return _map(metadata.get("labels")).get(labels.LABEL_BRIDGE_POD) == "true"


def _pods_of(replicated: Mapping[str, Any]) -> int:
    """How many pods each of its Jobs has."""
    job = _template(replicated)
    each = _whole(job.get("parallelism"), 1)
    return each if job.get("completions") is None else min(each, _whole(job.get("completions"), 1))


def _order(spec: Mapping[str, Any], placed: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """Why its pods can never wait for Slurm together: some are made only once others run."""
    reason = "some pods would come only once others run, and Slurm places all of them together: leave it out"
    if len(placed) > 1 and _map(spec.get("startupPolicy")).get("startupPolicyOrder") == "InOrder":
        return "spec.startupPolicy", reason
    names = {one.get("name") for one in placed}
    for one in placed:
        if any(_map(other).get("name") in names for other in one.get("dependsOn") or ()):
            return f"spec.replicatedJobs[{str(one.get('name'))[:63]}].dependsOn", reason
    return None


def _leader_worker_set(spec: Mapping[str, Any], sizes: Mapping[str, str]) -> dict[str, Any]:
    template = _map(spec.get("leaderWorkerTemplate"))
    text = str(sizes.get(LWS_SIZE) or "")
    found: dict[str, Any] = {
        "pods": int(text) if text.isdecimal() and len(text) <= 6 else _whole(template.get("size"), 1)  # noqa: PLR2004
    }
    if spec.get("startupPolicy") == "LeaderReady":
        reason = "workers would come only once their leader runs, and Slurm places both together: write LeaderCreated"
        found["problem"] = ("spec.startupPolicy", reason)
    return found


def _end(status: Mapping[str, Any], kinds: tuple[str, ...]) -> str:
    conditions = status.get("conditions") or ()
    return next(
        (one for one in kinds if any((c.get("type"), c.get("status")) == (one, "True") for c in conditions)), ""
    )


def _whole(value: object, default: int) -> int:
    return value if isinstance(value, int) else default


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
