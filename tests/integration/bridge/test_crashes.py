"""An operator that is killed at each step, alone or with slurmctld, with real Slurm and a real API server.

The test plays the kubelets, and writes down what they see: no pod begins without its job, none begins twice, and no job
is left behind.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from hack.images.rootfs import ensure, ensure_mariadb
from slinky_api import labels
from slinky_operator.kube import errors
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import BATCH_JOBS, CLUSTERS, NAMESPACES, NODES, PODS, SECRETS, SLURMJOBS
from slinky_operator.slurmjob.model.stages import late_calls, submitted, unanswered
from slurm_client import MintedToken, SlurmClient
from tests.integration.bridge.mortal import Fate, Point, Slurm, Told, operator, until
from tests.support import control_plane
from tests.support.accounting_host import AccountingHost
from tests.support.control_plane import ControlPlane
from tests.support.mariadb_host import MariadbHost
from tests.support.played_pods import ALIVE, ended
from tests.support.served import apply_crds, apply_job_crds

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]

TEAM = "crashes"
HOSTS = ("k1", "k2")
SUBMIT, STATUS = "slurm POST .*job/submit", "kube PATCH .*/slurmjobs/[^/]+/status"
LIFT, END = "kube PATCH .*/pods/[^/? ]+ .*schedulingGates", 'kube PATCH .*"ended"'

POINTS = (
    Point("kube POST .*/slurmjobs ", "before"),
    Point("kube POST .*/slurmjobs ", "after"),
    Point(SUBMIT, "before"),
    Point(SUBMIT, "after"),
    Point(f"{STATUS}.*allocation", "before"),
    Point(f"{STATUS}.*allocation", "after"),
    Point(LIFT, "before"),
    # Between the two pods of the group, and before they show that they are placed.
    Point(LIFT, "before", 2),
    Point(LIFT, "after"),
    Point(END, "before"),
    Point(END, "after"),
    Point("slurm DELETE .*/job/", "before"),
    Point("slurm DELETE .*/job/", "after"),
    Point("slurm POST /slurmdb/.*/job/", "before"),
    Point("slurm POST /slurmdb/.*/job/", "after"),
)
"""Each step in the life of a group, in their order."""


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane.running("bridge-crashes", controllers=True, scheduler=True) as instance:
        apply_crds(instance.kubectl)
        apply_job_crds(instance.kubectl)
        yield instance


@pytest.fixture(scope="module")
def slurm() -> Iterator[AccountingHost]:
    with (
        MariadbHost(ensure_mariadb()) as mariadb,
        AccountingHost(ensure("26.05"), database=mariadb.database("crashes")) as host,
    ):
        yield host


class Site:
    """A Cluster that places pods on two Nodes, and what their kubelets do and see."""

    def __init__(self, kube: KubeClient, plane: ControlPlane, slurm: AccountingHost) -> None:
        self.kube, self.plane, self.slurm = kube, plane, slurm
        self.told = Told()
        self.begun: list[tuple[str, str, bool]] = []
        """Pods that have begun: their uids, numbers of their jobs, and whether Slurm ran these."""
        self.ends = False
        """Whether pods end by themselves."""

    async def pods(self) -> list[Object]:
        return (await self.kube.list(PODS, TEAM)).items

    async def slurmjobs(self) -> list[Object]:
        return (await self.kube.list(SLURMJOBS, TEAM)).items

    async def in_slurm(self) -> dict[str, str] | None:
        """States of all jobs that slurmctld has, by number; None while it does not answer."""
        command = partial(self.slurm.run, "squeue", "-h", "-t", "all", "-o", "%A %T", check=False)
        listed = await asyncio.to_thread(command)
        return None if listed.returncode else dict(line.split() for line in listed.stdout.splitlines())

    async def describe(self) -> object:
        pods = [(one["metadata"]["name"], one["spec"].get("nodeName"), one["status"]) for one in await self.pods()]
        return pods, await self.slurmjobs(), await self.in_slurm(), self.told.all, self.begun

    async def kubelets(self) -> None:
        """Begin pods that have a Node, end them when they may, and let those go that are to go."""
        while True:
            for pod in await self.pods():
                try:
                    await self._kubelet(pod)
                except errors.KubeError:
                    # Somebody was faster.
                    continue
            await asyncio.sleep(0.05)

    async def _kubelet(self, pod: Object) -> None:
        about, phase = pod["metadata"], pod["status"].get("phase")
        if not pod["spec"].get("nodeName"):
            return
        if about.get("deletionTimestamp"):
            _ = await self.kube.delete(PODS, about["name"], TEAM, uid=about["uid"], grace_seconds=0)
        elif phase == "Pending":
            job = await self.kube.get(SLURMJOBS, about["annotations"][labels.ANNOTATION_BRIDGE_SLURMJOB], TEAM)
            number, known = str(job["status"].get("jobId")), await self.in_slurm()
            if known is None:
                return
            self.begun.append((about["uid"], number, known.get(number) == "RUNNING"))
            _ = await self.kube.patch_status(PODS, about["name"], {"phase": "Running"}, TEAM)
        elif phase == "Running" and self.ends:
            _ = await self.kube.patch_status(PODS, about["name"], ended(), TEAM)

    async def gang(self, name: str) -> None:
        """Create a Job with two pods that Slurm places."""
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
        gates = {"schedulingGates": [{"name": labels.GATE_BRIDGE}], "tolerations": ALIVE, "restartPolicy": "Never"}
        template = {
            "metadata": {
                "labels": {labels.LABEL_BRIDGE_POD: "true"},
                "annotations": {f"{labels.BRIDGE_PREFIX}time": "10"},
            },
            "spec": {**gates, "containers": [container]},
        }
        spec = {"completions": 2, "parallelism": 2, "completionMode": "Indexed", "template": template}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": TEAM}, "spec": spec}
        _ = await self.kube.create(BATCH_JOBS, job)

    async def is_over(self, name: str) -> bool:
        """Whether a Job is complete, no job of it is left in Slurm, and its SlurmJobs have ended."""
        job = await self.kube.get(BATCH_JOBS, name, TEAM)
        complete = any((c["type"], c["status"]) == ("Complete", "True") for c in job["status"].get("conditions") or ())
        states = {(one.get("status") or {}).get("state") for one in await self.slurmjobs()}
        known = await self.in_slurm()
        if known is None or not complete or not states <= {"Succeeded", "Failed", "Unknown"}:
            return False
        return not set(known.values()) & {"PENDING", "RUNNING"}


@pytest.fixture(autouse=True)
def no_late_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a dead operator has not sent never arrives here: nobody has to wait for it."""
    monkeypatch.setattr(late_calls, "settled", lambda _: timedelta(seconds=1))
    for module in (unanswered, submitted):
        monkeypatch.setattr(module, "HISTORY_PATIENCE", timedelta(seconds=1))


@pytest.fixture
async def site(plane: ControlPlane, slurm: AccountingHost) -> AsyncIterator[Site]:
    async with await Connection.connect(plane.kubeconfig) as connection:
        kube = KubeClient(connection, fence=OpenFence(), field_manager="kubelet")
        await furnish(kube, slurm)
        site = Site(kube, plane, slurm)
        task = asyncio.create_task(site.kubelets())
        yield site
        task.cancel()


async def furnish(kube: KubeClient, slurm: AccountingHost) -> None:
    """Make what all tests share, unless it is there."""
    spec = {
        "jobs": {"tenants": [{"user": "daemon", "namespaces": [TEAM]}], "bridge": {"nodeLabels": {"b": "1"}}},
        "accounting": {},
    }
    try:
        _ = await kube.create(NAMESPACES, {"metadata": {"name": TEAM}})
    except errors.AlreadyExists:
        return
    about = {"name": "slurm", "namespace": TEAM}
    made = {"apiVersion": CLUSTERS.api_version, "kind": "Cluster", "metadata": about, "spec": spec}
    uid = (await kube.create(CLUSTERS, made))["metadata"]["uid"]
    own = {labels.LABEL_CLUSTER_UID: uid, labels.LABEL_CLUSTER_NAME: "slurm"}
    key = {"jwt.key": base64.b64encode(slurm.jwt_key).decode()}
    about = {"name": "slurm-auth-copy", "namespace": TEAM}
    _ = await kube.create(SECRETS, {"metadata": {**about, "labels": own}, "data": key})
    size = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    async with SlurmClient(slurm.url, MintedToken(slurm.jwt_key, "root")) as client:
        for name in HOSTS:
            await client.create_node(
                f"NodeName={name} NodeAddr=127.0.0.1 Port={slurm.slurmctld_port} Sockets=1 CoresPerSocket=1 "
                "ThreadsPerCore=1 CPUs=1 RealMemory=8000 State=EXTERNAL Feature=bridge"
            )
            _ = await kube.create(NODES, {"metadata": {"name": name}})
            ready = {"type": "Ready", "status": "True", "reason": "Test", "message": "", "lastHeartbeatTime": now}
            _ = await kube.patch_status(NODES, name, {"allocatable": size, "capacity": size, "conditions": [ready]})


@asynccontextmanager
async def life(site: Site, point: Point | None) -> AsyncIterator[Fate]:
    """Run an operator until a point at which it is killed."""
    cluster = await site.kube.get(CLUSTERS, "slurm", TEAM)
    slurm = Slurm(site.slurm.url, site.slurm.jwt_key, cluster["metadata"]["uid"], TEAM)
    fate = Fate(point)
    async with operator(site.plane.kubeconfig, slurm, fate, site.told):
        yield fate


async def test_an_operator_that_is_killed_at_each_step_places_each_pod_once(site: Site) -> None:
    await site.gang("operators")
    for point in POINTS:
        site.ends = point.words == END or site.ends
        async with life(site, point) as fate:

            async def reached(fate: Fate = fate) -> bool:
                return fate.reached.is_set()

            await until(f"{point}", reached, site.describe)
    await comes_to_its_end(site, "operators")
    # One job, two pods, each of which has begun once, while Slurm ran their job.
    (job,) = await site.slurmjobs()
    assert job["status"]["state"] == "Succeeded"
    assert job["status"]["recorded"] is True
    assert [is_run for _, _, is_run in site.begun] == [True, True]
    assert len({uid for uid, _, _ in site.begun}) == 2
    assert {number for _, number, _ in site.begun} == {str(job["status"]["jobId"])}
    listed = await asyncio.to_thread(
        site.slurm.run, "sacct", "-n", "-P", "-X", "-D", "-a", "-o", "jobid,derivedexitcode"
    )
    assert listed.stdout.split() == [f"{job['status']['jobId']}|0:0"]
    _ = await site.kube.delete(BATCH_JOBS, "operators", TEAM, uid=None)


async def comes_to_its_end(site: Site, name: str) -> None:
    """Let an operator live, and wait until nothing is left to do, and Slurm's accounting knows the end of the work."""

    async def is_over() -> bool:
        known = all("recorded" in (one.get("status") or {}) for one in await site.slurmjobs())
        return await site.is_over(name) and known

    async with life(site, None):
        await until("the end", is_over, site.describe)


STARTS = (
    Point(SUBMIT, "after"),
    Point(f"{STATUS}.*allocation", "after"),
    # Between the two pods of the group.
    Point(LIFT, "before", 2),
)
"""Steps of a group after which slurmctld has forgotten its job."""

ENDS = (
    Point("slurm DELETE .*/job/", "after"),
    Point(f'{STATUS}.*"Succeeded"', "after"),
)
"""Steps after which it has forgotten that the job has ended."""


async def crash(site: Site, saved: bytes) -> None:
    """Kill slurmctld, and start it with a state of before."""
    await asyncio.to_thread(site.slurm.stop, "slurmctld", kill=True)
    _ = (site.slurm.shared / "slurmctld" / "job_state").write_bytes(saved)
    await asyncio.to_thread(site.slurm.start_slurmctld)


async def dies_at(site: Site, point: Point) -> None:
    """Let an operator live until a point."""
    async with life(site, point) as fate:

        async def reached() -> bool:
            return fate.reached.is_set()

        await until(f"{point}", reached, site.describe)


async def runs(site: Site) -> str:
    """Let an operator live until all pods of the group run, and Slurm runs their job; returns the name of that."""

    async def holds() -> str:
        known = await site.in_slurm()
        for job in await site.slurmjobs() if known is not None and len(site.begun) >= len(HOSTS) else ():
            status = job["status"]
            if status.get("state") == "Running" and (known or {}).get(str(status["jobId"])) == "RUNNING":
                return str(status["submission"]["name"])
        return ""

    async with life(site, None):
        return str(await until("the pods and their job run", holds, site.describe))


async def saved_with(site: Site, name: str) -> bytes:
    """What slurmctld has written, with a job in it."""
    await asyncio.to_thread(site.slurm.reconfigure)

    async def is_there() -> bool:
        return bool(site.slurm.saved("job_state")) and site.slurm.has_saved(name)

    await until("slurmctld has written its jobs", is_there, site.describe)
    return site.slurm.saved("job_state")


@pytest.mark.full
async def test_slurmctld_and_the_operator_that_are_killed_together_place_each_pod_once(site: Site) -> None:
    for number, point in enumerate((*STARTS, *ENDS)):
        name = f"both-{number}"
        site.begun.clear()
        site.ends = False
        saved = await saved_with(site, "")
        await site.gang(name)
        if point in ENDS:
            saved = await saved_with(site, await runs(site))
            site.ends = True
        await dies_at(site, point)
        await crash(site, saved)
        if point in STARTS:
            # What had begun goes on, and has its job again; what had not begins with one.
            _ = await runs(site)
            site.ends = True
        await comes_to_its_end(site, name)
        began = [uid for uid, _, _ in site.begun]
        assert len(began) == len(set(began)) == len(HOSTS), f"{point}: {await site.describe()}"
        _ = await site.kube.delete(BATCH_JOBS, name, TEAM, uid=None)
