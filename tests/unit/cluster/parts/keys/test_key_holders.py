"""Every daemon that must have the keys of a Cluster is asked for them, and what cannot be asked is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slinky_operator.cluster.parts.keys.proof.key_holders import holders
from slinky_operator.slurm.connection.key_proof import Daemon
from slurm_client.models import Node
from slurm_client.models.node import NodeState
from tests.unit.cluster.parts.keys.key_model import SLURMDS, Model, pod
from tests.unit.cluster.world import World, cluster_object


def names(world: World) -> set[str]:
    return {one.name for one in holders(world.snapshot()).asked}


@pytest.fixture
def world() -> World:
    return Model().world


def test_slurmctld_and_each_slurmd_are_asked_at_their_addresses(world: World) -> None:
    asked = holders(world.snapshot()).asked
    assert {(one.daemon, one.host, one.port) for one in asked} == {
        (Daemon.SLURMCTLD, "10.0.0.1", 6817),
        (Daemon.SLURMD, "10.0.1.0", 6818),
        (Daemon.SLURMD, "10.0.1.1", 6818),
    }
    assert not any(one.elsewhere for one in asked)


@pytest.mark.parametrize(
    ("changed", "asked", "unproven"),
    [
        ({"spec": {}, "status": {"phase": "Pending"}}, False, False),
        ({"status": {"phase": "Failed", "podIP": "10.0.1.0"}}, False, False),
        # Its kubelet may have mounted the earlier set already.
        ({"status": {"phase": "Pending"}}, False, True),
        # Jobs run there until it has ended.
        ({"metadata": {**pod(SLURMDS[0], "")["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}, True, False),
    ],
    ids=["without-node", "ended", "starting", "ending"],
)
def test_a_pod_counts_from_its_node_to_its_end(
    world: World, changed: dict[str, Any], asked: bool, unproven: bool
) -> None:
    world.running[0] = {**world.running[0], **changed}
    assert (f"slurmd of {SLURMDS[0]}" in names(world)) is asked
    assert (f"slurmd of {SLURMDS[0]}" in holders(world.snapshot()).unproven) is unproven


def test_another_pod_of_the_same_name_has_to_prove_it_itself(world: World) -> None:
    before = {one.id for one in holders(world.snapshot()).asked}
    world.running[0]["metadata"]["uid"] = "another"
    assert len({one.id for one in holders(world.snapshot()).asked} - before) == 1


def test_without_slurmctld_nothing_is_proven(world: World) -> None:
    world.controller_pod = None
    assert holders(world.snapshot()).unproven == {"slurmctld": "has no pod"}


def test_machines_are_asked_unless_no_job_of_theirs_can_be_lost(world: World) -> None:
    nodes = {
        "metal0": Node(name="metal0", state=NodeState("IDLE"), address="192.0.2.1", port=6818),
        "metal1": Node(name="metal1", state=NodeState("MIXED", frozenset({"NOT_RESPONDING"})), address="metal1.site"),
        "metal2": Node(name="metal2", state=NodeState("DOWN", frozenset({"NOT_RESPONDING"}))),
        "metal3": Node(name="metal3", state=NodeState("FUTURE")),
        # The record of a pod that has gone.
        "compute-7": Node(name="compute-7", state=NodeState("IDLE"), instance_id="a-uid", extra="here/compute"),
    }
    assert world.slurm is not None
    world.slurm = replace(world.slurm, nodes=nodes)
    found = {one.name: one for one in holders(world.snapshot()).asked if one.elsewhere}
    assert {name: (one.host, one.port) for name, one in found.items()} == {
        "slurmd of metal0": ("192.0.2.1", 6818),
        "slurmd of metal1": ("metal1.site", 6818),
    }


def test_a_slurmd_with_jobs_whose_pod_is_not_seen_proves_nothing(world: World) -> None:
    """The pod has lost its labels: with another set than slurmctld its slurmd could not report the ends of its jobs."""
    node = Node(name="compute-7", state=NodeState("MIXED"), instance_id="a-uid", extra="here/compute")
    assert world.slurm is not None
    world.slurm = replace(world.slurm, nodes={"compute-7": node})
    words = {"slurmd of compute-7": "has jobs, and no pod that the operator sees"}
    assert holders(world.snapshot()).unproven == words
    world.running[1]["metadata"]["name"] = "compute-7"
    assert not holders(world.snapshot()).unproven


def test_machines_that_are_not_known_prove_nothing(world: World) -> None:
    spec = {**world.raw["spec"], "nodes": [{"name": "metal0"}]}
    world.raw = {**world.raw, "spec": spec}
    world.slurm = None
    assert holders(world.snapshot()).unproven == {"the machines": "are not known while Slurm does not answer"}


def test_slurmdbd_is_asked_wherever_it_runs(world: World) -> None:
    world.raw = {**world.raw, "spec": {**world.raw["spec"], "accounting": {}}}
    assert holders(world.snapshot()).unproven == {"slurmdbd": "has no pod"}
    world.daemon_pods["accounting"] = (pod("slurm-accounting-0", "10.0.2.1"),)
    assert {one.host for one in holders(world.snapshot()).asked if one.daemon is Daemon.SLURMDBD} == {"10.0.2.1"}
    world.raw = {**world.raw, "spec": {**world.raw["spec"], "accounting": {"external": {"host": "dbd.site"}}}}
    (elsewhere,) = [one for one in holders(world.snapshot()).asked if one.daemon is Daemon.SLURMDBD]
    assert (elsewhere.host, elsewhere.port, elsewhere.elsewhere, elsewhere.reloads) == ("dbd.site", 6819, True, False)


def test_sackd_is_asked_by_the_program_beside_it_until_its_sessions_have_ended() -> None:
    world = World(cluster_object())
    one = pod("login-0", "10.0.3.1")
    one["spec"]["initContainers"] = [{"name": "sackd"}, {"name": "key-proof"}]
    one["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world.login_pods = [one]
    (asked,) = [one for one in holders(world.snapshot()).asked if one.daemon is Daemon.SACKD]
    assert (asked.name, asked.host, asked.port, asked.reloads) == ("sackd of login-0", "10.0.3.1", 6882, False)
    one["status"] = {"phase": "Pending"}
    assert holders(world.snapshot()).unproven["sackd of login-0"] == "has no address yet"
    one["status"] = {"phase": "Failed"}
    assert "sackd of login-0" not in holders(world.snapshot()).unproven


def test_a_login_pod_of_an_earlier_operator_counts_once_it_is_ready() -> None:
    world = World(cluster_object())
    one = pod("login-0", "10.0.3.1")
    world.login_pods = [one]
    assert "sackd of login-0" in holders(world.snapshot()).unproven
    one["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    assert "sackd of login-0" not in holders(world.snapshot()).unproven
