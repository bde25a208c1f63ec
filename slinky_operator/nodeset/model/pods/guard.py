"""The second owner of all pods, which keeps the garbage collector away from them.

`kubectl delete --cascade=foreground` makes the garbage collector delete dependents at once, whatever finalizers their
owner has. A dependent with another existing owner only loses the reference (measured). So each pod is also owned by a
ConfigMap that has no owner and is deleted last. The pods are then found by their uid label.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.kube.resources import CONFIGMAPS, NODESETS
from slinky_operator.reconcile.writes.parts import owner_reference
from slinky_operator.slurm.pods import pod_ownership

_NAME_LENGTH = 40


def name(nodeset: NodeSet) -> str:
    """Name of the guard; it contains a part of the uid, so that a recreated NodeSet never meets its predecessor's."""
    return _name(nodeset.name, nodeset.uid)


def _name(nodeset: str, uid: str) -> str:
    return f"{pod_ownership.GUARD_PREFIX}{nodeset[:_NAME_LENGTH]}-{uid[:8]}"


def build(nodeset: NodeSet) -> dict[str, Any]:
    """Build the guard. It has no owner on purpose."""
    about = (
        f"Owns the pods of NodeSet {nodeset.name} beside it, so that none is deleted before its node is drained. "
        "It goes with the NodeSet."
    )
    return config_map(nodeset, name(nodeset), {"about": about})


def config_map(nodeset: NodeSet, name: str, data: Mapping[str, str]) -> dict[str, Any]:
    """Build a ConfigMap of a NodeSet, without an owner."""
    return {
        "apiVersion": CONFIGMAPS.api_version,
        "kind": CONFIGMAPS.kind,
        "metadata": {
            "name": name,
            "namespace": nodeset.namespace,
            "labels": {
                labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY,
                labels.LABEL_NODESET_NAME: nodeset.name,
                labels.LABEL_NODESET_UID: nodeset.uid,
            },
        },
        "data": dict(data),
    }


def owners(nodeset: NodeSet, guard_uid: str) -> list[dict[str, Any]]:
    """The two owners of a pod; the first is its controller."""
    return [owner_reference(NODESETS, nodeset, blocks=True), reference(nodeset, guard_uid)]


def reference(nodeset: NodeSet, guard_uid: str) -> dict[str, Any]:
    """The guard as an owner reference of a pod."""
    return {
        "apiVersion": CONFIGMAPS.api_version,
        "kind": CONFIGMAPS.kind,
        "name": name(nodeset),
        "uid": guard_uid,
    }


def is_ours(nodeset: NodeSet, obj: Mapping[str, Any]) -> bool:
    """Whether a ConfigMap of the guard's name is this NodeSet's."""
    own = obj["metadata"].get("labels") or {}
    return bool(own.get(labels.LABEL_NODESET_UID) == nodeset.uid)


def is_owned_by(nodeset: NodeSet, obj: Mapping[str, Any]) -> bool:
    """Whether a pod would be deleted with the NodeSet and its guard: by its owner references, whatever its labels."""
    owners_ = obj["metadata"].get("ownerReferences") or ()
    return any(
        one.get("uid") == nodeset.uid or (one.get("kind"), one.get("name")) == (CONFIGMAPS.kind, name(nodeset))
        for one in owners_
    )


def stranger(nodeset: NodeSet, obj: Mapping[str, Any]) -> str:
    """Why a name that a pod of this NodeSet could have is taken by a pod that is not its own.

    A NodeSet whose finalizers somebody has removed leaves its pods, since their guard is there: no operator knows
    whether one is still wanted.
    """
    metadata = obj["metadata"]
    taken = f"there is a pod {metadata['name']} that is not ours"
    own = metadata.get("labels") or {}
    uid = own.get(labels.LABEL_NODESET_UID)
    if own.get(labels.LABEL_NODESET_NAME) != nodeset.name or uid in {None, nodeset.uid}:
        return taken
    return (
        f"{taken}: it was left by an earlier NodeSet {nodeset.name} whose finalizers were removed. Once its node has "
        f"no jobs: kubectl delete -n {nodeset.namespace} pod/{metadata['name']} configmap/{_name(nodeset.name, uid)}"
    )


def held_by(metadata: Mapping[str, Any]) -> frozenset[str]:
    """Uids of the guards in a pod's metadata.

    A deleted one may be among them until the garbage collector has removed it.
    """
    owners_ = metadata.get("ownerReferences") or ()
    return frozenset(str(one["uid"]) for one in owners_ if one.get("kind") == CONFIGMAPS.kind)
