"""Whose an object with the operator's labels can be: by the uids that it names, and by names that only owners give.

Anybody who may create objects sets labels. So a label alone is no claim: an object names the uid of an owner, in an
owner reference or in a label, or has a name and owners that the operator gives to no other. The second is how an owner
takes over what its predecessor of the same name has left. What claims nothing is treated as an object without labels:
caches drop it, and a write of that name meets it at the API server.

Which owners exist is left to `kube.cache.interest`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from slinky_api import labels
from slinky_operator.kube import resources
from slinky_operator.kube.cache.interest import Name, OwnershipClaim
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurm.pods import pod_ownership

UIDS: Final = (labels.LABEL_CLUSTER_UID, labels.LABEL_NODESET_UID, labels.LABEL_LOGINSET_UID)
"""Labels with the uid of an owner."""

_GUARD: Final = pod_ownership.GUARD_PREFIX


def of_child(obj: Object) -> OwnershipClaim:
    """The claim of an object that the operator applies for a Cluster, a NodeSet or a LoginSet."""
    name, cluster = _name(obj), _label(obj, labels.LABEL_CLUSTER_NAME)
    is_child = bool(cluster) and naming.is_child(cluster, name)
    # They protect slurmd pods, and stay for these when their Cluster has gone.
    is_left = is_child and name in {naming.node_service(cluster), naming.disruption_budget(cluster)}
    return OwnershipClaim(_uids(obj), frozenset({(resources.CLUSTERS, cluster)} if is_child else ()), is_left)


def of_pod(obj: Object) -> OwnershipClaim:
    """The claim of a pod that names a Cluster."""
    return OwnershipClaim(_uids(obj), frozenset(_names_of_pod(obj)))


def of_claim(obj: Object) -> OwnershipClaim:
    """The claim of a PersistentVolumeClaim: its label names the NodeSet, also if an administrator has set it."""
    nodeset = _label(obj, labels.LABEL_NODESET_NAME)
    return OwnershipClaim(_uids(obj), frozenset({(resources.NODESETS, nodeset)} if nodeset else ()))


def of_job_pod(obj: Object) -> OwnershipClaim:
    """The claim of a pod that serves or copies the files of a SlurmJob; one of its predecessor has the same name."""
    named = {str(one.get("name")) for one in _references(obj) if one.get("kind") == resources.SLURMJOBS.kind}
    return OwnershipClaim(_uids(obj), frozenset((resources.SLURMJOBS, name) for name in named))


def by_uid(obj: Object) -> OwnershipClaim:
    """The claim of an object that only its owner's uid tells."""
    return OwnershipClaim(_uids(obj))


CLAIMS: Final[Mapping[resources.Resource, Callable[[Object], OwnershipClaim]]] = {
    **dict.fromkeys(
        (
            resources.STATEFULSETS,
            resources.DEPLOYMENTS,
            resources.SERVICES,
            resources.CONFIGMAPS,
            resources.PODDISRUPTIONBUDGETS,
        ),
        of_child,
    ),
    resources.PODS: of_pod,
    resources.PERSISTENTVOLUMECLAIMS: of_claim,
    resources.CONTROLLERREVISIONS: by_uid,
    resources.JOB_LOG_PODS: of_job_pod,
}
"""By kind of object; every cache of objects with owners has one."""


def _names_of_pod(obj: Object) -> Iterator[Name]:
    name = _name(obj)
    cluster, loginset = _label(obj, labels.LABEL_CLUSTER_NAME), _label(obj, labels.LABEL_LOGINSET_NAME)
    references = _references(obj)
    for reference in references:
        kind, owner = reference.get("kind"), str(reference.get("name"))
        if kind == resources.NODESETS.kind:
            yield resources.NODESETS, owner
        # Its jobs may run: the Cluster that it names keeps its daemons for it.
        is_slurmd = kind == resources.NODESETS.kind or (kind == resources.CONFIGMAPS.kind and owner.startswith(_GUARD))
        workload = (
            owner.rpartition("-")[0] if kind == "ReplicaSet" else owner if kind == resources.STATEFULSETS.kind else ""
        )
        if cluster and (is_slurmd or workload in naming.children(cluster)):
            yield resources.CLUSTERS, cluster
        if loginset and workload.startswith(f"{loginset}-"):
            yield resources.LOGINSETS, loginset
    if cluster and not pod_ownership.owners(obj) and naming.is_preflight(cluster, name):
        yield resources.CLUSTERS, cluster


def _uids(obj: Object) -> frozenset[str]:
    named = (_label(obj, one) for one in UIDS)
    return frozenset(filter(None, (*named, *(str(one.get("uid") or "") for one in _references(obj)))))


def _references(obj: Object) -> list[Mapping[str, Any]]:
    return obj["metadata"].get("ownerReferences") or []


def _label(obj: Object, label: str) -> str:
    return str((obj["metadata"].get("labels") or {}).get(label) or "")


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])
