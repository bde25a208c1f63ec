"""slurmctld's pod, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slinky_operator.slurm.connection.contact import Trouble
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import passes as worlds


def test_a_slurmctld_that_cannot_read_its_state_is_told_with_what_to_do() -> None:
    world = settled()
    assert world.controller_pod is not None
    words = (
        "slurmctld: fatal: Can not recover last_conf_lite, incompatible version, (11520 not between 9984 and 10752), "
        "start with '-i' to ignore this. Warning: using -i will lose the data that can't be recovered."
    )
    ended = {"terminated": {"exitCode": 1, "message": words}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    world.controller_pod["metadata"]["creationTimestamp"] = "2025-01-01T00:00:00Z"
    world.controller_pod["status"] |= {
        "containerStatuses": [{"name": "slurmctld", "restartCount": 3, "state": waiting, "lastState": ended}]
    }
    world.trouble(Trouble.CONTROLLER_DOWN)
    world.settle()
    message = world.condition("Ready")["message"]
    assert "incompatible version" in message
    assert "never start slurmctld with -i" in message
    assert "name the image that ran before" in message


@pytest.mark.parametrize(
    ("domain", "template", "searches"),
    [
        ("k8s.corp", {}, ["slurm-nodes.here.svc.k8s.corp"]),
        ("k8s.corp", {"searches": ["mine"]}, ["mine", "slurm-nodes.here.svc.k8s.corp"]),
        ("", {"searches": ["mine"]}, ["mine"]),
        ("", {}, []),
    ],
)
def test_slurmctld_finds_nodes_by_their_names(
    monkeypatch: pytest.MonkeyPatch, domain: str, template: dict[str, Any], searches: list[str]
) -> None:
    environment = worlds.ENVIRONMENT
    monkeypatch.setattr(worlds, "ENVIRONMENT", replace(environment, images=replace(environment.images, domain=domain)))
    world = settled({"controller": {"template": {"spec": {"dnsConfig": template}}}} if template else {})
    spec = world.children["StatefulSet", "slurm-controller"]["spec"]["template"]["spec"]
    assert spec.get("dnsConfig", {}).get("searches", []) == searches
