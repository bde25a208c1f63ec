"""Pods of a NodeSet that have lost the labels by which the operator finds them.

The caches do not show such a pod, while its slurmd runs and its node accepts jobs. Its owner references, which nobody
removes by accident, distinguish it from a deleted pod. Until it has its labels again, its node's record is not changed
and its pod is not recreated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.kube import errors
from slinky_operator.kube.ports import Kube
from slinky_operator.kube.resources import PODS
from slinky_operator.nodeset.model.pods import guard, pod_facts, pod_names
from slinky_operator.nodeset.model.pods.pod_facts import Slurmd
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes import identity
from slinky_operator.reconcile.batches import gather_limited
from slinky_operator.slurm import naming

MOST: Final = 8
"""Pods looked up in one pass."""


def words(nodeset: NodeSet, obj: Mapping[str, Any], revision: str) -> str | None:
    """What a pod has lost and how to restore it; None if it is not one of the NodeSet's, or has all it needs.

    Parameters
    ----------
    obj
        The pod as the API server returns it.
    revision
        The revision to restore if it has lost that, too.
    """
    metadata = obj["metadata"]
    if "deletionTimestamp" in metadata or not guard.is_owned_by(nodeset, obj):
        return None
    own = metadata.get("labels") or {}
    found_by = {
        labels.LABEL_NODESET_NAME: nodeset.name,
        labels.LABEL_NODESET_UID: nodeset.uid,
        labels.LABEL_CLUSTER_NAME: nodeset.spec.cluster_name,
    }
    if found_by.items() <= own.items():
        return None
    if pod_facts.has_ended(obj.get("status") or {}, deleting=False):
        return None
    wanted = {
        **found_by,
        **naming.slurmd_labels(nodeset.spec.cluster_name),
        labels.LABEL_SCALING_MODE: nodeset.mode.value,
        labels.LABEL_REVISION: own.get(labels.LABEL_REVISION) or revision,
    }
    lost = {key: value for key, value in wanted.items() if own.get(key) != value}
    what = "its label" if len(lost) == 1 else "its labels"
    given = " ".join(f"{key}={value}" for key, value in lost.items())
    return (
        f"pod {metadata['name']} has lost {what} {', '.join(lost)}, by which the operator finds it: it runs on, and is "
        f"neither drained nor replaced. To give it back: kubectl label pod {metadata['name']} "
        f"-n {nodeset.namespace} --overwrite {given}"
    )


def suspects(snapshot: Snapshot) -> list[str]:
    """Nodes that answer Slurm, belong to the NodeSet, and have no pod in the caches; the first of them."""
    standing = {pod.node_name for pod in snapshot.pods}
    found = [
        node.name
        for node in snapshot.slurm.nodes.values()
        if node.name not in standing
        and node.name not in snapshot.ended
        and node.name not in snapshot.names_of_other_nodesets
        and not node.is_down
        and not node.is_not_responding
        and identity.is_tagged(node, snapshot.owner)
        and pod_names.pod_name(snapshot.nodeset, node.name) not in snapshot.foreign_pods
    ]
    return sorted(found)[:MOST]


async def look_up(kube: Kube, snapshot: Snapshot) -> Snapshot:
    """The snapshot, with the API server's answer about the pods of nodes that seem to have none.

    Whatever cannot be looked up is checked again before anything is deleted.
    """
    nodeset = snapshot.nodeset
    of = {name: pod_names.pod_name(nodeset, name) for name in suspects(snapshot)}
    if not of:
        return snapshot
    answers = await gather_limited(kube.get(PODS, pod, nodeset.namespace) for pod in of.values())
    found = dict(snapshot.stripped)
    for name, answer in zip(of, answers, strict=True):
        if isinstance(answer, BaseException):
            if not isinstance(answer, errors.KubeError):
                raise answer
            continue
        told = words(nodeset, answer, snapshot.revision.current or snapshot.revision.hash)
        if told is not None and pod_facts.read(answer, nodeset.name).slurmd is not Slurmd.ENDED:
            found[name] = told
    return replace(snapshot, stripped=found) if found else snapshot
