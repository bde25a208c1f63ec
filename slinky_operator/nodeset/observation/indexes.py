"""Indexes and label selectors of the NodeSet controller's caches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from slinky_api import labels
from slinky_operator.kube.cache.store import Indexer, by_label
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_SLURMD_PODS
from slinky_operator.slurm.pods import pod_ownership

POD_INDEX: Final = "nodeset"
"""Index of the pod cache over the uid label of the NodeSet."""

REVISION_INDEX: Final = "nodeset"
"""Index of the ControllerRevision cache over the uid label of the NodeSet."""

CLAIM_INDEX: Final = "nodeset"
"""Index of the claim cache over `<namespace>/<nodeset>`."""

INDEXES_OF_PODS: Final[Mapping[str, Indexer]] = {
    POD_INDEX: lambda obj: (
        [uid]
        if (uid := (obj["metadata"].get("labels") or {}).get(labels.LABEL_NODESET_UID)) and pod_ownership.is_slurmd(obj)
        else []
    ),
    **INDEXES_OF_SLURMD_PODS,
}
"""Indexes the pod cache must have."""

INDEXES_OF_REVISIONS: Final[Mapping[str, Indexer]] = {REVISION_INDEX: by_label(labels.LABEL_NODESET_UID)}
"""Indexes the ControllerRevision cache must have."""

INDEXES_OF_CLAIMS: Final[Mapping[str, Indexer]] = {
    CLAIM_INDEX: lambda obj: [
        f"{obj['metadata'].get('namespace') or ''}/{name}"
        for name in [(obj["metadata"].get("labels") or {}).get(labels.LABEL_NODESET_NAME)]
        if name
    ]
}
"""Indexes the claim cache must have."""

SELECTOR: Final = labels.LABEL_NODESET_NAME
"""Label selector of the objects of any NodeSet."""
