"""Each field of `spec.jobs.bridge` changes what is in Slurm, and what is in slurm.conf."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.rollout.in_use.removals import JobUse, Use, keep
from slinky_operator.slurm.conf import ConfInputs, NodeSetConf, PartitionConf, render
from slinky_operator.slurm.conf.inputs import BridgeConf
from tests.unit.bridge.nodes.worlds import LABEL, MARK, World, cluster, host

DEVICES = {"nvidia.com/gpu": "2", "example.com/fpga": "3"}
LABELS = {"zone": "eu-1", "site.example/rack": "r_7"}


@pytest.mark.parametrize(
    ("bridge", "features", "gres"),
    [
        ({}, ["bridge", MARK], "gpu:2"),
        ({"name": "kube"}, ["kube", MARK], "gpu:2"),
        ({"featureLabels": ["zone", "site.example/rack", "no"]}, ["bridge", "rack.r_7", "zone.eu-1", MARK], "gpu:2"),
        ({"gres": [{"resource": "example.com/fpga", "gres": "gpu:x1"}]}, ["bridge", MARK], "gpu:x1:3"),
        ({"nodeLabels": {**LABEL, "zone": "eu-2"}}, None, ""),
    ],
)
async def test_a_field_acts(bridge: dict[str, Any], features: list[str] | None, gres: str) -> None:
    world = World(host("kn-1", labels=LABELS, devices=DEVICES), about=cluster(**bridge))
    await world.settle()
    if features is None:
        assert world.slurm.nodes == {}
        return
    node = world.slurm.nodes["kn-1"]
    assert (list(node.features), node.gres) == (features, gres)


def conf(bridge: dict[str, Any] | None, *sets: str) -> Any:
    spec: dict[str, Any] = {"partitions": [{"name": "k8s", "nodeSets": ["kube", "none"]}]}
    if bridge is not None:
        spec["jobs"] = {"bridge": {"nodeLabels": LABEL, **bridge}}
    about = {"metadata": {"name": "slurm", "namespace": "here", "uid": "u"}, "spec": spec}
    return render(ConfInputs.of(Cluster.parse(about), [NodeSetConf(name) for name in sets]))


def test_the_name_is_that_of_a_set_of_nodes_and_its_resources_are_known() -> None:
    made = conf({"name": "kube", "gres": [{"resource": "example.com/fpga", "gres": "fpga:x1"}]})
    assert "NodeSet=kube Feature=kube" in made.files["slurm.conf"]
    assert "PartitionName=k8s Nodes=kube,none" in made.files["slurm.conf"]
    assert "GresTypes=fpga\n" in made.files["slurm.conf"]
    assert made.undefined == ("none",)
    assert "GresTypes=gpu\n" in conf({}).files["slurm.conf"]
    without = conf(None)
    assert without.undefined == ("kube", "none")
    assert "GresTypes" not in without.files["slurm.conf"]


def test_a_nodeset_of_that_name_is_left_out_and_told_why() -> None:
    made = conf({"name": "kube"}, "kube", "other")
    (refused,) = made.refused
    assert (refused.node_set, refused.problem.field) == ("kube", "metadata.name")
    assert "spec.jobs.bridge.name of the Cluster" in refused.problem.reason
    assert made.node_sets == ("other",)
    assert "PartitionName=kube " not in made.files["slurm.conf"]
    assert conf({}, "kube").refused == ()


def test_what_external_jobs_hold_stays_in_slurm_conf_until_they_have_ended() -> None:
    inputs = ConfInputs("c", "c-0", "c-0.c")
    bridged = replace(
        inputs,
        partitions=(PartitionConf("k8s", ("bridge",)),),
        bridge=BridgeConf("bridge", frozenset({"gpu"})),
    )
    running, wanted = render(bridged), render(inputs)
    job = JobUse(1, frozenset({"k8s"}), frozenset({"kn-1"}), frozenset({"gpu"}), holding=True)
    used = keep(running, wanted, Use(0.0, running.hash, (job,), states={"k8s": "UP"}), 1, live=True)
    conf = render(used.over(inputs), running.lines).files["slurm.conf"]
    assert "NodeSet=bridge Feature=bridge\n" in conf
    assert "PartitionName=k8s Nodes=bridge State=INACTIVE" in conf
    assert "GresTypes=gpu\n" in conf
    free = keep(running, wanted, Use(0.0, running.hash, states={"k8s": "UP"}), 1, live=True)
    assert "gpu" not in free.gres
