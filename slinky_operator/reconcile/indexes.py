"""Indexes of caches that more than one controller reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from slinky_api import labels
from slinky_operator.kube.cache.managed_fields import keep_fields_of
from slinky_operator.kube.cache.store import Indexer
from slinky_operator.kube.objects import Object

CLUSTER_INDEX: Final = "cluster"
"""Index of the NodeSet cache over `<namespace>/<cluster>`."""


def by_cluster_name(obj: Object) -> list[str]:
    """Indexer for `CLUSTER_INDEX`; an object without a usable `clusterName` is in no entry."""
    name = (obj.get("spec") or {}).get("clusterName")
    return [f"{obj['metadata'].get('namespace') or ''}/{name}"] if isinstance(name, str) else []


INDEXES_OF_NODESETS: Final[Mapping[str, Indexer]] = {CLUSTER_INDEX: by_cluster_name}
"""Indexes the NodeSet cache must have."""

PODS_OF_CLUSTERS: Final = labels.LABEL_CLUSTER_NAME
"""Label selector of pods that belong to a Cluster: daemons and nodes."""

MANAGED: Final = f"{labels.LABEL_APP_MANAGED_BY}={labels.MANAGED_BY}"
"""Label selector of objects that the operator writes."""

KEEP_OUR_FIELDS: Final = keep_fields_of(labels.FIELD_MANAGER)
"""Shortens such objects: of the records of field managers only the operator's stays."""
