"""Each kind of group with a real API server and a real Slurm 26.05: together, in order, never more than the job has.

The objects and labels are those that the controllers write (`tests.support.pod_groups`). Kubelets are the test.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import pytest
import pytest_asyncio

from hack.images.rootfs import ensure
from slinky_api import labels
from slinky_operator.bridge.pods import owners
from slinky_operator.bridge.pods import spec as bridge
from slinky_operator.bridge.pods.model.membership import INDEX
from slinky_operator.jobs import phases
from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    BATCH_JOBS,
    CLUSTERS,
    JOBSETS,
    LEADERWORKERSETS,
    NAMESPACES,
    PODGROUPS,
    PODS,
    SERVICEACCOUNTS,
    SLURMJOBS,
    Resource,
)
from slinky_operator.metrics.changes import Changes
from slinky_operator.reconcile.cached.caches import merged
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.spec import Services
from slinky_operator.reconcile.triggers import connect, observe
from slinky_operator.runtime.controller import Controller
from slinky_operator.runtime.tasks import Supervisor
from slinky_operator.settings import Settings
from slinky_operator.slurm.connection.clients import ClientMap
from slinky_operator.slurm.connection.contact import Endpoint
from slinky_operator.slurmjob import spec as slurmjob
from slurm_client import MintedToken, SlurmClient
from tests.support import pod_groups
from tests.support.control_plane import ControlPlane
from tests.support.pod_groups import controlled
from tests.support.served import apply_job_crds
from tests.support.slurm_host import SlurmHost

pytestmark = pytest.mark.timeout(300)

# Components of a heterogeneous job are started by the backfill scheduler alone.
CONF = """GresTypes=gpu
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1"""

PATIENCE_S = 240.0
GPU = "nvidia.com/gpu"
DRIVER = {"cpu": "2", "memory": "32Mi", GPU: "2"}
WORKER = {"cpu": "1", "memory": "16Mi"}
RESTARTED = 143


@pytest.fixture(scope="module")
def host() -> Iterator[SlurmHost]:
    """A Slurm with two nodes of the bridge: 4 CPUs each, 2 GPUs and 1."""
    with SlurmHost(ensure("26.05"), extra_conf=CONF) as one:
        asyncio.run(create_nodes(one))
        yield one


async def create_nodes(host: SlurmHost) -> None:
    async with SlurmClient(host.url, MintedToken(host.jwt_key)) as client:
        for name, gpus in (("k-0", 2), ("k-1", 1)):
            files = ",".join(f"file=gpu-{number}" for number in range(gpus))
            await client.create_node(
                f"NodeName={name} NodeAddr=127.0.0.1 Port={host.slurmctld_port} Sockets=1 CoresPerSocket=4 "
                f"ThreadsPerCore=1 CPUs=4 RealMemory=1000 State=EXTERNAL Feature=bridge Gres=gpu:{gpus} "
                f'GresConf="name=gpu,count={gpus},{files}"'
            )


class Site:
    """A namespace whose pods Slurm places, and both controllers."""

    def __init__(self, kube: KubeClient, host: SlurmHost, name: str) -> None:
        self.kube, self.host, self.name = kube, host, name
        self.told: list[tuple[str, str, str]] = []

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.told.append((obj["metadata"]["name"], str(reason), message))

    normal = warning

    async def until(self, what: str, holds: Callable[[], Any]) -> Any:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not (found := await holds()):  # noqa: ASYNC110 - the API server sets no event
                    await asyncio.sleep(0.1)
        except TimeoutError:
            jobs = [(one["spec"], one.get("status")) for one in await self.slurmjobs()]
            raise AssertionError(f"{what}: {jobs}, {self.told}") from None
        return found

    async def pods(self) -> dict[str, Object]:
        return {one["metadata"]["name"]: one for one in (await self.kube.list(PODS, self.name)).items}

    async def slurmjobs(self) -> list[Object]:
        found = (await self.kube.list(SLURMJOBS, self.name)).items
        return sorted(found, key=lambda one: str(one["metadata"]["creationTimestamp"] + one["metadata"]["name"]))

    async def owner(self, resource: Resource, name: str, spec: Object, **about: Any) -> Object:
        """What holds pods together."""
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name, **about}}
        return await self.kube.create(resource, {**body, "spec": spec}, self.name)

    async def pod(self, name: str, requests: Object, owner: Object | None = None, **about: Any) -> None:
        marked = {labels.LABEL_BRIDGE_POD: "true", **about.pop("labels", {})}
        metadata = {"name": name, "labels": marked, **about, **({"ownerReferences": [owner]} if owner else {})}
        devices = {key: value for key, value in requests.items() if key == GPU}
        container = {"name": "c", "image": "x", "resources": {"requests": requests, "limits": devices}}
        spec = {"schedulingGates": [{"name": labels.GATE_BRIDGE}], "restartPolicy": "Never", "containers": [container]}
        _ = await self.kube.create(
            PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, self.name
        )

    async def started(self, *names: str) -> list[str]:
        """Wait until all of these pods were placed, and return their Nodes; none has more than its job holds there."""

        async def placed() -> dict[str, Object]:
            found = await self.pods()
            lifted = {name for name in names if not found[name]["spec"].get("schedulingGates")}
            job = next(reversed(await self.slurmjobs()), {})
            # Together: pods are let go while their job runs, and while all of them are there.
            assert not lifted or (job.get("status") or {}).get("state") == "Running"
            return found if len(lifted) == len(names) else {}

        found = await self.until(f"{names} are placed", placed)
        job = (await self.slurmjobs())[-1]
        pods = [found[name] for name in names]
        nodes = [node_of(pod) for pod in pods]
        slots = [int(pod["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_SLOT]) for pod in pods]
        assert slots == list(range(len(names)))
        cpus, gpus = Counter[str](), Counter[str]()
        for pod, node in zip(pods, nodes, strict=True):
            asked = pod["spec"]["containers"][0]["resources"]["requests"]
            cpus[node] += int(asked["cpu"])
            gpus[node] += int(asked.get(GPU, 0))
        held_cpus, held_gpus = await self.held(job["status"]["jobId"])
        assert (cpus, gpus) == (held_cpus, held_gpus)
        return nodes

    async def held(self, number: int) -> tuple[Counter[str], Counter[str]]:
        """CPUs and GPUs that Slurm itself says a job has, by node."""
        cpus, gpus = Counter[str](), Counter[str]()
        async with SlurmClient(self.host.url, MintedToken(self.host.jwt_key)) as client:
            for part in await client.job_parts(number):
                assert part.is_running
                assert part.details.resources is not None
                for node, devices in zip(
                    part.details.resources.nodes, part.gres_detail or [""] * len(part.nodes), strict=True
                ):
                    cpus[node.name] += node.cpus or 0
                    gpus[node.name] += int(devices.partition("gpu:")[2].partition("(")[0] or 0)
        return cpus, gpus

    async def end(self) -> None:
        """Let all pods succeed, as kubelets do."""
        for name in await self.pods():
            _ = await self.kube.patch_status(PODS, name, {"phase": "Succeeded"}, self.name)

    async def remove(self) -> None:
        """Let all pods be gone, as their controller and kubelets do."""
        for name, pod in (await self.pods()).items():
            uid = pod["metadata"]["uid"]
            _ = await self.kube.delete(PODS, name, self.name, uid=uid, grace_seconds=0)

    async def ended(self, number: int, code: int) -> Object:
        """Wait until the job of a SlurmJob has ended in Slurm with an exit code; the SlurmJob."""

        async def over() -> Object | None:
            job = (await self.slurmjobs())[number]
            return job if (job.get("status") or {}).get("state") in {"Succeeded", "Failed"} else None

        job: Object = await self.until(f"job {number} has ended", over)
        assert job["status"]["exitCode"] == code
        assert set(self.host.job_state(job["status"]["jobId"]).split()) == {"CANCELLED"}
        return job


def node_of(pod: Object) -> str:
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    found: str = term["matchFields"][0]["values"][0]
    return found


@pytest.fixture(scope="module")
def kinds(control_plane: ControlPlane) -> Iterator[None]:
    """CRDs of the kinds that hold pods together, and the Kubernetes Nodes."""
    apply_job_crds(control_plane.kubectl)
    pod_groups.serve_kinds(control_plane.kubectl)
    names = ("k-0", "k-1")
    control_plane.kubectl.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in names)
    yield
    control_plane.kubectl("delete", "node", *names)


@pytest_asyncio.fixture
async def site(
    control_plane: ControlPlane, kinds: None, host: SlurmHost, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Site]:
    # These groups end as soon as they have begun: what was read of their owners then is old.
    monkeypatch.setattr(owners, "READ_S", 0.0)
    name = f"g{uuid.uuid4().hex[:8]}"
    async with await Connection.connect(control_plane.kubeconfig) as connection, Supervisor() as supervisor:
        kube = KubeClient(connection, fence=OpenFence(), field_manager="test")
        site = Site(kube, host, name)
        _ = await kube.create(NAMESPACES, {"metadata": {"name": name}})
        _ = await kube.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, name)
        jobs = {"tenants": [{"user": "daemon", "namespaces": [name]}], "bridge": {"nodeLabels": {"b": "1"}}}
        body = {"apiVersion": CLUSTERS.api_version, "kind": "Cluster", "metadata": {"name": "slurm"}}
        spec = {"server": host.url, "token": {"secretRef": "token"}, "jobs": jobs}
        made = await kube.create(CLUSTERS, {**body, "spec": spec}, name)
        clients = ClientMap(OpenFence())
        _ = await clients.put(
            str(made["metadata"]["uid"]),
            name,
            "slurm",
            endpoint=Endpoint(host.url, poll_interval=0.2),
            token=MintedToken(host.jwt_key),
            fingerprint="one",
        )
        settings = Settings(
            identity="test", slurmjobs=True, watch_nodes=True, bridge_clusters=(f"{name}/slurm",), leader_election=False
        )
        wanted = merged([*slurmjob.SPEC.caches(settings), *bridge.SPEC.caches(settings)])
        caches = {
            one.resource: Informer(
                kube,
                one.resource,
                namespaces=(name,) if one.resource.namespaced else (),
                label_selector=one.label_selector,
                indexers=one.indexers,
                prune=one.prune,
            )
            for one in wanted
        }
        stores = cast("Any", _Stores(caches))
        clusters = ClusterReader(stores.store(CLUSTERS))
        changes = Changes(ends=phases.ENDS)
        services = Services(
            settings, kube, stores, clusters, clients, cast("Any", site), supervisor, cast("Any", None), changes
        )
        controllers: list[Controller[tuple[str, str]]] = []
        for one in (slurmjob.SPEC, bridge.SPEC):
            built = one.build(services)
            gates = [cache.synced for cache in caches.values()]
            controller = Controller(one.name, built.reconciler.reconcile, tell=built.reconciler.tell, gates=gates)
            observe(built.triggers, caches)
            connect(built.triggers, controller.queue, caches, clients)
            controllers.append(controller)
        for resource, cache in caches.items():
            supervisor.start(str(resource), cache.run())
        for controller in controllers:
            supervisor.start(controller.name, forever(controller))
        try:
            yield site
        finally:
            for controller in controllers:
                await controller.stop(10)
            await clients.close_all()
            _ = await kube.delete(CLUSTERS, "slurm", name, uid=str(made["metadata"]["uid"]))
            async with SlurmClient(host.url, MintedToken(host.jwt_key)) as client:
                for job in await client.jobs():
                    if not job.is_finished:
                        await client.cancel_job(job.id)


class _Stores:
    """Caches by kind, as controllers ask for them."""

    def __init__(self, caches: dict[Resource, Informer]) -> None:
        self._caches = caches

    def store(self, resource: Resource) -> Any:
        return self._caches[resource].store


async def forever(controller: Controller[tuple[str, str]]) -> None:
    await controller.run()
    _ = await asyncio.Event().wait()


async def test_the_pods_of_a_job_are_packed_by_cpus_and_gpus(site: Site) -> None:
    spec = {
        "completions": 3,
        "parallelism": 3,
        "completionMode": "Indexed",
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]},
        },
    }
    job = await site.owner(BATCH_JOBS, "packed", spec)
    requests = {"cpu": "2", "memory": "16Mi", GPU: "1"}
    for index in range(3):
        about: dict[str, Any] = {"annotations": {INDEX: str(index)}, "labels": {INDEX: str(index)}}
        await site.pod(f"packed-{index}", requests, controlled(job, "Job", "batch/v1"), **about)
    assert await site.started("packed-0", "packed-1", "packed-2") == ["k-0", "k-0", "k-1"]
    await site.end()
    _ = await site.ended(0, 0)


def replicated(name: str, pods: int) -> Object:
    template = {"metadata": {"labels": {labels.LABEL_BRIDGE_POD: "true"}}}
    job = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "template": template}
    return {"name": name, "replicas": 1, "groupName": "default", "template": {"spec": job}}


async def create_attempt(site: Site, jobset: Object, attempt: int) -> list[str]:
    """The Jobs of a driver and of two workers, as the controller of JobSet makes them, and their pods."""
    set_name, made = jobset["metadata"]["name"], []
    for number, (kind, pods, requests) in enumerate((("driver", 1, DRIVER), ("node", 2, WORKER))):
        told = pod_groups.of_jobset(jobset, ("driver", "node"), number, attempt)
        name = f"{set_name}-{kind}-0"
        owner = {"metadata": {"name": name, "uid": str(uuid.uuid4())}}
        for index in range(pods):
            each: dict[str, Any] = {
                "labels": {**told, INDEX: str(index), "batch.kubernetes.io/job-name": name},
                "annotations": {**told, INDEX: str(index)},
            }
            pod = f"{name}-{index}-a{attempt}"
            await site.pod(pod, requests, controlled(owner, "Job", "batch/v1"), **each)
            made.append(pod)
    return made


async def test_a_jobset_of_a_trainjob_starts_together_restarts_as_another_job_and_is_suspended(site: Site) -> None:
    trainer = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "train", "uid": "t-1"}
    about = {"ownerReferences": [{**trainer, "controller": True}]}
    spec = {"replicatedJobs": [replicated("driver", 1), replicated("node", 2)]}
    jobset = await site.owner(JOBSETS, "train", spec, **about)
    pods = await create_attempt(site, jobset, 0)
    assert await site.started(*pods) == ["k-0", "k-1", "k-1"]
    # A restart is counted, then all Jobs are deleted, and made again.
    _ = await site.kube.patch_status(JOBSETS, "train", {"restarts": 1}, site.name)
    await site.remove()
    pods = await create_attempt(site, jobset, 1)
    _ = await site.ended(0, RESTARTED)
    assert await site.started(*pods) == ["k-0", "k-1", "k-1"]
    first, second = await site.slurmjobs()
    uid = jobset["metadata"]["uid"]
    assert [one["metadata"]["name"] for one in (first, second)] == [f"bridge-{uid}-a0", f"bridge-{uid}-a1"]
    _ = await site.kube.merge_patch(JOBSETS, "train", {"spec": {"suspend": True}}, site.name)
    await site.remove()
    _ = await site.ended(1, RESTARTED)


async def test_a_larger_leader_starts_with_its_workers(site: Site) -> None:
    spec = {"replicas": 1, "startupPolicy": "LeaderCreated", "leaderWorkerTemplate": {"size": 3}}
    made = await site.owner(LEADERWORKERSETS, "serve", spec)
    names = ["serve-0", "serve-0-1", "serve-0-2"]
    for index, name in enumerate(names):
        marked, noted = pod_groups.of_worker("serve", 3, index) if index else pod_groups.of_leader("serve", 3)
        owner = {"metadata": {"name": "serve" if index == 0 else "serve-0", "uid": str(uuid.uuid4())}}
        await site.pod(
            name,
            WORKER if index else DRIVER,
            controlled(owner, "StatefulSet", "apps/v1"),
            labels=marked,
            annotations=noted,
        )
    assert await site.started(*names) == ["k-0", "k-1", "k-1"]
    _ = await site.kube.delete(LEADERWORKERSETS, "serve", site.name, uid=made["metadata"]["uid"])
    await site.remove()
    _ = await site.ended(0, RESTARTED)


async def test_a_pod_group_starts_together_and_ends_with_its_pods(site: Site) -> None:
    _ = await site.owner(PODGROUPS, "mpi", {"minMember": 3})
    for name, requests in (("a", DRIVER), ("b", WORKER), ("c", WORKER)):
        await site.pod(name, requests, labels={pod_groups.POD_GROUP: "mpi"})
    assert await site.started("a", "b", "c") == ["k-0", "k-1", "k-1"]
    await site.end()
    _ = await site.ended(0, 0)
