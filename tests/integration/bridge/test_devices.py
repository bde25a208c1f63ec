"""Devices of ResourceClaims with a real API server, scheduler, controllers and Slurm: its indices are pods' devices.

The operator is a process with the rights that the charts give. The test is the DRA driver, which writes ResourceSlices,
and the kubelets, which end pods.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hack.images.rootfs import ensure
from hack.packaging.render import ROOT, render
from slinky_api import labels
from slinky_operator.bridge.device_claims import results_of
from slinky_operator.kube import errors
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    BATCH_JOBS,
    CLUSTERS,
    DEVICECLASSES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCECLAIMS,
    RESOURCESLICES,
    SECRETS,
    SLURMJOBS,
    Resource,
)
from slinky_operator.reconcile.text import stamp
from slurm_client.notation import gres
from tests.support import control_plane, served, service_account
from tests.support.control_plane import ControlPlane
from tests.support.operator_process import OperatorProcess, operator
from tests.support.played_pods import ALIVE
from tests.support.slurm_host import SlurmHost

pytestmark = [pytest.mark.timeout(400), pytest.mark.long]

CONF = """GresTypes=gpu
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
NodeSet=bridge Feature=bridge
PartitionName=pods Nodes=bridge State=UP Default=YES"""

PATIENCE = 240
OPERATOR, TEAM = "slurm-operator", "devices-team"
CLASS = "gpu.example.com"
NODES_OF_SLURM = ("k1", "k2")
TEMPLATES = Resource("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate")
POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io"
FLAGS = ("--slurmjobs", "--watch-nodes", "--bridge-clusters=*", "--bridge-devices", "--no-leader-election")
HELD = "held"
"""Pods with this label keep their gates, even if somebody removes them, as long as the policy is there."""


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane.running("devices", controllers=True, scheduler=True) as instance:
        served.apply_crds(instance.kubectl)
        served.apply_job_crds(instance.kubectl)
        yield instance


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmHost]:
    with SlurmHost(ensure("26.05"), extra_conf=CONF) as host:
        yield host


class Site:
    """Two Nodes with four devices each, a Cluster that places pods of a namespace there, and what users do."""

    def __init__(self, kube: KubeClient, slurm: SlurmHost) -> None:
        self.kube, self.slurm = kube, slurm

    async def until(self, what: str, holds: Callable[[], Any]) -> Any:
        """Wait until something that is asked for is true, and return it."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not (found := await holds()):  # noqa: ASYNC110 - the API server sets no event
                    await asyncio.sleep(0.1)
        except TimeoutError:
            pods = [(one["metadata"]["name"], one["status"]) for one in (await self.kube.list(PODS, TEAM)).items]
            cluster = (await self.kube.get(CLUSTERS, "slurm", TEAM)).get("status")
            raise AssertionError(f"{what}: {pods}, {cluster}") from None
        return found

    async def control(self, *words: str) -> str:
        """What scontrol prints."""
        return (await asyncio.to_thread(self.slurm.run, "scontrol", *words)).stdout

    def template(self, devices: int, **about: str) -> Object:
        container = {
            "name": "c",
            "image": "x",
            "resources": {"requests": {"cpu": "1", "memory": "64Mi"}, "claims": [{"name": "gpus"}]},
        }
        return {
            "metadata": {"labels": {labels.LABEL_BRIDGE_POD: "true", **about}},
            "spec": {
                "schedulingGates": [{"name": labels.GATE_BRIDGE}],
                "tolerations": ALIVE,
                "restartPolicy": "Never",
                "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": f"gpus-{devices}"}],
                "containers": [container],
            },
        }

    async def pod(self, name: str, devices: int, **about: str) -> None:
        body = self.template(devices, **about)
        body["metadata"] |= {"name": name, "namespace": TEAM}
        _ = await self.kube.create(PODS, {"apiVersion": "v1", "kind": "Pod", **body})

    async def bound(self, *names: str) -> list[Object]:
        """The pods of these names, once the scheduler has bound them all."""

        async def found() -> list[Object]:
            pods = [one for one in (await self.kube.list(PODS, TEAM)).items if _is_one(one, names)]
            return pods if len(pods) >= len(names) and all(one["spec"].get("nodeName") for one in pods) else []

        pods: list[Object] = await self.until(f"{names} are bound", found)
        return pods

    async def claim_of(self, pod: Object) -> Object:
        statuses: list[Object] = pod["status"]["resourceClaimStatuses"]
        return await self.kube.get(RESOURCECLAIMS, statuses[0]["resourceClaimName"], TEAM)

    async def devices_of(self, pod: Object) -> set[str]:
        """Node and number of the devices in the claim of a pod."""
        results = results_of(await self.claim_of(pod))
        return {f"{one['pool']}:{one['device'].removeprefix('gpu-')}" for one in results}

    async def indices_of(self, pod: Object) -> set[str]:
        """Node and index of what Slurm has given to the job of a pod."""
        name = pod["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_SLURMJOB]
        number = (await self.kube.get(SLURMJOBS, name, TEAM))["status"]["jobId"]
        shown = await self.control("show", "job", "--details", str(number))
        found: set[str] = set()
        for nodes, words in re.findall(r"Nodes=(\S+) CPU_IDs=\S+ Mem=\S+ GRES=(\S*)", shown):
            for one in gres.parse(words):
                for node in NODES_OF_SLURM if nodes == "k[1-2]" else (nodes,):
                    found |= {f"{node}:{index}" for index in one.indices or ()}
        return found

    async def ends(self, pod: Object) -> None:
        """Let a pod succeed, as its kubelet does."""
        _ = await self.kube.patch_status(PODS, pod["metadata"]["name"], {"phase": "Succeeded"}, TEAM)

    async def is_free(self, pod: Object) -> bool:
        """Whether the claim of a pod is gone, and its job has ended."""
        name = pod["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_SLURMJOB]
        job = await self.kube.get(SLURMJOBS, name, TEAM)
        with suppress(errors.NotFound):
            _ = await self.claim_of(pod)
            return False
        return bool(job["status"]["state"] == "Succeeded")


def _is_one(pod: Object, names: tuple[str, ...]) -> bool:
    return any(pod["metadata"]["name"].startswith(name) for name in names)


@pytest.fixture
async def site(plane: ControlPlane, slurm: SlurmHost) -> AsyncIterator[Site]:
    async with await Connection.connect(plane.kubeconfig) as connection:
        kube = KubeClient(connection, fence=OpenFence(), field_manager="test")
        await furnish(kube, slurm)
        heart = asyncio.create_task(beat(kube))
        yield Site(kube, slurm)
        _ = heart.cancel()


async def furnish(kube: KubeClient, slurm: SlurmHost) -> None:
    for name in (OPERATOR, TEAM):
        _ = await kube.create(NAMESPACES, {"metadata": {"name": name}})
    token = {"metadata": {"name": "token", "namespace": TEAM}, "stringData": {"auth-token": slurm.token()}}
    _ = await kube.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", **token})
    bridge = {"nodeLabels": {"b": "1"}, "gres": [{"deviceClass": CLASS, "gres": "gpu"}]}
    jobs = {"tenants": [{"user": "daemon", "namespaces": [TEAM]}], "bridge": bridge}
    spec = {"server": slurm.url, "token": {"secretRef": "token"}, "jobs": jobs}
    about = {"name": "slurm", "namespace": TEAM}
    head = {"apiVersion": CLUSTERS.api_version, "kind": "Cluster"}
    _ = await kube.create(CLUSTERS, {**head, "metadata": about, "spec": spec})
    own = {"metadata": {"name": CLASS}, "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{CLASS}'"}}]}}
    _ = await kube.create(DEVICECLASSES, own)
    for count in (1, 2):
        exactly = {"deviceClassName": CLASS, "count": count}
        wanted = {"spec": {"devices": {"requests": [{"name": "g", "exactly": exactly}]}}}
        _ = await kube.create(TEMPLATES, {"metadata": {"name": f"gpus-{count}", "namespace": TEAM}, "spec": wanted})
    size = {"cpu": "8", "memory": "8Gi", "pods": "110"}
    for name in NODES_OF_SLURM:
        _ = await kube.create(NODES, {"metadata": {"name": name, "labels": {"b": "1"}}})
        ready = {"type": "Ready", "status": "True", "reason": "Test", "message": ""}
        _ = await kube.patch_status(NODES, name, {"allocatable": size, "capacity": size, "conditions": [ready]})
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"gpu-{number}"} for number in range(4)]
        own = {"driver": CLASS, "nodeName": name, "pool": pool, "devices": devices}
        _ = await kube.create(RESOURCESLICES, {"metadata": {"name": f"{name}-gpus"}, "spec": own})


async def beat(kube: KubeClient) -> None:
    """Let Nodes live, as their kubelets do."""
    while True:
        now = stamp(datetime.now(UTC))
        ready = {"type": "Ready", "status": "True", "reason": "Test", "message": "", "lastHeartbeatTime": now}
        for name in NODES_OF_SLURM:
            _ = await kube.patch_status(NODES, name, {"conditions": [ready]})
        await asyncio.sleep(5)


@asynccontextmanager
async def running(plane: ControlPlane, folder: Path) -> AsyncIterator[OperatorProcess]:
    """The operator, with the rights of the charts."""
    await asyncio.to_thread(folder.mkdir)
    access = service_account.kubeconfig_of(plane.kubectl, plane.kubeconfig, OPERATOR, folder / "kubeconfig")
    async with operator(access, OPERATOR, folder, *FLAGS, everywhere=True) as process:
        yield process


def give_rights(plane: ControlPlane) -> None:
    values: dict[str, Any] = {"jobs": {"enabled": True}, "bridge": {"clusters": ["*"], "devices": True}}
    plane.kubectl.apply(render(values=values, namespace=OPERATOR))
    chart = ROOT / "helm" / "slurm-bridge"
    plane.kubectl.apply(render(chart, {"tenants": [TEAM], "devices": True}, release="slurm-bridge"))
    user = service_account.user_of(OPERATOR)
    for verb, resource in (("list", "resourceslices.resource.k8s.io"), ("patch", "resourceclaims.resource.k8s.io")):
        served.wait_until_allowed(plane.kubectl, user, verb, resource, TEAM)


def hold(plane: ControlPlane) -> None:
    """Let no gate of pods with the label `HELD` be removed."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["UPDATE"]}
    refused = f"!has(object.metadata.labels.{HELD}) || has(object.spec.schedulingGates)"
    plane.kubectl.apply(
        [
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicy",
                "metadata": {"name": HELD},
                "spec": {
                    "matchConstraints": {"resourceRules": [rule]},
                    "validations": [{"expression": refused, "message": "held"}],
                },
            },
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": {"name": HELD},
                "spec": {"policyName": HELD, "validationActions": ["Deny"]},
            },
        ]
    )


@pytest.mark.full
async def test_pods_have_the_devices_whose_indices_slurm_has_given(
    plane: ControlPlane, site: Site, tmp_path: Path
) -> None:
    give_rights(plane)
    hold(plane)
    async with running(plane, tmp_path / "first") as process:

        async def are_made() -> bool:
            return (await site.control("show", "nodes")).count("Gres=gpu:4") == len(NODES_OF_SLURM)

        _ = await site.until("nodes of Slurm have the devices", are_made)
        # A single pod, and two pods of a job on one node and a third on the other or the same.
        await site.pod("alone", 2)
        spec = {"completions": 3, "parallelism": 3, "completionMode": "Indexed", "template": site.template(1)}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "gang", "namespace": TEAM}, "spec": spec}
        _ = await site.kube.create(BATCH_JOBS, job)
        (alone,) = await site.bound("alone")
        gang = await site.bound("gang-0", "gang-1", "gang-2")
        given = [await site.devices_of(one) for one in (alone, *gang)]
        assert [len(one) for one in given] == [2, 1, 1, 1]
        assert len(set[str]().union(*given)) == 5
        assert given[0] == await site.indices_of(alone)
        assert set[str]().union(*given[1:]) == await site.indices_of(gang[0])
        for pod, devices in zip((alone, *gang), given, strict=True):
            assert {one.partition(":")[0] for one in devices} == {pod["spec"]["nodeName"]}
            (user,) = (await site.claim_of(pod))["status"]["reservedFor"]
            assert user["uid"] == pod["metadata"]["uid"]
        # What is free again is given again: all devices have a pod then, each its own.
        await site.ends(alone)
        _ = await site.until("the devices are free", lambda: site.is_free(alone))
        for name in ("next-0", "next-1"):
            await site.pod(name, 2)
        first, second = await site.bound("next-0", "next-1")
        again = [await site.devices_of(one) for one in (first, second)]
        assert again == [await site.indices_of(one) for one in (first, second)]
        assert len(set[str]().union(*given[1:], *again)) == 7
        # Of a claim in use the operator itself may write nothing, and of none anything but devices and the finalizer.
        used = await site.claim_of(first)
        name, user = used["metadata"]["name"], {"resource": "pods", "name": "other", "uid": "other"}
        async with await Connection.connect(tmp_path / "first" / "kubeconfig") as connection:
            own = KubeClient(connection, fence=OpenFence(), field_manager="test")
            users = [*used["status"]["reservedFor"], user]
            with pytest.raises(errors.KubeError, match="may only write the devices"):
                _ = await own.patch_status(RESOURCECLAIMS, name, {"reservedFor": users}, TEAM)
            with pytest.raises(errors.KubeError, match="may only add the finalizer"):
                _ = await own.merge_patch(RESOURCECLAIMS, name, {"metadata": {"labels": {"a": "b"}}}, TEAM)
        # An operator that is killed between the devices and the gate.
        await site.pod("killed", 1, held="true")

        async def is_given() -> Object | None:
            pod = await site.kube.get(PODS, "killed", TEAM)
            has_claim = bool(pod["status"].get("resourceClaimStatuses"))
            return pod if has_claim and results_of(await site.claim_of(pod)) else None

        waiting = await site.until("the claim has its device", is_given)
        process.process.kill()
        _ = await process.process.wait()
    before = await site.devices_of(waiting)
    plane.kubectl("delete", POLICIES, HELD)
    async with running(plane, tmp_path / "second"):
        (killed,) = await site.bound("killed")
        assert await site.devices_of(killed) == before == await site.indices_of(killed)
        shown = killed["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_DEVICES]
        assert shown == f"gpus=gpu-{before.pop().partition(':')[2]}"
