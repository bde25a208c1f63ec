"""The SlurmJobs of groups: their names, as they are made, whose they are, and which pod is which task. Pure.

A group has one job at a time. The name of the next one differs by its number, so that two passes that want the same
one make one, and what has ended stays to be read. Whose a SlurmJob is, its owner reference says: a name and labels are
easily written by others in advance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.slurmjob.kind import JobAllocation
from slinky_operator.bridge.pods.model.components import Component, spec_of
from slinky_operator.bridge.pods.model.group_owners import RESOURCES, Owner
from slinky_operator.bridge.pods.model.membership import GroupKey, GroupKind
from slinky_operator.bridge.pods.model.snapshot import GroupJob, Member, Place
from slinky_operator.jobs.task_sets import TaskSet
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import SLURMJOBS
from slinky_operator.reconcile.text import cut
from slinky_operator.reconcile.writes.parts import controller_of

OF_GROUP: Final = "of bridge group"
"""Index of the SlurmJob cache over `<namespace>/<group>`."""

KEPT_S: Final = 7 * 24 * 3600
"""Seconds for which the SlurmJob of a group is kept after its end, while its owner lives."""

LONGEST_COMMENT: Final = 1000
"""Characters of a comment: a SlurmJob takes 1024."""

_MOST_RANKS: Final = 20_000
"""Characters of the ranks of a group."""

CANCELLED: Final = 143
"""Exit code of work that neither succeeded nor failed: 128 and SIGTERM."""

_LARGEST_CODE: Final = 255
_MOST_NAMED: Final = 5


def by_group(job: Object) -> list[str]:
    """Indexer for `OF_GROUP`."""
    group = members_of(job)
    return [f"{job['metadata'].get('namespace')}/{group}"] if group else []


def members_of(job: Object) -> str:
    """The group of a SlurmJob as it is written there; empty for one of no group."""
    metadata = job["metadata"]
    if labels.LABEL_BRIDGE_GROUP not in (metadata.get("labels") or {}):
        return ""
    return str((metadata.get("annotations") or {}).get(labels.ANNOTATION_BRIDGE_MEMBERS) or "")


def base_name(key: GroupKey, uid: str) -> str:
    """Name of the first job of a group."""
    part = {GroupKind.JOBSET: f"-a{key.part}", GroupKind.LEADER_WORKER_SET: f"-g{key.part}"}.get(key.kind, "")
    return f"bridge-{uid}{part}"


def job_name(key: GroupKey, uid: str, attempt: int) -> str:
    """Name of a job of a group."""
    return base_name(key, uid) + (f"-r{attempt}" if attempt else "")


def attempt_of(key: GroupKey, job: Object) -> int | None:
    """Which job of its group a SlurmJob is; None if its name is none of the group's."""
    metadata = job["metadata"]
    uid = str((metadata.get("labels") or {}).get(labels.LABEL_BRIDGE_GROUP) or "")
    return None if key.has_uid and uid != key.name else attempt_named(key, uid, str(metadata["name"]))


def attempt_named(key: GroupKey, uid: str, name: str) -> int | None:
    """Which job of a group a name stands for; None if for none."""
    base = base_name(key, uid)
    if name == base:
        return 0
    match = re.fullmatch("-r([1-9][0-9]{0,5})", name.removeprefix(base)) if name.startswith(base) else None
    return int(match[1]) if match else None


def is_owned(key: GroupKey, job: Object, uid: str) -> bool:
    """Whether the object of this uid, which holds a group together, owns a SlurmJob that is this group's."""
    return (
        bool(uid)
        and members_of(job) == str(key)
        and attempt_of(key, job) is not None
        and (job["metadata"].get("labels") or {}).get(labels.LABEL_BRIDGE_GROUP) == uid
        and controller_of(job).get("uid") == uid
    )


def made_for(
    key: GroupKey, namespace: str, owner: Owner, place: Place, components: Sequence[Component], attempt: int
) -> Object:
    """The SlurmJob of a group, owned by what holds the group together."""
    resource, (cluster_namespace, cluster) = RESOURCES[key.kind], place.cluster
    written, user = _ranks(components), components[0].request.user
    spec = spec_of(components)
    spec["parameters"].setdefault("name", owner.name)
    return {
        "apiVersion": SLURMJOBS.api_version,
        "kind": SLURMJOBS.kind,
        "metadata": {
            "name": job_name(key, owner.uid, attempt),
            "namespace": namespace,
            "labels": {labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY, labels.LABEL_BRIDGE_GROUP: owner.uid},
            "annotations": {
                labels.ANNOTATION_BRIDGE_MEMBERS: str(key),
                **({labels.ANNOTATION_BRIDGE_RANKS: written} if written else {}),
            },
            "ownerReferences": [
                {
                    "apiVersion": resource.api_version,
                    "kind": resource.kind,
                    "name": owner.name,
                    "uid": owner.uid,
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": {
            **spec,
            "clusterName": cluster,
            "clusterNamespace": cluster_namespace,
            "ttlSecondsAfterFinished": KEPT_S,
            **({"user": user} if user is not None else {}),
        },
    }


def _ranks(components: Sequence[Component]) -> str:
    """The ranks of the pods of each component, in order: `0;1-7`; empty for pods without ranks."""
    found = [[pod.rank for pod in one.pods if pod.rank is not None] for one in components]
    if any(len(ranks) != len(one.pods) for ranks, one in zip(found, components, strict=True)):
        return ""
    return ";".join(TaskSet.of(ranks).written(_MOST_RANKS // len(found)) for ranks in found)


def slots(job: GroupJob) -> list[str]:
    """The node of each task: by component, as many on each node as its CPUs make, in Slurm's order of nodes."""
    found: list[str] = []
    allocation: Sequence[JobAllocation] = job.status.allocation or ()
    for number, (part, tasks) in enumerate(zip(job.parts, job.sizes, strict=True)):
        own: list[str] = []
        for one in allocation:
            if (one.component or 0) == number:
                own += [one.node] * min(one.cpus // max(1, int(part.get("cpusPerTask") or 1)), tasks - len(own))
        found += own
    return found


def wanted_slot(job: GroupJob, member: Member, known: Mapping[int, int]) -> int | None:
    """The task that a pod is by its rank; None where one is as good as another, -1 for a rank that the job lacks."""
    if not known or member.rank is None:
        return None
    slot = known.get(member.rank, -1)
    return slot if slot < job.tasks else -1


def slots_by_rank(job: GroupJob) -> Mapping[int, int]:
    """Which task each rank of a job is; empty for a group whose pods have no ranks."""
    text = str((job.obj["metadata"].get("annotations") or {}).get(labels.ANNOTATION_BRIDGE_RANKS) or "")
    found: dict[int, int] = {}
    begin = 0
    for part, tasks in zip(text.split(";"), job.sizes, strict=False):
        ranks = (
            rank for first, last in TaskSet.read(part).spans for rank in range(first, min(last, first + tasks) + 1)
        )
        found |= {rank: begin + number for number, rank in enumerate(islice(ranks, tasks))}
        begin += tasks
    return found


def ended(pods: Iterable[Member], why: str, *, is_good: bool | None) -> dict[str, Any]:
    """How the work of a job has ended, for its spec.

    Parameters
    ----------
    pods
        Pods of the job that have ended.
    why
        Why no more come; empty if the pods say it all.
    is_good
        Whether the work has succeeded; None if it was neither finished nor has failed, but for what the pods say.
    """
    codes = [(one, *_exit(one.obj)) for one in pods]
    failed = [(one, code, reason) for one, code, reason in codes if code]
    code = 0 if is_good else max((code for _, code, _ in failed), default=0)
    if not is_good and not code:
        code = CANCELLED if is_good is None else 1
    told = [f"{one.name} {reason or 'failed'} ({number})" for one, number, reason in failed[:_MOST_NAMED]]
    if len(failed) > _MOST_NAMED:
        told.append(f"and {len(failed) - _MOST_NAMED} more")
    images = sorted({image for one, _, _ in codes for image in _images(one.obj)})[:_MOST_NAMED]
    parts = [
        f"pods of {why}" if why else "",
        f"pods {', '.join(one.name for one, _, _ in codes[:_MOST_NAMED])}" if codes and not failed else "",
        "; ".join(told),
        f"image {', '.join(images)}" if images else "",
    ]
    words = "".join(sign if sign.isprintable() else " " for sign in "; ".join(filter(None, parts)))
    return {"exitCode": code, "comment": cut(words or "no pods", LONGEST_COMMENT)}


def ended_at(job: GroupJob) -> datetime | None:
    """When Slurm has ended a job."""
    finished = next((one for one in job.status.conditions if one.type == "Finished" and one.status == "True"), None)
    return (finished.last_transition_time if finished is not None else None) or job.status.end_time


def _exit(pod: Object) -> tuple[int, str]:
    """Exit code of a pod, and the reason of the container that has it."""
    status = pod.get("status") or {}
    found: list[tuple[int, str]] = []
    for one in status.get("containerStatuses") or ():
        end = (one.get("state") or {}).get("terminated") or {}
        code = end.get("exitCode")
        if isinstance(code, int) and code:
            found.append((min(abs(code), _LARGEST_CODE), str(end.get("reason") or "")[:100]))
    if found:
        return max(found)
    return (1, str(status.get("reason") or "")[:100]) if status.get("phase") == "Failed" else (0, "")


def _images(pod: Object) -> list[str]:
    return [str(one.get("image") or "")[:200] for one in (pod.get("spec") or {}).get("containers") or ()]
