"""Which controllers a process runs, by its settings; that the others are not imported is in `test_start`."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.controllers import ALWAYS, wanted
from slinky_operator.settings import Settings

EVERYTHING: dict[str, Any] = {
    "node_labels_config_map": "ns/labels",
    "slurmjobs": True,
    "sylabs_jobs": True,
    "virtual_nodes_clusters": ("*",),
    "virtual_nodes_address": "10.0.0.1",
    "bridge_clusters": ("*",),
}


def names(**switched_on: Any) -> list[str]:
    found = [controller.name for controller in wanted(Settings(**switched_on))]
    always = [controller.name for controller in ALWAYS]
    assert found[: len(always)] == always
    return found[len(always) :]


@pytest.mark.parametrize(
    ("switch", "more"),
    [
        ("node_labels_config_map", ["node-labels"]),
        ("slurmjobs", ["slurmjob"]),
        ("sylabs_jobs", ["slurmjob", "wlm-slurmjob", "wlm-wlmjob", "slurm-slurmjob"]),
        ("virtual_nodes_clusters", ["slurmjob", "virtual-nodes", "virtual-pods"]),
        ("bridge_clusters", ["slurmjob", "bridge-nodes", "bridge-pods"]),
    ],
)
def test_a_setting_switches_its_controllers_on(switch: str, more: list[str]) -> None:
    needed = {"slurmjobs", "virtual_nodes_address"} if switch != "node_labels_config_map" else set[str]()
    assert names(**{name: EVERYTHING[name] for name in needed | {switch}}) == more


def test_nothing_else_runs_by_default() -> None:
    assert names() == []


def test_everything_is_on() -> None:
    found = names(**EVERYTHING)
    assert len(found) == len(set(found))
    assert {"node-labels", "slurmjob", "virtual-nodes", "virtual-sylabs-pods", "bridge-pods"} <= set(found)
