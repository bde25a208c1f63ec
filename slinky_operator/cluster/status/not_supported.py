"""Fields of a Cluster that have no effect in the Cluster that has them, or with this operator.

Nobody may assume that they have an effect: the condition `Degraded` names those that are set, and what to do. Tests
look at what passes read (`tests/unit/test_every_field_counts.py`) and at what comes of each field for a Slurm that runs
elsewhere (`tests/unit/test_fields_of_a_slurm_elsewhere.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from slinky_api.v1alpha1.cluster.spec import ClusterSpec

_KEYS: Final = "with spec.server the keys are elsewhere, and are given to Slurm there"
_NAME: Final = "with spec.server Slurm's name is in the slurm.conf there"
_GIVEN: Final = "spec.token is used instead of tokens that the operator signs"
_NO_TOKENS: Final = "Token objects need a Cluster that the operator runs; make tokens there, with scontrol token"
_NO_TLS: Final = "spec.server is not an https URL, so there is no certificate to verify"

NOT_SUPPORTED: Final[Mapping[str, tuple[Callable[[ClusterSpec], bool], str]]] = {
    "clusterName": (lambda spec: spec.external and spec.cluster_name is not None, _NAME),
    "caBundle": (lambda spec: spec.ca_bundle is not None and not _is_https(spec), _NO_TLS),
    "auth.jwtKeyRef": (lambda spec: spec.token is not None and spec.auth.jwt_key_ref is not None, _GIVEN),
    "auth.tokenLifetime": (lambda spec: spec.token is not None and spec.auth.token_lifetime is not None, _GIVEN),
    "auth.jwksRef": (lambda spec: spec.external and spec.auth.jwks_ref is not None, _KEYS),
    "auth.signingKeyRef": (lambda spec: spec.external and spec.auth.signing_key_ref is not None, _KEYS),
    "auth.tokens": (lambda spec: spec.external and bool(spec.auth.tokens), _NO_TOKENS),
}
"""By field: whether it is set to no effect, and what to do instead."""

_SYLABS: Final = "this operator does not run the job kinds of sylabs' operators: jobs.sylabs of its chart turns them on"
_VIRTUAL_NODES: Final = (
    "this operator does not run virtual Nodes: virtualNodes.clusters of its chart names the Clusters that may have "
    "some, which needs all namespaces"
)
_BRIDGE: Final = (
    "this operator does not run the bridge: bridge.clusters of its chart names the Clusters whose Slurm may place "
    "pods, which needs all namespaces"
)
_JOBS: Final = "this operator does not run SlurmJobs: jobs.enabled of its chart turns them on"

SWITCHED_OFF: Final[Mapping[str, tuple[Callable[[ClusterSpec], bool], str]]] = {
    "jobs.tenants": (lambda spec: bool(spec.jobs.tenants), _JOBS),
    "jobs.sylabs": (lambda spec: spec.jobs.sylabs is not None, _SYLABS),
    "jobs.virtualNodes": (lambda spec: spec.jobs.virtual_nodes is not None, _VIRTUAL_NODES),
    "jobs.bridge": (lambda spec: spec.jobs.bridge is not None, _BRIDGE),
}
"""By field that the operator's settings may switch off: whether it is set, and what switches it on."""


def _is_https(spec: ClusterSpec) -> bool:
    """Whether the server's certificate is verified."""
    return spec.server is not None and spec.server.startswith("https:")


def not_supported(spec: ClusterSpec, off: Collection[str] = ()) -> str:
    """Say which fields of a spec have no effect; empty if all have.

    Parameters
    ----------
    off
        Fields of `SWITCHED_OFF` that are.
    """
    known = {**NOT_SUPPORTED, **{field: SWITCHED_OFF[field] for field in off}}
    found = [(field, advice) for field, (is_set, advice) in known.items() if is_set(spec)]
    if not found:
        return ""
    fields = "; ".join(f"spec.{field} ({advice})" for field, advice in found)
    return f"without effect in this Cluster: {fields}. Remove what has no effect"
