"""Reservations that are made or changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client.encode.values import hosts, listed, minutes, moment, set_number, without_none

if TYPE_CHECKING:
    from slurm_client.models import ReservationSpec
    from slurm_client.wire.v0_0_45 import models as wire_models


def reservation(spec: ReservationSpec) -> wire_models.ReservationDescMsg:
    """Write what is wished about a reservation."""
    body: wire_models.ReservationDescMsg = {}
    plain: dict[str, Any] = {
        "name": spec.name,
        "partition": spec.partition,
        "node_list": hosts("nodes", spec.nodes),
        "node_count": set_number(spec.node_count),
        "start_time": moment(spec.start_time),
        "end_time": moment(spec.end_time),
        "duration": minutes(spec.duration),
        "users": listed(spec.users),
        "accounts": listed(spec.accounts),
        "groups": listed(spec.groups),
        "flags": listed(spec.flags),
        "features": spec.features,
        "licenses": listed(spec.licenses),
        "comment": spec.comment,
        **(spec.other or {}),
    }
    body.update(without_none(plain))  # type: ignore[typeddict-item]
    return body
