"""Devices of ResourceClaims: asked of Slurm, written into claims before the gate is lifted, one pod each."""

from __future__ import annotations

from typing import Any

import pytest
from typing_extensions import override

from slinky_api import labels
from slinky_operator.bridge.caches import INDEXES_OF_CLAIMS, INDEXES_OF_SLICES, keep_claim, keep_slice
from slinky_operator.bridge.devices import DeviceClass, devices_of, prune_slice
from slinky_operator.bridge.pods.claim_writes import FINALIZER
from slinky_operator.bridge.pods.device_reader import DeviceReader
from slinky_operator.bridge.pods.model.steps import DEVICES_S, GAP_S, GATHERING_S
from slinky_operator.kube import errors
from slinky_operator.kube.errors import Target
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    DEVICECLASSES,
    RESOURCECLAIMS,
    RESOURCESLICES,
    SLURMJOBS,
    Resource,
)
from slinky_operator.reconcile.text import stamp
from slurm_client import errors as slurm_errors
from slurm_client.models import Node, NodeState
from tests.support.memory_kube import merge
from tests.support.slurm_jobs import Killed
from tests.unit.bridge.pods.worlds import TEAM, Kube, World

CLASS = "gpu.example.com"
GRES = [{"deviceClass": CLASS, "gres": "gpu"}]


class DeviceKube(Kube):
    """Keeps claims as the API server does."""

    @override
    async def patch_status(
        self, resource: Resource, name: str, status: Object, namespace: str | None = None, **options: Any
    ) -> Object:
        if resource is not RESOURCECLAIMS:
            return await super().patch_status(resource, name, status, namespace, **options)
        found = self.check(resource, name, namespace, options)
        merged = merge(found, {"status": status})
        old, new = ((one.get("status") or {}).get("allocation") for one in (found, merged))
        if old and new and old != new:
            raise errors.Invalid(Target("patch", str(resource), namespace, name), "immutable", status=422)
        assert not (found["status"].get("reservedFor")), "a claim in use was written to"
        assert not new or FINALIZER in found["metadata"].get("finalizers", []), "the finalizer comes first"
        stored = self.put(resource, merged)
        self.wrote("allocate" if new else "release", name)
        return stored

    @override
    def check_lift(self, before: Object, after: Object) -> None:
        super().check_lift(before, after)
        held: dict[str, str] = {}
        for claim in self.all(RESOURCECLAIMS):
            for device in devices_of_claim(claim):
                assert device not in held, f"{device} has two claims"
                held[device] = claim["metadata"]["name"]
        shown = after["metadata"]["annotations"].get(labels.ANNOTATION_BRIDGE_DEVICES)
        made = after["status"].get("resourceClaimStatuses") or ()
        if made:
            own = self.find(RESOURCECLAIMS, made[0]["resourceClaimName"], TEAM)
            assert own is not None
            assert shown == "gpus=" + ",".join(one.partition("/")[2] for one in devices_of_claim(own))


def devices_of_claim(claim: Object) -> list[str]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return [f"{one['pool']}/{one['device']}" for one in allocation.get("devices", {}).get("results", ())]


class Slurm:
    """Nodes as Slurm shows them."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}
        self.is_away = False
        self.asked: list[str] = []

    @property
    def client(self) -> Slurm:
        return self

    def get(self, uid: str) -> Slurm:
        assert uid == "cluster-slurm"
        return self

    async def node(self, name: str) -> Node:
        self.asked.append(name)
        if self.is_away:
            raise slurm_errors.Unreachable("no answer")
        return Node(name=name, state=NodeState("MIXED", frozenset({"EXTERNAL"})), features=("bridge", self.words[name]))


class DeviceWorld(World):
    """k1 and k2 have four devices each."""

    def __init__(self) -> None:
        kube = DeviceKube()
        self.slurmctld = Slurm()
        self.slices = kube.cache(RESOURCESLICES, INDEXES_OF_SLICES, keep_slice)
        self.claims = kube.cache(RESOURCECLAIMS, INDEXES_OF_CLAIMS, keep_claim)
        super().__init__(kube)
        self.cluster(gres=GRES)
        config = [{"opaque": {"driver": CLASS, "parameters": {"of": "class"}}}]
        kube.put(DEVICECLASSES, {"metadata": {"name": CLASS}, "spec": {"config": config}})
        for node in ("k1", "k2"):
            self.slice_of(node, "gpu-0", "gpu-1", "gpu-2", "gpu-3")
            self.made_of(node)

    @override
    def devices(self) -> DeviceReader:
        self.reader = DeviceReader(self.kube, self.slices, self.claims, self.pods, self.slurmctld, lambda: self.seconds)
        return self.reader

    def slice_of(self, node: str, *devices: str) -> None:
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": CLASS, "nodeName": node, "pool": pool, "devices": [{"name": one} for one in devices]}
        self.kube.put(RESOURCESLICES, {"metadata": {"name": node}, "spec": spec})

    def made_of(self, node: str, *left_out: str) -> None:
        """Let Slurm have a node made of what is there now."""
        obj = self.kube.find(RESOURCESLICES, node)
        assert obj is not None
        shortened: Object = {"metadata": {}, "spec": dict(obj["spec"])}
        prune_slice(shortened)
        found = devices_of([shortened], [DeviceClass(CLASS, "gpu", CLASS, {})])
        self.slurmctld.words[node] = found.word({(CLASS, node, one) for one in left_out})

    def claim(self, name: str, owner: Object | None = None, **exactly: Any) -> Object:
        wanted = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": 1, **exactly}
        about: Object = {"name": name, "namespace": TEAM, "uid": f"uid-{name}"}
        if owner is not None:
            reference = {"apiVersion": "v1", "kind": "Pod", "controller": True}
            about["ownerReferences"] = [
                {**reference, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
            ]
        config = [{"requests": ["g"], "opaque": {"driver": CLASS, "parameters": {"of": "claim"}}}]
        devices = {"requests": [{"name": "g", "exactly": wanted}], "config": config}
        return self.kube.put(RESOURCECLAIMS, {"metadata": about, "spec": {"devices": devices}, "status": {}})

    def claimed(self, pod: Object, **exactly: Any) -> Object:
        """Let Kubernetes make the claim of a pod."""
        name = f"{pod['metadata']['name']}-gpus"
        made = self.claim(name, pod, **exactly)
        statuses = [{"name": "gpus", "resourceClaimName": name}]
        _ = self.set_pod(pod, resourceClaimStatuses=statuses)
        return made

    def pod_with(self, name: str = "p", count: int = 1, **spec: Any) -> Object:
        pod = self.pod(name, resourceClaims=[{"name": "gpus", "resourceClaimTemplateName": "t"}], **spec)
        _ = self.claimed(pod, count=count)
        return pod

    def runs_on(self, job: Object, **gres: tuple[int, str]) -> None:
        """Let Slurm run a job: tasks and indices by node."""
        each = job["spec"]["cpusPerTask"]
        allocation = [
            {"node": node, "cpus": tasks * each, "memory": 1, "gres": [f"gpu:9(IDX:{indices})"]}
            for node, (tasks, indices) in gres.items()
        ]
        _ = self.slurm(job, "Running", allocation=allocation, startTime=stamp(self.kube.now))

    def devices_of(self, pod: str) -> list[str]:
        claim = self.kube.find(RESOURCECLAIMS, f"{pod}-gpus", TEAM)
        return devices_of_claim(claim) if claim is not None else []

    def told(self, pod: str = "p") -> tuple[str, str]:
        shown = self.condition(pod)
        return shown.get("reason", ""), shown.get("message", "")


@pytest.fixture
def world() -> DeviceWorld:
    return DeviceWorld()


def gang(world: DeviceWorld, pods: int, count: int = 1, name: str = "j") -> list[Object]:
    job = world.job(name, pods, make=False)
    claims = [{"name": "gpus", "resourceClaimTemplateName": "t"}]
    made = [world.pod_of(job, index, name=f"{name}-{index}", resourceClaims=claims) for index in range(pods)]
    for pod in made:
        _ = world.claimed(pod, count=count)
    return made


async def test_a_pod_gets_the_devices_that_slurm_has_given_to_its_job(world: DeviceWorld) -> None:
    _ = world.pod_with(count=2)
    await world.settle()
    assert world.slurmjob["spec"]["parameters"]["tres_per_task"] == "gres/gpu=2"
    assert world.devices_of("p") == []
    world.runs_on(world.slurmjob, k2=(1, "1,3"))
    await world.settle()
    assert world.devices_of("p") == ["k2/gpu-1", "k2/gpu-3"]
    assert world.lifted() == ["p"]
    claim = world.kube.find(RESOURCECLAIMS, "p-gpus", TEAM)
    assert claim is not None
    allocation = claim["status"]["allocation"]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["k2"]}]}
    assert allocation["nodeSelector"] == {"nodeSelectorTerms": [term]}
    assert [
        (one["source"], one["requests"], one["opaque"]["parameters"]) for one in allocation["devices"]["config"]
    ] == [
        ("FromClass", ["g"], {"of": "class"}),
        ("FromClaim", ["g"], {"of": "claim"}),
    ]
    assert claim["metadata"]["finalizers"] == [FINALIZER]
    writes = [one for one in world.kube.writes if one.split()[1] in {"p", "p-gpus"}]
    assert writes.index("allocate p-gpus") < writes.index("lift p")


async def test_pods_of_a_gang_share_what_their_job_has_on_a_node_by_their_tasks(world: DeviceWorld) -> None:
    _ = gang(world, 3)
    await world.settle()
    world.runs_on(world.slurmjob, k2=(2, "0,3"), k1=(1, "2"))
    await world.settle()
    assert [world.devices_of(f"j-{index}") for index in range(3)] == [["k2/gpu-0"], ["k2/gpu-3"], ["k1/gpu-2"]]
    assert len(world.lifted()) == 3


async def test_no_pod_of_a_gang_is_lifted_before_all_claims_have_their_devices(world: DeviceWorld) -> None:
    _ = gang(world, 3)
    await world.settle()
    world.kube.put(RESOURCECLAIMS, rival("k1", "gpu-2"))
    world.runs_on(world.slurmjob, k2=(2, "0,3"), k1=(1, "2"))
    await world.settle()
    assert world.lifted() == []
    assert world.told("j-2")[0] == "DevicesNotReady"
    assert "ResourceClaim other/rival has device gpu-2" in world.told("j-2")[1]
    world.kube.drop(RESOURCECLAIMS, rival("k1", "gpu-2"))
    await world.settle(DEVICES_S)
    assert len(world.lifted()) == 3


def rival(node: str, *devices: str) -> Object:
    results = [{"request": "g", "driver": CLASS, "pool": node, "device": one} for one in devices]
    return {
        "metadata": {"name": "rival", "namespace": "other", "uid": "rival"},
        "spec": {"devices": {}},
        "status": {"allocation": {"devices": {"results": results}}, "reservedFor": [{"uid": "x"}]},
    }


async def test_numbers_count_without_what_slurms_node_was_made_without(world: DeviceWorld) -> None:
    world.made_of("k1", "gpu-0", "gpu-2")
    _ = world.pod_with()
    await world.settle()
    world.runs_on(world.slurmjob, k1=(1, "1"))
    await world.settle()
    assert world.devices_of("p") == ["k1/gpu-3"]


async def test_a_claim_that_is_not_made_yet_is_waited_for_and_nothing_is_submitted(world: DeviceWorld) -> None:
    pod = world.pod(resourceClaims=[{"name": "gpus", "resourceClaimTemplateName": "t"}])
    await world.settle()
    assert (world.slurmjobs(), world.told()[0]) == ([], "")
    await world.settle(GATHERING_S + 1)
    assert world.told()[0] == "ClaimsPending"
    assert "pod p: spec.resourceClaims[gpus]: its ResourceClaim is not made yet" in world.told()[1]
    _ = world.claimed(pod)
    world.kube.show_all()
    await world.turn()
    assert len(world.slurmjobs()) == 1


@pytest.mark.parametrize("last_write", range(1, 6))
async def test_an_operator_that_ends_after_a_write_comes_to_the_same(world: DeviceWorld, last_write: int) -> None:
    _ = gang(world, 2)
    await world.settle()
    world.runs_on(world.slurmjob, k2=(2, "1,2"))
    world.kube.last_write = len(world.kube.writes) + last_write
    with pytest.raises((Killed, BaseExceptionGroup)):
        await world.settle()
    world.kube.show_all()
    world.start()
    await world.settle()
    assert [world.devices_of(f"j-{index}") for index in range(2)] == [["k2/gpu-1"], ["k2/gpu-2"]]
    assert len(world.lifted()) == 2


async def test_devices_of_a_job_that_has_ended_are_taken_back_before_the_next_one(world: DeviceWorld) -> None:
    _ = gang(world, 2)
    await world.settle()
    first = world.slurmjob
    world.kube.put(RESOURCECLAIMS, rival("k2", "gpu-2"))
    world.runs_on(first, k2=(2, "1,2"))
    # The first pod could be placed, and its claim is written; the other's device is not free.
    world.kube.put(RESOURCECLAIMS, given(world, "j-0-gpus", "k2", "gpu-1"))
    await world.settle()
    assert (world.devices_of("j-0"), world.lifted()) == (["k2/gpu-1"], [])
    await world.settle(GAP_S)
    assert world.slurmjob["spec"]["external"]["ended"]["exitCode"] == 1
    _ = world.slurm(first, "Failed")
    await world.settle()
    assert world.devices_of("j-0") == []
    await world.settle(10)
    second = world.slurmjobs()[1]
    world.runs_on(second, k1=(2, "0,1"))
    await world.settle()
    assert [world.devices_of(f"j-{index}") for index in range(2)] == [["k1/gpu-0"], ["k1/gpu-1"]]


def given(world: DeviceWorld, name: str, node: str, device: str, **status: Any) -> Object:
    claim = world.kube.find(RESOURCECLAIMS, name, TEAM)
    assert claim is not None
    allocation = {"devices": {"results": [{"request": "g", "driver": CLASS, "pool": node, "device": device}]}}
    about = {**claim["metadata"], "finalizers": [FINALIZER]}
    return {**claim, "metadata": about, "status": {"allocation": allocation, **status}}


async def test_a_claim_with_other_devices_that_nobody_uses_is_written_anew(world: DeviceWorld) -> None:
    _ = world.pod_with()
    await world.settle()
    world.kube.put(RESOURCECLAIMS, given(world, "p-gpus", "k1", "gpu-0"))
    world.runs_on(world.slurmjob, k2=(1, "1"))
    await world.settle()
    assert world.devices_of("p") == ["k2/gpu-1"]
    assert "release p-gpus" in world.kube.writes


async def test_a_claim_in_use_is_never_written_to(world: DeviceWorld) -> None:
    _ = world.pod_with()
    await world.settle()
    used = given(world, "p-gpus", "k1", "gpu-0", reservedFor=[{"resource": "pods", "name": "q", "uid": "uid-q"}])
    world.kube.put(RESOURCECLAIMS, used)
    world.runs_on(world.slurmjob, k2=(1, "1"))
    await world.settle()
    assert world.lifted() == []
    assert "is used by another pod" in world.told()[1]


async def test_another_claim_that_comes_between_devices_and_lift_is_seen(world: DeviceWorld) -> None:
    _ = world.pod_with()
    await world.settle()
    world.runs_on(world.slurmjob, k2=(1, "1"))
    world.kube.show_all()
    await world.turn()
    assert world.devices_of("p") == ["k2/gpu-1"]
    assert world.lifted() == []
    world.kube.put(RESOURCECLAIMS, rival("k2", "gpu-1"))
    await world.settle()
    assert (world.lifted(), world.devices_of("p")) == ([], [])
    assert "other/rival has device gpu-1" in world.told()[1]


async def test_other_devices_than_slurms_node_was_made_of_lift_nothing_and_the_job_ends(world: DeviceWorld) -> None:
    _ = world.pod_with()
    await world.settle()
    world.slice_of("k2", "gpu-1", "gpu-2", "gpu-3")
    world.runs_on(world.slurmjob, k2=(1, "1"))
    await world.settle()
    assert world.lifted() == []
    assert "Node k2 has other devices than those of which Slurm has made its node" in world.told()[1]
    await world.settle(GAP_S)
    assert world.slurmjob["spec"]["external"]["ended"]["exitCode"] == 1


async def test_a_slurm_that_does_not_answer_ends_no_job(world: DeviceWorld) -> None:
    _ = world.pod_with()
    await world.settle()
    world.slurmctld.is_away = True
    world.runs_on(world.slurmjob, k2=(1, "1"))
    await world.settle()
    await world.settle(2 * GAP_S)
    assert "ended" not in world.slurmjob["spec"]["external"]
    assert "Slurm does not show the nodes of the job: no answer" in world.told()[1]
    world.slurmctld.is_away = False
    await world.settle(DEVICES_S)
    assert world.lifted() == ["p"]


async def test_slurm_is_asked_for_each_node_once(world: DeviceWorld) -> None:
    _ = gang(world, 3)
    await world.settle()
    world.runs_on(world.slurmjob, k2=(2, "0,3"), k1=(1, "2"))
    await world.settle()
    await world.settle(60)
    assert sorted(world.slurmctld.asked) == ["k1", "k2"]


async def test_a_feature_that_numbers_no_device_is_not_remembered(world: DeviceWorld) -> None:
    _ = gang(world, 3)
    await world.settle()
    whole = world.slurmctld.words["k1"]
    world.slurmctld.words["k2"] = whole + "f" * 2**20
    world.runs_on(world.slurmjob, k2=(2, "0,3"), k1=(1, "2"))
    await world.settle()
    await world.settle(60)
    assert sorted(world.slurmctld.asked) == ["k1", "k2"]
    assert sorted(world.reader._words.values()) == ["", whole]


@pytest.mark.parametrize("gres", ["gpu:1", "gpu:9(IDX:0)", "gpu:9(IDX:x", ""])
async def test_too_few_indices_or_none_lift_nothing(world: DeviceWorld, gres: str) -> None:
    _ = world.pod_with(count=2)
    await world.settle()
    allocation = [{"node": "k1", "cpus": 1, "memory": 1, "gres": [gres]}]
    _ = world.slurm(world.slurmjob, "Running", allocation=allocation, startTime=stamp(world.kube.now))
    await world.settle()
    assert world.lifted() == []
    assert "Slurm does not say which gpu of node k1" in world.told()[1]


async def test_a_missing_class_is_told(world: DeviceWorld) -> None:
    del world.kube.objects["deviceclasses", "", CLASS]
    _ = world.pod_with()
    await world.settle()
    world.runs_on(world.slurmjob, k1=(1, "0"))
    await world.settle()
    assert world.told() == ("DevicesNotReady", f"DeviceClass {CLASS} does not exist")
    assert world.lifted() == []


async def test_a_pod_in_the_place_of_another_gets_its_devices_once_they_are_free(world: DeviceWorld) -> None:
    pods = gang(world, 2)
    await world.settle()
    world.runs_on(world.slurmjob, k2=(2, "1,2"))
    await world.settle()
    world.kube.put(RESOURCECLAIMS, given(world, "j-0-gpus", "k2", "gpu-1", reservedFor=[{"uid": "x"}]))
    world.ends(pods[0], 1)
    again = world.pod_of(
        {"metadata": {"name": "j", "uid": "job-j"}},
        0,
        name="j-again",
        resourceClaims=[{"name": "gpus", "resourceClaimTemplateName": "t"}],
    )
    _ = world.claimed(again)
    await world.settle()
    assert "j-again" not in world.lifted()
    assert "j-0-gpus has device gpu-1" in world.told("j-again")[1]
    claim = world.kube.find(RESOURCECLAIMS, "j-0-gpus", TEAM)
    assert claim is not None
    world.kube.drop(RESOURCECLAIMS, claim)
    await world.settle(DEVICES_S)
    assert world.devices_of("j-again") == ["k2/gpu-1"]
    assert "j-again" in world.lifted()
    assert len(world.kube.all(SLURMJOBS)) == 1


@pytest.mark.parametrize(
    ("exactly", "path", "why"),
    [
        ({"adminAccess": True}, "exactly.adminAccess", "Slurm gives devices to one pod each"),
        ({"allocationMode": "All"}, "exactly.allocationMode", "ExactCount"),
        ({"selectors": [{"cel": {"expression": "true"}}]}, "exactly.selectors", "knows no such rule"),
        ({"capacity": {"requests": {"memory": "1Gi"}}}, "exactly.capacity", "whole devices"),
        ({"deviceClassName": "nic"}, "exactly.deviceClassName", "but gpu.example.com"),
    ],
)
async def test_what_slurm_cannot_keep_is_refused_by_its_path(
    world: DeviceWorld, exactly: dict[str, Any], path: str, why: str
) -> None:
    pod = world.pod(resourceClaims=[{"name": "gpus", "resourceClaimTemplateName": "t"}])
    _ = world.claimed(pod, **exactly)
    await world.settle()
    reason, message = world.told()
    assert reason == "Refused"
    assert f"spec.resourceClaims[gpus].devices.requests[g].{path}: " in message
    assert why in message
    assert world.slurmjobs() == []


@pytest.mark.parametrize(
    ("devices", "path"),
    [
        ({"requests": [{"name": "g", "firstAvailable": [{"name": "a"}]}]}, "requests[g].firstAvailable"),
        (
            {
                "requests": [{"name": "g", "exactly": {"deviceClassName": CLASS, "count": 2}}],
                "constraints": [{"matchAttribute": "x/numa"}],
            },
            "constraints",
        ),
        ({"requests": [{"name": "g", "exactly": {"deviceClassName": CLASS, "count": 33}}]}, "requests"),
    ],
)
async def test_other_shapes_of_claims_are_refused(world: DeviceWorld, devices: Object, path: str) -> None:
    _ = world.pod_with()
    claim = world.kube.find(RESOURCECLAIMS, "p-gpus", TEAM)
    assert claim is not None
    world.kube.put(RESOURCECLAIMS, {**claim, "spec": {"devices": devices}})
    await world.settle()
    assert world.told()[0] == "Refused"
    assert f"spec.resourceClaims[gpus].devices.{path}: " in world.told()[1]


async def test_a_rule_about_a_single_device_is_no_rule(world: DeviceWorld) -> None:
    _ = world.pod_with()
    claim = world.kube.find(RESOURCECLAIMS, "p-gpus", TEAM)
    assert claim is not None
    devices = {**claim["spec"]["devices"], "constraints": [{"matchAttribute": "x/numa"}]}
    world.kube.put(RESOURCECLAIMS, {**claim, "spec": {"devices": devices}})
    await world.settle()
    assert len(world.slurmjobs()) == 1


async def test_a_named_claim_is_for_one_pod(world: DeviceWorld) -> None:
    _ = world.claim("mine")
    named = [{"name": "gpus", "resourceClaimName": "mine"}]
    _ = world.pod("a", resourceClaims=named)
    await world.settle()
    world.runs_on(world.slurmjob, k1=(1, "3"))
    await world.settle()
    claim = world.kube.find(RESOURCECLAIMS, "mine", TEAM)
    assert claim is not None
    assert devices_of_claim(claim) == ["k1/gpu-3"]
    _ = world.pod("b", resourceClaims=named)
    await world.settle()
    assert world.told("b")[0] == "Refused"
    assert "pod a names ResourceClaim mine, too" in world.told("b")[1]


async def test_devices_without_a_claim_are_refused(world: DeviceWorld) -> None:
    _ = world.pod(annotations={"slurmjob.slinky.slurm.net/gres": "gpu:1"})
    await world.settle()
    assert world.told()[0] == "Refused"
    assert "ask for them in spec.resourceClaims" in world.told()[1]


async def test_without_the_setting_claims_are_refused() -> None:
    world = World()
    _ = world.pod(resourceClaims=[{"name": "gpus", "resourceClaimTemplateName": "t"}])
    await world.settle()
    assert world.condition("p")["reason"] == "Refused"
    assert "bridge.devices" in world.condition("p")["message"]
    assert world.slurmjobs() == []
