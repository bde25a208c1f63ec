"""Fields of a Cluster that are in the API and that this version of the operator does not act on.

They stay in the API, so that manifests need not change when they are implemented. Until then nobody may assume that
they have an effect: the condition `Degraded` names those that are set, and what to do. A test compares this list with
what a pass reads (`tests/unit/test_every_field_counts.py`): a field is either read or listed here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from slinky_api.v1alpha1.cluster_spec import ClusterSpec

_JWKS: Final = "only tokens signed with the key of auth.jwtKeyRef are accepted"

NOT_SUPPORTED: Final[Mapping[str, tuple[Callable[[ClusterSpec], bool], str]]] = {
    "auth.jwksRef": (lambda spec: spec.auth.jwks_ref is not None, _JWKS),
    "metrics.serviceMonitor": (
        lambda spec: spec.metrics.service_monitor.enabled,
        "create the ServiceMonitor yourself",
    ),
}
"""By field: whether it is set, and what to do instead."""


def not_supported(spec: ClusterSpec) -> str:
    """Say which fields of a spec have no effect; empty if all have."""
    found = [(field, advice) for field, (is_set, advice) in NOT_SUPPORTED.items() if is_set(spec)]
    if not found:
        return ""
    fields = "; ".join(f"spec.{field} ({advice})" for field, advice in found)
    return f"not supported by this version of the operator, and without effect: {fields}. Remove what is not supported"
