"""A group of pods from its creation to its end, with both controllers, a fake slurmrestd, and an operator to kill.

Every request that changes something, to the API server or to Slurm, has a number: the operator ends before or after one
of them. The kubelets write down what they begin.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Literal, cast

from typing_extensions import override

from slinky_api import labels
from slinky_operator.bridge.pods.clusters import BridgeClusters
from slinky_operator.bridge.pods.controller import GroupReconciler
from slinky_operator.bridge.pods.model.membership import INDEX
from slinky_operator.bridge.pods.observation import INDEXES_OF_JOBS as BRIDGE_INDEXES_OF_JOBS
from slinky_operator.bridge.pods.observation import INDEXES_OF_PODS as BRIDGE_INDEXES_OF_PODS
from slinky_operator.bridge.pods.observation import Observer, Singles
from slinky_operator.bridge.pods.triggers import GroupTriggers
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import BATCH_JOBS, BRIDGE_PODS, SLURMJOBS, Resource
from slinky_operator.reconcile.cached.job_nodes import INDEXES_OF_PODS
from slinky_operator.reconcile.cached.scripts import prune_job
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.slurmjob.observation import INDEXES_OF_JOBS
from slurm_client.connection.transport import Transport
from slurm_client.testing import FakeSlurmrestd
from tests.support import slurm_jobs
from tests.support.slurm_jobs import Killed
from tests.unit.slurmjob.worlds import KEY

When = Literal["before", "after"]
TEAM = "team"
GATE = {"name": labels.GATE_BRIDGE}


def killed() -> None:
    """The operator ends."""
    raise Killed


class Death:
    """When something ends: at which of the operator's writes, and what."""

    def __init__(self) -> None:
        self.at: tuple[int, When] | None = None
        self.strike: Callable[[], None] = killed
        self.writes: list[str] = []

    def write(self, words: str) -> None:
        """A write is to be sent."""
        self.writes.append(words)
        self._end("before")

    def wrote(self) -> None:
        """It was carried out."""
        self._end("after")

    def _end(self, when: When) -> None:
        if self.at == (len(self.writes), when):
            self.at = None
            self.strike()


class Kube(slurm_jobs.Kube):
    """Counts writes."""

    def __init__(self) -> None:
        super().__init__()
        self.death = Death()

    @override
    async def create(self, resource: Resource, body: Object, namespace: str | None = None) -> Object:
        self.death.write(f"create {resource.plural}")
        made = await super().create(resource, body, namespace)
        self.death.wrote()
        return made

    @override
    async def merge_patch(
        self, resource: Resource, name: str, patch: Object, namespace: str | None = None, **options: Any
    ) -> Object:
        self.death.write(f"patch {resource.plural} {','.join(patch.get('spec') or patch)}")
        stored = await super().merge_patch(resource, name, patch, namespace, **options)
        self.death.wrote()
        return stored

    @override
    async def patch_status(
        self, resource: Resource, name: str, status: Object, namespace: str | None = None, **options: Any
    ) -> Object:
        self.death.write(f"status {resource.plural} {status.get('state')}")
        stored = await super().patch_status(resource, name, status, namespace, **options)
        self.death.wrote()
        return stored

    @override
    async def apply(self, resource: Resource, body: Object, **options: Any) -> Object:
        self.death.write(f"show {resource.plural}")
        about = body["metadata"]
        found = self.find(resource, about["name"], about["namespace"])
        assert found is not None
        stored = self.put(resource, {**found, "status": {**found.get("status", {}), **body["status"]}})
        self.death.wrote()
        return stored

    @override
    async def delete(self, resource: Resource, name: str, namespace: str | None = None, **options: Any) -> Object:
        self.death.write(f"delete {resource.plural}")
        found = await super().delete(resource, name, namespace, **options)
        self.death.wrote()
        return found

    async def evict(self, resource: Resource, name: str, namespace: str, **_: Any) -> Object:
        self.death.write("evict")
        found = self.find(resource, name, namespace)
        assert found is not None
        self.forget(resource, found)
        self.death.wrote()
        return found


class World(slurm_jobs.JobWorld):
    """Cluster ns/slurm places pods of namespace team on two nodes of one CPU."""

    KUBE = Kube

    def __init__(self, slurm: FakeSlurmrestd) -> None:
        super().__init__(slurm.url, KEY, "alice")
        self.slurm = slurm
        self.cluster(jobs={"tenants": self.tenants, "bridge": {"nodeLabels": {"b": "1"}}}, accounting={})
        self.pods = self.kube.cache(BRIDGE_PODS, {**INDEXES_OF_PODS, **BRIDGE_INDEXES_OF_PODS})
        self.jobs = self.kube.cache(SLURMJOBS, {**INDEXES_OF_JOBS, **BRIDGE_INDEXES_OF_JOBS}, prune_job)
        self.begun: list[tuple[str, int, bool]] = []
        """Pods that have begun: names, numbers of their jobs, and whether Slurm ran these."""

    @property
    def death(self) -> Death:
        """When the operator ends."""
        return cast("Kube", self.kube).death

    @override
    async def start(self) -> None:
        await super().start()
        singles = Singles()
        self.groups = GroupTriggers(self.pods, self.jobs, singles)
        chosen = BridgeClusters(cast("Any", self.kube), ClusterReader(self.clusters), ("*",), lambda: 0.0)
        clock = {"now": self.now, "clock": lambda: self.now().timestamp()}
        observer = Observer(cast("Any", self.kube), self.pods, self.jobs, chosen, singles, **cast("Any", clock))
        self.bridge = GroupReconciler(
            cast("Any", self.kube), cast("Any", self.events), self.pods, self.jobs, observer, **cast("Any", clock)
        )
        handlers = self.groups.table(seen=self.bridge.expectations.observe)
        self.kube.handlers["slurmjobs"] = [handlers.observers[SLURMJOBS]]

    def gang(self) -> None:
        """A Job with two pods that wait."""
        spec = {"completions": 2, "parallelism": 2, "completionMode": "Indexed"}
        self.kube.put(
            BATCH_JOBS, {"metadata": {"name": "j", "namespace": TEAM, "uid": "job-j"}, "spec": spec, "status": {}}
        )
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job-j", "controller": True}
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
        for index in range(2):
            about = {
                "name": f"j-{index}",
                "namespace": TEAM,
                "labels": {labels.LABEL_BRIDGE_POD: "true"},
                "annotations": {INDEX: str(index)},
                "ownerReferences": [owner],
                "creationTimestamp": self.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
            spec = {"containers": [container], "schedulingGates": [GATE]}
            self.kube.put(BRIDGE_PODS, {"metadata": about, "spec": spec, "status": {"phase": "Pending"}})

    def gang_pods(self) -> list[Object]:
        """All pods."""
        return [obj for (plural, _, _), obj in self.kube.objects.items() if plural == "pods"]

    def slurmjobs(self) -> list[Object]:
        """All SlurmJobs."""
        return [obj for (plural, _, _), obj in self.kube.objects.items() if plural == "slurmjobs"]

    def kubelets(self) -> None:
        """Begin pods that were let go; end them once both run. Slurm starts what waits."""
        self.slurm.world.schedule()
        for pod in self.gang_pods():
            if pod["spec"].get("schedulingGates") or pod["status"]["phase"] != "Pending":
                continue
            job = self.kube.find(SLURMJOBS, pod["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_SLURMJOB], TEAM)
            number = job["status"]["jobId"] if job is not None else 0
            known = self.slurm.world.jobs.get(number)
            self.begun.append((pod["metadata"]["name"], number, known is not None and known.is_running))
            self._set(pod, "Running")
        if all(one["status"]["phase"] == "Running" for one in self.gang_pods()):
            for pod in self.gang_pods():
                self._set(pod, "Succeeded")
            job = self.kube.find(BATCH_JOBS, "j", TEAM)
            assert job is not None
            self.kube.put(BATCH_JOBS, {**job, "status": {"conditions": [{"type": "Complete", "status": "True"}]}})

    def _set(self, pod: Object, phase: str) -> None:
        spec = {**pod["spec"], "nodeName": "k"}
        self.kube.put(BRIDGE_PODS, {**pod, "spec": spec, "status": {**pod["status"], "phase": phase}})

    async def passes(self, *, bridge_first: bool) -> None:
        """One pass of each controller over what there is."""

        async def groups() -> None:
            keys = {key for pod in self.pods for key in self.groups.pod(None, pod)}
            keys |= {key for job in self.jobs for key in self.groups.job(None, job)}
            for key in sorted(keys):
                _ = await self.bridge.reconcile(key)

        async def jobs() -> None:
            for job in self.slurmjobs():
                _ = await self.step(job["metadata"]["name"])

        for turn in (groups, jobs) if bridge_first else (jobs, groups):
            await turn()

    async def run(self, until: Callable[[], bool], *, bridge_first: bool) -> None:
        """Let an operator live until something holds."""
        try:
            async with asyncio.timeout(30):
                while not until():
                    await self.passes(bridge_first=bridge_first)
                    self.kubelets()
                    await asyncio.sleep(0.002)
        except TimeoutError:
            shown = [(one["metadata"]["name"], one.get("status")) for one in (*self.slurmjobs(), *self.gang_pods())]
            raise AssertionError(f"{self.death.writes}: {shown}, {self.living()}, {self.events.told}") from None

    def is_over(self) -> bool:
        """Whether all has come to its end, in Kubernetes, in Slurm and in its accounting."""
        pods = [one["status"]["phase"] for one in self.gang_pods()]
        jobs = [(one.get("status") or {}).get("recorded") for one in self.slurmjobs()]
        return pods == ["Succeeded"] * 2 and bool(jobs) and None not in jobs and not self.living()

    def living(self) -> list[int]:
        """Numbers of jobs that Slurm has, and that have not ended."""
        return [one.id for one in self.slurm.world.jobs.values() if not one.is_finished]


@asynccontextmanager
async def crash_world(monkeypatch: Any) -> AsyncIterator[World]:
    """A world whose writes to Slurm are counted, too."""
    async with FakeSlurmrestd(key=KEY, release="26.05.5") as slurm:
        # Two for a job that was forgotten: nobody takes them from it here.
        for number in range(4):
            slurm.add_node(f"k-{number}", cpus=1, state="IDLE+EXTERNAL", features=("bridge",))
        slurm.world.add_partition("main")
        world = World(slurm)
        real = Transport.send

        async def send(self: Transport, request: Any, *rest: Any, **options: Any) -> Any:
            if not options.get("writes"):
                return await real(self, request, *rest, **options)
            world.death.write(f"slurm {request.method} {re.sub('[0-9]+', 'N', request.path)}")
            answer = await real(self, request, *rest, **options)
            world.death.wrote()
            return answer

        monkeypatch.setattr(Transport, "send", send)
        await world.start()
        try:
            yield world
        finally:
            await world.clients.close_all()


def forget(world: World) -> None:
    """Let slurmctld be as it was before the last job."""
    for number in world.living():
        world.slurm.world.forget_job(number)


def requeue(world: World) -> None:
    """Let slurmctld not know that jobs have started."""
    for number in world.living():
        job = world.slurm.world.jobs[number]
        world.slurm.world.jobs[number] = replace(job, nodes=(), node_list="", start_time=None, gres_detail=())
        world.slurm.world.set_job_state(number, "PENDING")
