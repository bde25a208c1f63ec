"""Devices of ResourceSlices as generic resources of nodes: made, left out, changed, and never a job harmed."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.bridge.devices import word_of
from slinky_operator.bridge.nodes.triggers import BridgeNodesTriggers
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import BRIDGE_PODS, RESOURCECLAIMS, RESOURCESLICES
from tests.unit.bridge.nodes.worlds import KEY, World, cluster, host

CLASS = {"deviceClass": "gpu.example.com", "gres": "gpu"}
DRIVER = "gpu.example.com"


def slice_of(*devices: Any, node: str = "kn-1", generation: int = 1, count: int = 1) -> Object:
    return {
        "metadata": {"name": f"{node}-{generation}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": count},
            "devices": [one if isinstance(one, dict) else {"name": one} for one in devices],
        },
    }


def claim(name: str, *devices: str, node: str = "kn-1") -> Object:
    results = [{"request": "g", "driver": DRIVER, "pool": node, "device": one} for one in devices]
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    allocation = {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": terms}}
    return {
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"devices": {"requests": [{"name": "g"}]}},
        "status": {"allocation": allocation} if devices else {},
    }


def world(*devices: Any, **more: Any) -> World:
    made = World(host("kn-1"), about=cluster(gres=[CLASS]), **more)
    made.kube.put(RESOURCESLICES, slice_of(*devices))
    return made


async def test_devices_are_a_generic_resource_with_a_file_each_and_a_word_that_names_them() -> None:
    made = world("gpu-0", "gpu-1")
    await made.settle()
    (line,) = made.slurm.lines
    assert "Gres=gpu:2" in line
    assert line.count("file=gpu-any-") == 2
    word = word_of(made.slurm.nodes["kn-1"].features)
    assert word.endswith(".3")
    assert made.shown["ready"] is True


async def test_without_the_setting_nodes_are_made_without_devices_and_it_is_said() -> None:
    made = world("gpu-0", reads_devices=False)
    await made.settle()
    assert made.slurm.nodes["kn-1"].gres == ""
    assert (made.shown["ready"], made.shown["reason"]) == (False, "DevicesNotAllowed")
    assert "bridge.devices" in made.shown["message"]


async def test_a_generic_resource_that_slurm_does_not_know_is_told_and_left_out() -> None:
    made = world("gpu-0")
    made.slurm.loaded["GresTypes"] = ""
    await made.settle()
    node = made.slurm.nodes["kn-1"]
    assert (node.gres, word_of(node.features)) == ("", "")
    assert made.shown["reason"] == "GresUnknown"


@pytest.mark.parametrize(
    "after",
    [
        slice_of("gpu-0"),
        slice_of("gpu-0", "gpu-1", "gpu-2"),
        slice_of("gpu-0", {"name": "gpu-1", "taints": [{"key": "ill", "effect": "NoSchedule"}]}),
    ],
)
async def test_other_devices_drain_the_node_and_it_is_made_again_when_its_job_has_ended(after: Object) -> None:
    made = world("gpu-0", "gpu-1")
    await made.settle()
    before = word_of(made.slurm.nodes["kn-1"].features)
    made.slurm.run(1, "kn-1")
    made.kube.put(RESOURCESLICES, after)
    await made.settle(times=20)
    node = made.slurm.nodes["kn-1"]
    assert node.is_drain
    assert "other devices" in node.reason
    # What its numbers mean does not change under a job.
    assert word_of(node.features) == before
    assert made.slurm.deleted == []
    made.slurm.end(1)
    await made.settle(times=20)
    node = made.slurm.nodes["kn-1"]
    assert made.slurm.deleted == ["kn-1"]
    assert not node.is_drain
    assert word_of(node.features) not in {"", before}
    assert made.slurm.wrong == []


async def test_an_incomplete_pool_keeps_the_node_from_jobs_until_it_is_complete() -> None:
    made = world("gpu-0", "gpu-1")
    await made.settle()
    before = made.slurm.nodes["kn-1"].features
    made.kube.put(RESOURCESLICES, slice_of("gpu-0", generation=2, count=2))
    await made.settle()
    assert made.slurm.nodes["kn-1"].is_drain
    assert "1 of 2 ResourceSlices" in made.slurm.nodes["kn-1"].reason
    made.kube.put(RESOURCESLICES, slice_of("gpu-0", "gpu-1", generation=3))
    await made.settle()
    node = made.slurm.nodes["kn-1"]
    assert (node.is_drain, node.features, made.slurm.deleted) == (False, before, [])


async def test_a_driver_that_is_away_for_a_while_costs_a_drain_only() -> None:
    made = world("gpu-0", "gpu-1")
    await made.settle()
    _ = await made.kube.delete(RESOURCESLICES, "kn-1-1", uid=None)
    _ = await made.step(seconds=2)
    assert made.slurm.nodes["kn-1"].is_drain
    made.kube.put(RESOURCESLICES, slice_of("gpu-0", "gpu-1"))
    await made.settle()
    assert (made.slurm.nodes["kn-1"].is_drain, made.slurm.deleted) == (False, [])


async def test_devices_of_other_pods_are_left_out_when_the_node_is_idle_and_come_back() -> None:
    made = world("gpu-0", "gpu-1", "gpu-2")
    await made.settle()
    made.slurm.run(1, "kn-1")
    made.kube.put(RESOURCECLAIMS, claim("other", "gpu-1"))
    await made.settle(times=20)
    # Numbers still mean what they meant, so nothing is drained.
    assert (made.slurm.nodes["kn-1"].is_drain, made.slurm.deleted) == (False, [])
    made.slurm.end(1)
    await made.settle(times=20)
    node = made.slurm.nodes["kn-1"]
    assert (node.gres, word_of(node.features)[-2:]) == ("gpu:2", ".5")
    _ = await made.kube.delete(RESOURCECLAIMS, "other", "team", uid=None)
    await made.settle(times=20)
    node = made.slurm.nodes["kn-1"]
    assert (node.gres, word_of(node.features)[-2:]) == ("gpu:3", ".7")
    assert made.slurm.wrong == []


def placed(name: str, claimed: str, **more: Any) -> Object:
    about = {"name": name, "namespace": "team", "labels": {labels.LABEL_BRIDGE_POD: "true"}, **more}
    claims = [{"name": "gpus", "resourceClaimTemplateName": "t"}]
    made = [{"name": "gpus", "resourceClaimName": claimed}]
    return {
        "metadata": about,
        "spec": {"containers": [], "resourceClaims": claims},
        "status": {"resourceClaimStatuses": made},
    }


async def test_devices_of_pods_that_slurm_has_placed_stay_slurms() -> None:
    made = world("gpu-0", "gpu-1")
    await made.settle()
    made.kube.put(BRIDGE_PODS, placed("p", "c", annotations={labels.ANNOTATION_BRIDGE_SLURMJOB: "j"}))
    made.kube.put(RESOURCECLAIMS, claim("c", "gpu-1"))
    await made.settle(times=20)
    assert (made.slurm.nodes["kn-1"].gres, made.slurm.deleted) == ("gpu:2", [])
    # One whose gate somebody has removed is a pod like any other.
    made.kube.put(BRIDGE_PODS, placed("p", "c"))
    await made.settle(times=20)
    assert made.slurm.nodes["kn-1"].gres == "gpu:1"


async def test_an_administrator_who_takes_the_word_away_gets_the_node_drained_and_made_again() -> None:
    made = world("gpu-0", "gpu-1")
    await made.settle()
    features = made.slurm.nodes["kn-1"].features
    kept = tuple(one for one in features if not one.startswith("slurm-devices."))
    await made.slurm.update_nodes(("kn-1",), features=kept, active_features=kept)
    _ = await made.step(seconds=1)
    assert made.slurm.nodes["kn-1"].is_drain
    await made.settle(times=20)
    assert (made.slurm.nodes["kn-1"].features, made.slurm.nodes["kn-1"].is_drain) == (features, False)


async def test_a_restart_in_between_undrains_nothing() -> None:
    made = world("gpu-0", "gpu-1")
    await made.settle()
    made.slurm.run(1, "kn-1")
    made.kube.put(RESOURCESLICES, slice_of("gpu-1"))
    await made.settle(times=5)
    made.restart()
    await made.settle(times=5)
    assert made.slurm.nodes["kn-1"].is_drain


def test_slices_and_claims_of_others_bring_passes_and_those_of_the_bridge_none() -> None:
    made = world("gpu-0")
    objects = made.triggers.objects
    assert list(objects[RESOURCESLICES](None, slice_of("gpu-0"))) == [KEY]
    assert list(objects[RESOURCESLICES](slice_of("gpu-0"), slice_of("gpu-0"))) == []
    assert list(objects[RESOURCESLICES](None, slice_of("gpu-0", node="elsewhere"))) == []
    told: list[str] = []
    objects = BridgeNodesTriggers(*made.watched, told.append).table().objects
    assert list(objects[RESOURCECLAIMS](None, claim("c", "gpu-0"))) == [KEY]
    assert told == ["kn-1"]
    assert list(objects[RESOURCECLAIMS](None, claim("c"))) == []
    assert list(objects[RESOURCECLAIMS](claim("c", "gpu-0"), claim("c", "gpu-0"))) == []
    made.kube.put(BRIDGE_PODS, placed("p", "c", annotations={labels.ANNOTATION_BRIDGE_SLURMJOB: "j"}))
    assert list(objects[RESOURCECLAIMS](None, claim("c", "gpu-0"))) == []
    assert told == ["kn-1"]


async def test_a_claim_of_another_pod_is_seen_in_the_next_pass() -> None:
    made = world("gpu-0", "gpu-1")
    await made.settle()
    taken = claim("other", "gpu-1")
    made.kube.put(RESOURCECLAIMS, taken)
    _ = list(made.triggers.objects[RESOURCECLAIMS](None, taken))
    await made.settle(seconds=4.0, times=20)
    assert made.slurm.nodes["kn-1"].gres == "gpu:1"
