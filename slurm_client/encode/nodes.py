"""Changes of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurm_client.encode.values import without_none

if TYPE_CHECKING:
    from slurm_client.wire.v0_0_45 import models as wire_models


def node_update(
    *,
    state: str | list[str] | None,
    reason: str | None,
    comment: str | None,
    extra: str | None,
    features: list[str] | None,
    active_features: list[str] | None,
    gres: str | None,
    weight: int | None,
    address: str | None,
    hostname: str | None,
    topology: str | None = None,
) -> wire_models.UpdateNodeMsg:
    """Write a change of nodes, without their names."""
    body: wire_models.UpdateNodeMsg = {}
    if state is not None:
        body["state"] = [state] if isinstance(state, str) else state
    if features is not None:
        body["features"] = features
    if active_features is not None:
        body["features_act"] = active_features
    if weight is not None:
        body["weight"] = {"set": True, "infinite": False, "number": weight}
    if address is not None:
        body["address"] = [address]
    if hostname is not None:
        body["hostname"] = [hostname]
    texts = {"reason": reason, "comment": comment, "extra": extra, "gres": gres, "topology_str": topology}
    body.update(without_none(texts))  # type: ignore[typeddict-item]
    return body
