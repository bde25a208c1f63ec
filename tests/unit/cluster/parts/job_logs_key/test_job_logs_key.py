"""The key of tokens for output of jobs: one for each Cluster that has a NodeSet with servers, and none otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.cluster.actions import MakePassword
from slinky_operator.slurm import naming
from tests.unit.cluster.world import World, cluster_object, node_set_object

NAME = naming.job_logs_key("slurm")
ELSEWHERE: dict[str, Any] = {"server": "http://there:6820", "token": {"secretRef": "t"}}


def made(log: list[Any]) -> list[MakePassword]:
    return [one for one in log if isinstance(one, MakePassword) and one.body["metadata"]["name"] == NAME]


@pytest.mark.parametrize("spec", [{}, ELSEWHERE])
def test_it_is_made_once_when_a_nodeset_needs_it(spec: dict[str, Any]) -> None:
    world = World(cluster_object(spec), secrets={"t": {"auth-token": b"x"}}, meant_for={"t": "http://there:6820"})
    world.add(node_set_object("compute"))
    assert made(world.settle()) == []

    world.add(node_set_object("compute", {"jobLogs": {}}), node_set_object("other", {"jobLogs": {"keepFor": "1h"}}))
    (key,) = made(world.settle())
    assert key.key == naming.JOB_LOGS_KEY
    # It goes with its Cluster, wherever Slurm runs.
    assert [(one["kind"], one["uid"]) for one in key.body["metadata"]["ownerReferences"]] == [
        ("Cluster", "cluster-uid")
    ]
    assert made(world.settle()) == []

    del world.secrets[NAME]
    assert len(made(world.settle())) == 1


def test_a_cluster_that_is_deleted_gets_none() -> None:
    world = World(cluster_object())
    world.add(node_set_object("compute"))
    world.settle()
    world.pods = ["compute-0"]
    world.add(node_set_object("compute", {"jobLogs": {}}))
    world.raw["metadata"]["deletionTimestamp"] = "2026-11-22T12:00:00Z"
    assert made(list(world.plan().actions)) == []
