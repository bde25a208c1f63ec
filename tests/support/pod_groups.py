"""Groups of pods as their controllers make them: JobSet 0.10, LeaderWorkerSet 0.7 and Trainer 2.0.

The first is its `labelAndAnnotateObject`, the second its StatefulSets and its pod webhook, the third a JobSet named as
the TrainJob that owns it. Their kinds are served without a schema. What makes pods of Jobs and StatefulSets is the real
controller, where there is one.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final

from hack.localkube.kubectl import Kubectl, KubectlFailed, wait_for
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    CUSTOMRESOURCEDEFINITIONS,
    JOBSETS,
    LEADERWORKERSETS,
    PODGROUPS,
    Resource,
)

TRAINJOBS: Final = Resource("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob")
KINDS: Final = (JOBSETS, LEADERWORKERSETS, PODGROUPS, TRAINJOBS)

JOBSET: Final = "jobset.sigs.k8s.io/"
LWS: Final = "leaderworkerset.sigs.k8s.io/"
POD_GROUP: Final = "scheduling.x-k8s.io/pod-group"


def name_of(resource: Resource) -> str:
    """Name of the definition of a kind, by which kubectl knows it, too."""
    return f"{resource.plural}.{resource.group}"


def serve_kinds(kubectl: Kubectl) -> None:
    """Let the API server take objects of these kinds, with anything in them."""
    kubectl.apply(_definition(resource) for resource in KINDS)
    names = ",".join(name_of(resource) for resource in KINDS)

    def served() -> bool:
        try:
            _ = kubectl.get(names, "--all-namespaces")
        except KubectlFailed:
            return False
        return True

    wait_for(f"{names} are served", served, 240)


def _definition(resource: Resource) -> Object:
    version: dict[str, Any] = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "subresources": {"status": {}},
    }
    names = {"plural": resource.plural, "singular": resource.kind.lower(), "kind": resource.kind}
    about = {
        "name": name_of(resource),
        # The API server keeps some of these groups for what the community has approved.
        "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
    }
    return {
        "apiVersion": CUSTOMRESOURCEDEFINITIONS.api_version,
        "kind": CUSTOMRESOURCEDEFINITIONS.kind,
        "metadata": about,
        "spec": {"group": resource.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def controlled(obj: Object, kind: str, api_version: str) -> Object:
    """The reference of what an object controls."""
    about = obj["metadata"]
    return {"apiVersion": api_version, "kind": kind, "name": about["name"], "uid": about["uid"], "controller": True}


def of_jobset(jobset: Object, names: Sequence[str], number: int, attempt: int = 0) -> dict[str, str]:
    """Labels, and annotations, of a Job of a JobSet and of its pods.

    Parameters
    ----------
    jobset
        As the API server has it.
    names
        Of its replicated Jobs, of which each is one Job.
    number
        Which of them it is.
    attempt
        How often the JobSet was restarted before.
    """
    told = {
        "global-replicas": str(len(names)),
        "group-name": "default",
        "group-replicas": str(len(names)),
        "job-global-index": str(number),
        "job-group-index": str(number),
        "job-index": "0",
        "job-key": f"{number:040x}",
        "jobset-name": jobset["metadata"]["name"],
        "jobset-uid": jobset["metadata"]["uid"],
        "replicatedjob-name": names[number],
        "replicatedjob-replicas": "1",
        "restart-attempt": str(attempt),
    }
    return {f"{JOBSET}{key}": value for key, value in told.items()}


def jobs_of(jobset: Object) -> list[Object]:
    """The Jobs of a JobSet."""
    about, replicated = jobset["metadata"], jobset["spec"]["replicatedJobs"]
    names, made = [one["name"] for one in replicated], []
    for number, one in enumerate(replicated):
        told = of_jobset(jobset, names, number)
        spec = copy.deepcopy(one["template"]["spec"])
        _add(spec["template"], told, told)
        metadata = {
            "name": f"{about['name']}-{one['name']}-0",
            "namespace": about["namespace"],
            "labels": told,
            "annotations": told,
            "ownerReferences": [controlled(jobset, JOBSETS.kind, JOBSETS.api_version)],
        }
        made.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    return made


def of_leader(name: str, size: int) -> tuple[dict[str, str], dict[str, str]]:
    """Labels and annotations of the leader of the one group of a LeaderWorkerSet."""
    told = {"name": name, "group-index": "0", "worker-index": "0", "group-key": "9d1f6a"}
    return {f"{LWS}{key}": value for key, value in told.items()}, {f"{LWS}size": str(size)}


def of_worker(name: str, size: int, index: int) -> tuple[dict[str, str], dict[str, str]]:
    """Labels and annotations of a worker of that group."""
    told, more = of_leader(name, size)
    return {**told, f"{LWS}worker-index": str(index)}, {**more, f"{LWS}leader-name": f"{name}-0"}


def leaders_of(lws: Object) -> Object:
    """The StatefulSet of the leader of a LeaderWorkerSet with one group."""
    about, told = lws["metadata"], of_leader(lws["metadata"]["name"], _size(lws))
    owner = controlled(lws, LEADERWORKERSETS.kind, LEADERWORKERSETS.api_version)
    return _stateful_set(lws, about["name"], told, owner, 0)


def worker_of(lws: Object, leader: Object) -> Object:
    """The StatefulSet of the only worker, which the leader's pod owns."""
    told = of_worker(lws["metadata"]["name"], _size(lws), 1)
    return _stateful_set(lws, leader["metadata"]["name"], told, controlled(leader, "Pod", "v1"), 1)


def _size(lws: Object) -> int:
    size: int = lws["spec"]["leaderWorkerTemplate"]["size"]
    return size


def _stateful_set(
    lws: Object, name: str, told: tuple[dict[str, str], dict[str, str]], owner: Object, start: int
) -> Object:
    template = copy.deepcopy(lws["spec"]["leaderWorkerTemplate"]["workerTemplate"])
    _add(template, *told)
    metadata = {"name": name, "namespace": lws["metadata"]["namespace"], "ownerReferences": [owner]}
    spec = {
        "serviceName": lws["metadata"]["name"],
        "replicas": 1,
        "podManagementPolicy": "Parallel",
        "ordinals": {"start": start},
        "selector": {"matchLabels": told[0]},
        "template": template,
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}


def _add(template: Object, marked: dict[str, str], noted: dict[str, str]) -> None:
    metadata = template["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), **marked}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **noted}
