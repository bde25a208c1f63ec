"""The decisions of the Cluster controller about a Slurm that runs elsewhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from slinky_operator.cluster.actions import (
    Connect,
    Disconnect,
    Hurry,
    MakeKey,
    SetFinalizer,
    Write,
)
from slinky_operator.cluster.plan import Plan, plan
from slinky_operator.slurm.connection.contact import Contact, ContactState, Trouble
from tests.unit.cluster.world import ENVIRONMENT, WALL, World, cluster_object, node_set_object


def test_a_cluster_elsewhere_is_connected_to_and_nothing_more() -> None:
    spec = {"server": "http://there:6820", "token": {"secretRef": "mine"}}
    world = World(
        cluster_object(spec),
        secrets={"mine": {"auth-token": b"SLURM_JWT=abc\n"}},
        meant_for={"mine": "http://there:6820"},
    )
    world.add(node_set_object("compute"))
    done = world.settle()
    assert {one.child.resource.kind for one in done if isinstance(one, Write)} == {"Service", "PodDisruptionBudget"}
    assert not any(isinstance(one, SetFinalizer | MakeKey) for one in done)
    assert world.raw["status"]["isReady"] is True
    assert world.raw["status"]["config"]["nodeSets"] == ["compute"]


@pytest.mark.parametrize(
    ("secrets", "reason"),
    [
        ({}, "SecretNotFound"),
        ({"mine": {"token": b"abc"}}, "SecretKeyNotFound"),
        ({"mine": {"auth-token": b" \n"}}, "SecretInvalid"),
        ({"mine": {"auth-token": "gar\u00e4ge".encode()}}, "SecretInvalid"),
        ({"mine": {"auth-token": b"a b"}}, "SecretInvalid"),
    ],
)
def test_a_token_that_cannot_be_used_is_told(secrets: dict[str, dict[str, bytes]], reason: str) -> None:
    spec = {"server": "http://there:6820", "token": {"secretRef": "mine"}}
    world = World(cluster_object(spec), secrets=secrets)
    world.settle()
    assert world.condition("TokenValid")["reason"] == reason
    assert "mine" in world.condition("Ready")["message"]
    assert world.slurm is None


def elsewhere() -> World:
    """A Cluster whose Slurm runs elsewhere, connected."""
    spec = {"server": "http://there:6820", "token": {"secretRef": "mine"}}
    secrets, meant_for = {"mine": {"auth-token": b"SLURM_JWT=abc\n"}}, {"mine": "http://there:6820"}
    world = World(cluster_object(spec), secrets=secrets, meant_for=meant_for)
    world.settle()
    assert world.raw["status"]["isReady"] is True
    return world


def test_no_more_clusters_elsewhere_are_connected_to_than_a_namespace_may_have() -> None:
    world = elsewhere()
    few = replace(ENVIRONMENT, pace=replace(ENVIRONMENT.pace, most_elsewhere=2))

    def planned(older: int) -> Plan:
        return plan(replace(world.snapshot(), older_elsewhere=older), few, world.now, WALL)

    assert not any(isinstance(one, Connect | Disconnect) for one in planned(1).actions)
    refused = planned(2)
    # One that is connected already, since the limit was higher, is not kept either.
    assert any(isinstance(one, Disconnect) for one in refused.actions)
    assert refused.status is not None
    conditions = {one.type: one for one in refused.status.conditions}
    assert refused.status.is_ready is False
    for kind in ("Ready", "ApiReachable"):
        assert conditions[kind].reason == "TooManyClusters"
        assert "namespace here has 2 older Clusters with server" in conditions[kind].message
        assert "limits.externalClusters" in conditions[kind].message
    assert conditions["TokenValid"].status == "Unknown"
    any_number = replace(ENVIRONMENT, pace=replace(ENVIRONMENT.pace, most_elsewhere=0))
    served = plan(replace(world.snapshot(), older_elsewhere=1000), any_number, world.now, WALL)
    assert not any(isinstance(one, Disconnect) for one in served.actions)


def test_a_slurm_elsewhere_that_fails_is_asked_less_and_less() -> None:
    world = elsewhere()
    connected = [one for one in world.log if isinstance(one, Connect)]
    assert [one.endpoint.longest_pause for one in connected] == [60.0]
    assert world.slurm is not None
    since = WALL - timedelta(days=1)
    away = Contact(ContactState.UNREACHABLE, since, "connection refused", Trouble.NO_ANSWER)
    world.slurm = replace(world.slurm, contact=away)
    world.settle()
    looks = []
    for minutes in (0, 1, 5, 60):
        made = plan(world.snapshot(), ENVIRONMENT, world.now, WALL + timedelta(minutes=minutes))
        assert not any(isinstance(one, Hurry) for one in made.actions)
        looks.append(made.wake_up)
    assert looks == [3.0, 6.0, 30.0, 60.0]
