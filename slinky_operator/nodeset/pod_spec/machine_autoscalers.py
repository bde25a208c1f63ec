"""Annotations by which what removes Kubernetes Nodes sees whether a slurmd pod may go: Cluster Autoscaler, Karpenter.

Both look at them before they choose a Node, and both also heed the PodDisruptionBudget, which is what protects jobs:
an eviction is refused by it, whatever an annotation says. So the annotations say what the budget says, and change in
the same write: a pod may not be evicted unless its node is drained and proven empty.

A node without jobs that accepts them is no exception. A job can start on it between their look and the eviction, and
no order of writes prevents that but a drain. Such pods leave by a smaller `replicas`, and their Node is empty then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from slinky_api.v1alpha1.nodeset.kind import NodeSet

SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"


def told(nodeset: NodeSet, *, protected: bool) -> dict[str, str | None]:
    """What to write on a pod; None removes an annotation. Those of the user's template stay as they are.

    Parameters
    ----------
    nodeset
        Its NodeSet; without protection from evictions there are none.
    protected
        Whether the pod is in the budget.
    """
    wanted: dict[str, str | None]
    if not nodeset.spec.workload_disruption_protection:
        wanted = {SAFE_TO_EVICT: None, DO_NOT_DISRUPT: None}
    elif protected:
        wanted = {SAFE_TO_EVICT: "false", DO_NOT_DISRUPT: "true"}
    else:
        wanted = {SAFE_TO_EVICT: "true", DO_NOT_DISRUPT: None}
    # A template that no pod can be made from may have any shape, and its pods are drained all the same.
    metadata = (nodeset.spec.template or {}).get("metadata")
    theirs = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return {key: value for key, value in wanted.items() if not isinstance(theirs, Mapping) or key not in theirs}


def of_new_pod(nodeset: NodeSet) -> dict[str, str]:
    """What a pod is created with: it is protected from its beginning, if at all."""
    return {key: value for key, value in told(nodeset, protected=True).items() if value is not None}
