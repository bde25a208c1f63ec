"""Nobody else takes a node without a slurmd for one of his own, or for room for batch jobs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules import verification
from kubectl_slurm.rules.jobs.near_misses import examine
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.autoscaling.observation import scaled_set, shape_of_spec, view
from slinky_operator.cluster.parts.keys.proof.key_holders import holders
from slinky_operator.cluster.parts.nodes.counting import count_nodes
from slinky_operator.cluster.parts.nodes.out_of_service import out_of_service
from slinky_operator.cluster.parts.upgrade.rules import slurmds
from slinky_operator.nodeset.slurm_nodes import identity, records
from slinky_operator.virtual_nodes.nodes.model.partitions import facts
from slurm_client.models import Job, Node, Partition, PartitionState
from tests.unit.bridge.nodes.worlds import MARK, external
from tests.unit.cluster.parts.keys.key_model import Model
from tests.unit.cluster.world import node_set_object

NOW = datetime(2026, 11, 28, 6, tzinfo=UTC)
BATCH = Job(id=1, partition="k8s")
PARTITION = Partition(name="k8s", state=PartitionState("UP"), node_sets="compute,bridge")
NODE = external(
    "compute-0", "bridge", MARK, cpus=8, effective_cpus=8, real_memory_mib=16_000, gres="gpu:4", partitions=("k8s",),
    address="127.0.0.1", port=6817,
)  # fmt: skip
SLURMD = replace(NODE, name="w-0", state=replace(NODE.state, flags=frozenset({"DYNAMIC_NORM"})))


def test_a_nodeset_takes_none_for_its_own_whatever_its_name_and_texts_say() -> None:
    claimed = replace(NODE, extra="here/compute", instance_id="uid")
    named = replace(NODE, comment='{"namespace": "here", "podName": "compute-0"}')
    for node in (NODE, claimed, named):
        assert not identity.is_tagged(node, "here/compute")
        assert not identity.is_named_in(node, "here", "compute-0")
        bond = identity.bond(node, owner="here/compute", pod_uid="uid", slurmd_started_at=NOW)
        assert bond is identity.RecordOwnership.FOREIGN
        assert records.to_delete(["compute-0"], {"compute-0": node}, {}, (), "here/compute") == []
        assert records.to_down(["compute-0"], {"compute-0": node}, (), "here/compute") == ([], [])
        why = records.why_blocked(node, {}, "here/compute")
        assert why is not None
        assert why.startswith(
            "Slurm has a node compute-0 that is not ours: no slurmd belongs to it, as to a Kubernetes"
        )


def test_autoscaling_sees_no_room_there() -> None:
    spec = {"autoscaling": {"minReplicas": 0, "maxReplicas": 4}, "replicas": 0}
    nodeset = NodeSet.parse(node_set_object("compute", spec))
    scaled = scaled_set(nodeset, shape_of_spec(nodeset), ["k8s"])
    seen = view([scaled], [BATCH], {"compute-0": NODE, "w-0": SLURMD}, [PARTITION], NOW)
    assert [one.node.name for one in seen.nodes] == ["w-0"]


def test_a_virtual_node_has_none_of_its_capacity() -> None:
    (found,) = facts([PARTITION], [NODE, SLURMD]).values()
    assert (found.nodes, found.cpus, found.gres) == (1, 8, {"gpu": 4})


def test_new_keys_do_not_wait_for_a_daemon_that_is_not_there() -> None:
    world = Model().world
    before = holders(world.snapshot())
    world.slurm = replace(world.slurm, nodes={"compute-0": NODE}) if world.slurm is not None else None
    assert world.slurm is not None
    assert holders(world.snapshot()) == before


def test_an_upgrade_and_counts_take_it_for_a_node_without_a_release() -> None:
    assert slurmds(SimpleNamespace(slurm=SimpleNamespace(nodes={"compute-0": NODE}))) == {}  # type: ignore[arg-type]
    assert (count_nodes([NODE]).total, count_nodes([NODE]).idle) == (1, 1)


@pytest.mark.parametrize(
    ("reason", "is_told"), [("slurm-operator: bridge: the Kubernetes Node is cordoned", False), ("disk", True)]
)
def test_its_drains_are_told_as_those_of_other_nodes(reason: str, is_told: bool) -> None:
    node = replace(NODE, reason=reason, state=replace(NODE.state, flags=NODE.state.flags | {"DRAIN"}))
    assert bool(out_of_service([node])) is is_told


def picture(*nodes: Node) -> Any:
    return SlurmPicture(now=NOW, nodes=nodes, partitions=(PARTITION,))


def test_the_plugin_tries_no_job_there_and_says_why_a_batch_job_gets_none() -> None:
    assert verification.partitions(picture(NODE)) == []
    assert verification.idle(picture(NODE)) == ""
    assert verification.gpu_partition(picture(NODE)) == ""
    assert verification.without_gpu(picture(NODE)) == "no GPUs, not checked"
    assert verification.partitions(picture(NODE, SLURMD)) == ["k8s"]
    assert verification.idle(picture(NODE, SLURMD)) == "w-0"
    (batch,) = examine(BATCH, picture(NODE))
    assert [one.thing for one in batch.misses] == ["no slurmd"]
    (of_pods,) = examine(replace(BATCH, flags=frozenset({"EXTERNAL_JOB"})), picture(NODE))
    assert of_pods.misses == ()
