"""Pods that Slinky's own operator made for a NodeSet, 0.1 to 0.3: they are taken over as they stand, none is replaced.

They belong to the NodeSet by their controller reference. They get the labels and the second owner that our own pods
have, before our finalizer is there; so a takeover that was begun is finished, and one that is over is not looked for
again. A pod that had the revision its NodeSet's spec describes, by the status that operator left, counts as having it
still; another one is updated like any other.

Their slurmds registered without our marks. That operator wrote the pod's name into the comment of each record; from
there a record is known to be a pod's, and gets the mark that ours have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from slinky_api import labels
from slinky_api.v1alpha1.cluster import Cluster
from slinky_api.v1alpha1.nodeset import LONGEST_NAME, NodeSet, ScalingMode
from slinky_operator.nodeset.model import claims, guard, pod_facts, pod_names, revision
from slinky_operator.slurm import naming

LEASE: str = "0033bda7.slinky.slurm.net"
"""Name of the Lease by which the replicas of that operator choose a leader."""


def is_theirs(nodeset: NodeSet, obj: Mapping[str, Any]) -> bool:
    """Whether a pod is the NodeSet's and was made by that operator."""
    metadata = obj["metadata"]
    if labels.LABEL_NODESET_UID in (metadata.get("labels") or {}):
        return False
    return any(one.get("uid") == nodeset.uid and one.get("controller") for one in metadata.get("ownerReferences") or ())


def patch(nodeset: NodeSet, cluster: Cluster, obj: Mapping[str, Any], guard_uid: str) -> dict[str, Any]:
    """What makes one of their pods one of ours: a merge patch of its metadata."""
    metadata = obj["metadata"]
    own: dict[str, str | None] = {
        **naming.slurmd_labels(cluster.name),
        labels.LABEL_CLUSTER_UID: cluster.uid,
        labels.LABEL_NODESET_NAME: nodeset.name,
        labels.LABEL_NODESET_UID: nodeset.uid,
        # With a long NodeSet's name in front, theirs may be longer than a label's value.
        labels.LABEL_POD_NAME: metadata["name"] if len(metadata["name"]) <= LONGEST_NAME else None,
        labels.LABEL_POD_HOSTNAME: pod_facts.node_name(obj),
        labels.LABEL_SCALING_MODE: nodeset.mode.value,
        labels.LABEL_REVISION: _revision(nodeset, metadata.get("labels") or {}),
    }
    number = pod_names.ordinal(nodeset.name, metadata["name"])
    if nodeset.mode is ScalingMode.STATEFUL_SET and number is not None:
        own[labels.LABEL_POD_INDEX] = str(number)
    if nodeset.spec.workload_disruption_protection:
        own[labels.LABEL_POD_PROTECT] = "true"
    second = guard.reference(nodeset, guard_uid)
    owners = [one for one in metadata.get("ownerReferences") or () if one.get("uid") != guard_uid]
    return {"metadata": {"labels": own, "ownerReferences": [*owners, second]}}


def claims_of(nodeset: NodeSet, obj: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Claims of one of their pods under names that the next pod in its place will look for, and their labels."""
    if nodeset.mode is ScalingMode.STATEFUL_SET:
        pod = obj["metadata"]["name"]
        if pod_names.ordinal(nodeset.name, pod) is None:
            return
    else:
        pod = pod_names.pod_name(nodeset, pod_facts.node_name(obj))
    wanted = frozenset(claims.names(nodeset, pod))
    for volume in (obj.get("spec") or {}).get("volumes") or ():
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if name in wanted:
            yield name, claims.own_labels(nodeset, pod)


def _revision(nodeset: NodeSet, own: Mapping[str, str]) -> str:
    theirs = own.get(labels.LABEL_REVISION) or ""
    status = nodeset.status
    if theirs and theirs == status.node_set_hash and status.observed_generation == nodeset.metadata.generation:
        return revision.of(nodeset)
    return theirs
