"""The ConfigMap with the health checks of a NodeSet, which its pods mount: what all nodes run, and what one node tries.

It is where an operator that starts reads which checks have been tried already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.kube.resources import NODESETS
from slinky_operator.nodeset.model.pods import guard
from slinky_operator.reconcile.writes.parts import owner_reference
from slinky_operator.slurm.health_checks import tables
from slinky_operator.slurm.health_checks.tables import Table

_NAME_LENGTH = 40


@dataclass(frozen=True, slots=True)
class StoredChecks:
    """The ConfigMap as last read or written."""

    data: Mapping[str, str] = field(default_factory=dict)
    uid: str = ""
    """Empty if it does not exist."""
    version: str = ""
    approved: Table = Table()  # noqa: RUF009 - frozen
    """What all nodes run but the one below."""
    trial: Table | None = None
    """What one node tries; None if none does."""
    node: str = ""
    """That node, in Slurm."""


def name(nodeset: NodeSet) -> str:
    """Name of the ConfigMap; it contains a part of the uid, as that of the guard."""
    return f"nodeset-checks-{nodeset.name[:_NAME_LENGTH]}-{nodeset.uid[:8]}"


def build(nodeset: NodeSet, data: Mapping[str, str]) -> dict[str, Any]:
    """Build the ConfigMap."""
    body = guard.config_map(nodeset, name(nodeset), data)
    # It may go before the pods do: theirs is a copy.
    body["metadata"]["ownerReferences"] = [owner_reference(NODESETS, nodeset, blocks=False)]
    return body


def read(obj: Mapping[str, Any]) -> StoredChecks:
    """Read the ConfigMap."""
    metadata = obj["metadata"]
    data = {str(key): str(text) for key, text in (obj.get("data") or {}).items()}
    approved, _ = tables.read(data.get(tables.APPROVED, ""))
    trial, node = tables.read(data[tables.TRIAL]) if tables.TRIAL in data else (None, "")
    return StoredChecks(data, metadata["uid"], metadata.get("resourceVersion") or "", approved, trial, node)


def is_ours(nodeset: NodeSet, obj: Mapping[str, Any]) -> bool:
    """Whether a ConfigMap of that name is this NodeSet's."""
    own = obj["metadata"].get("labels") or {}
    return bool(own.get(labels.LABEL_NODESET_UID) == nodeset.uid)
