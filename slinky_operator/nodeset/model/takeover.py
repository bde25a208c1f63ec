"""Pods that Slinky's own operator, 0.1 to 0.3, created for a NodeSet: they are taken over unchanged, none is replaced.

They belong to the NodeSet by their controller reference. They get the labels and the second owner of this operator's
pods before its finalizer is set; so an interrupted takeover is finished, and a finished one is not repeated. A pod that
had the revision of its NodeSet's spec, according to the status that Slinky's operator left, still counts as having it;
another one is updated like any other.

Their slurmds registered without this operator's marks. Slinky's operator wrote the pod's name into the comment of each
record; by that a record is known to belong to a pod, and gets this operator's mark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import LONGEST_NAME, NodeSet
from slinky_api.v1alpha1.nodeset.spec import ScalingMode
from slinky_operator.nodeset.model import claims
from slinky_operator.nodeset.model.pods import guard, pod_names
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.slurm import naming
from slinky_operator.slurm.pods import pod_ownership

LEASE: str = "0033bda7.slinky.slurm.net"
"""Name of the Lease of Slinky's operator for leader election."""


def is_theirs(nodeset: NodeSet, obj: Mapping[str, Any]) -> bool:
    """Whether a pod is the NodeSet's and was created by Slinky's operator."""
    metadata = obj["metadata"]
    if labels.LABEL_NODESET_UID in (metadata.get("labels") or {}):
        return False
    return any(
        reference.get("uid") == nodeset.uid and reference.get("controller")
        for reference in metadata.get("ownerReferences") or ()
    )


def patch(nodeset: NodeSet, cluster: Cluster, obj: Mapping[str, Any], guard_uid: str) -> dict[str, Any]:
    """The merge patch of its metadata that takes over one of their pods."""
    metadata = obj["metadata"]
    own: dict[str, str | None] = {
        **naming.slurmd_labels(cluster.name),
        labels.LABEL_CLUSTER_UID: cluster.uid,
        labels.LABEL_NODESET_NAME: nodeset.name,
        labels.LABEL_NODESET_UID: nodeset.uid,
        # With a long NodeSet's name in front, their name may be longer than a label's value.
        labels.LABEL_POD_NAME: metadata["name"] if len(metadata["name"]) <= LONGEST_NAME else None,
        labels.LABEL_POD_HOSTNAME: pod_ownership.node_name(obj),
        labels.LABEL_SCALING_MODE: nodeset.mode.value,
        labels.LABEL_REVISION: _revision(nodeset, metadata.get("labels") or {}),
    }
    number = pod_names.ordinal(nodeset.name, metadata["name"])
    if nodeset.mode is ScalingMode.STATEFUL_SET and number is not None:
        own[labels.LABEL_POD_INDEX] = str(number)
    if nodeset.spec.workload_disruption_protection:
        own[labels.LABEL_POD_PROTECT] = "true"
    second = guard.reference(nodeset, guard_uid)
    owners = [reference for reference in metadata.get("ownerReferences") or () if reference.get("uid") != guard_uid]
    return {"metadata": {"labels": own, "ownerReferences": [*owners, second]}}


def claims_of(nodeset: NodeSet, obj: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Claims of one of their pods under the names that the pod's successor will look for, and their labels."""
    if nodeset.mode is ScalingMode.STATEFUL_SET:
        pod = obj["metadata"]["name"]
        if pod_names.ordinal(nodeset.name, pod) is None:
            return
    else:
        pod = pod_names.pod_name(nodeset, pod_ownership.node_name(obj))
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
