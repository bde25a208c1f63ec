"""Each field of a window, changed, changes what Slurm is asked for or when pods are replaced."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.cluster.maintenance import MaintenanceWindow
from slinky_operator.cluster.parts.maintenance.windows import wanted
from slinky_operator.nodeset.disruption.maintenance_window import wait_of
from tests.unit.cluster.parts.maintenance.worlds import NIGHT, world
from tests.unit.cluster.world import cluster_object
from tests.unit.test_every_field_counts import fields_of

ON = datetime.fromisoformat("2026-11-28T03:00:00Z")
BASE: dict[str, Any] = {**NIGHT, "holdUpdates": True}
CHANGED: dict[str, dict[str, Any]] = {
    "name": {"name": "changed"},
    "schedule": {"schedule": "0 3 * * *"},
    "time_zone": {"timeZone": "Asia/Kolkata"},
    "start": {"schedule": None, "start": "2026-11-28T02:30:00Z"},
    "duration": {"duration": "5h"},
    "announce_before": {"announceBefore": "1h"},
    "node_sets": {"nodeSets": ["a"]},
    "hold_updates": {"holdUpdates": False},
    "release_early": {"releaseEarly": True},
}


def outcome(window: dict[str, Any]) -> object:
    one = world(window, now=ON)
    for name in ("a", "b"):
        every = dict.fromkeys(("desired", "replicas", "updatedReplicas", "readyReplicas"), 1)
        one.node_sets[name]["metadata"]["generation"] = 1
        one.node_sets[name]["status"] = {"observedGeneration": 1, **every}
    waits = [wait_of(one.snapshot().cluster, "a", ON + timedelta(hours=hours)) for hours in (0, 12)]
    return wanted(one.snapshot(), ON), waits


def test_every_field_is_here() -> None:
    assert {path for path, _, _ in fields_of(MaintenanceWindow)} == set(CHANGED)


@pytest.mark.parametrize("field", CHANGED)
def test_a_field_that_is_changed_changes_what_is_done(field: str) -> None:
    assert outcome({**BASE, **CHANGED[field]}) != outcome(BASE)


def test_a_slurm_elsewhere_has_no_windows() -> None:
    elsewhere = {"server": "http://there:6820", "token": {"secretRef": {"name": "t", "key": "t"}}}
    with pytest.raises(InvalidObjectError, match="maintenance cannot be set with server"):
        Cluster.parse(cluster_object({**elsewhere, "maintenance": {"windows": [BASE]}}))
