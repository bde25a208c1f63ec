"""Updates of slurmd pods wait for a maintenance window."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.nodeset.disruption.maintenance_window import wait_of

NIGHT = {"name": "night", "schedule": "0 2 * * *", "duration": "4h", "holdUpdates": True}


def cluster(*windows: dict[str, Any], **metadata: Any) -> Cluster:
    return Cluster.parse(
        {
            "metadata": {"name": "slurm", "namespace": "here", "uid": "c", **metadata},
            "spec": {"maintenance": {"windows": list(windows)}},
        }
    )


def waits(found: Cluster, now: str, name: str = "a") -> str:
    return wait_of(found, name, datetime.fromisoformat(f"2026-11-28T{now}Z"))


@pytest.mark.parametrize(
    ("now", "held"), [("01:59:59", True), ("02:00:00", False), ("05:59:59", False), ("06:00:00", True)]
)
def test_an_update_waits_outside_the_window_only(now: str, held: bool) -> None:
    assert bool(waits(cluster(NIGHT), now)) is held


def test_it_says_for_what_it_waits() -> None:
    assert waits(cluster(NIGHT), "10:00:00") == (
        "Cluster slurm holds updates for maintenance (night), which begins at 2026-11-29T02:00:00Z"
    )


def test_only_windows_that_hold_updates_of_the_nodeset_count() -> None:
    assert waits(cluster({**NIGHT, "holdUpdates": False}), "10:00:00") == ""
    assert waits(cluster({**NIGHT, "nodeSets": ["b"]}), "10:00:00") == ""
    assert waits(cluster({**NIGHT, "nodeSets": ["b", "a"]}), "10:00:00") != ""
    assert waits(cluster(), "10:00:00") == ""
    # A window that is on but holds nothing lets nothing through that another one holds.
    assert waits(cluster(NIGHT, {"name": "day", "schedule": "0 9 * * *", "duration": "4h"}), "10:00:00") != ""


def test_of_several_windows_each_lets_updates_through() -> None:
    both = cluster(NIGHT, {**NIGHT, "name": "noon", "schedule": "0 12 * * *", "duration": "1h"})
    assert waits(both, "12:30:00") == ""
    assert "(night, noon), which begins at 2026-11-28T12:00:00Z" in waits(both, "10:00:00")


def test_a_window_that_does_not_come_again_holds_and_says_so() -> None:
    once = {"name": "once", "start": "2026-11-01T00:00:00Z", "duration": "1h", "holdUpdates": True}
    assert waits(cluster(once), "10:00:00").endswith("(once), which does not come again: change or remove it")


def test_a_cluster_that_is_being_deleted_holds_nothing() -> None:
    assert waits(cluster(NIGHT, deletionTimestamp="2026-11-28T09:00:00Z"), "10:00:00") == ""
