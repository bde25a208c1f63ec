"""Pods of a NodeSet that have lost the labels by which the operator finds them.

The caches do not show such a pod, while its slurmd runs and its node accepts jobs. Its owner references, which nobody
removes by accident, distinguish it from a deleted pod. Until it has its labels again, its node's record is not changed
and its pod is not recreated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.nodeset.model.pods import guard, pod_facts
from slinky_operator.slurm import naming


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
