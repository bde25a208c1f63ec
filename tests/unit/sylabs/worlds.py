"""Objects of the old kinds in the world of SlurmJobs: its API server, its fake slurmrestd, and both controllers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from typing_extensions import override

from slinky_api import labels
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NAMESPACES, SLURMJOBS
from slinky_operator.reconcile.cached.scripts import prune_old_job
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.namespaces import VALID_S
from slinky_operator.runtime.controller import Result
from slinky_operator.sylabs.controller import OldJobReconciler
from slinky_operator.sylabs.kinds import KINDS, OldKind
from slinky_operator.sylabs.observation import indexes_of
from slurm_client.testing import FakeSlurmrestd
from tests.support.slurm_jobs import SCRIPT
from tests.unit.slurmjob.worlds import KEY, JobWorld

WLM, IMAGE, OLDEST = KINDS
HELLO: dict[str, dict[str, Any]] = {
    WLM.name: {"batch": SCRIPT},
    IMAGE.name: {"image": "docker://alpine:3"},
    OLDEST.name: {"batch": SCRIPT},
}
"""The least that each kind can say."""


class OldWorld(JobWorld):
    """Cluster `slurm` in namespace `ns` runs old jobs, and its tenant is namespace `team`."""

    def __init__(self, slurm: FakeSlurmrestd) -> None:
        super().__init__(slurm)
        self.stores = {kind.name: self.kube.cache(kind.resource, indexes_of(kind), prune_old_job) for kind in KINDS}
        self.sylabs()
        self.passed = 0.0
        """Seconds that have passed beside those of the clock."""
        self.trusted: frozenset[str] = frozenset()
        self.namespace("team", wants="ns/slurm")

    @override
    async def start(self) -> None:
        await super().start()
        self.controllers = {
            kind.name: OldJobReconciler(
                kind,
                self.kube,
                self.events,
                self.stores[kind.name],
                self.jobs,
                ClusterReader(self.clusters),
                self.clients,
                trusted=self.trusted,
                clock=lambda: time.monotonic() + self.passed,
                now=self.now,
            )
            for kind in KINDS
        }

    def sylabs(self, tenants: list[dict[str, Any]] | None = None, **fields: Any) -> None:
        """Write the Cluster with what its administrator says of old jobs."""
        self.cluster(jobs={"tenants": self.tenants if tenants is None else tenants, "sylabs": fields})

    def second_cluster(self, tenant: str = "team", namespace: str = "ns", **jobs: Any) -> None:
        """Another Cluster that would run the jobs of a namespace."""
        metadata = {"name": "other", "namespace": namespace, "uid": "cluster-2", "generation": 1}
        jobs = {"tenants": [{"namespaces": [tenant], "user": "bob"}], "sylabs": {}, **jobs}
        self.kube.put(CLUSTERS, {"metadata": metadata, "spec": {"jobs": jobs}})

    def namespace(self, name: str, *, wants: str = "") -> None:
        """Write a Namespace, with the Cluster that it names for its jobs."""
        annotations = {labels.ANNOTATION_SYLABS_JOBS: wants} if wants else {}
        metadata = {"name": name, "labels": {"team": "physics"}, "annotations": annotations}
        self.kube.put(NAMESPACES, {"metadata": metadata})
        self.passed += VALID_S + 1

    def old(self, kind: OldKind, name: str = "hello", *, uid: str = "", namespace: str = "team", **spec: Any) -> None:
        """Create an object of an old kind, or replace its spec."""
        known = self.kube.find(kind.resource, name, namespace) or {}
        about = known.get("metadata") or {"name": name, "namespace": namespace, "uid": uid or f"old-{kind.name}-{name}"}
        about = {**about, "generation": about.get("generation", 0) + 1}
        api_version = kind.resource.api_version
        wanted = {**known, "apiVersion": api_version, "metadata": about, "spec": {**HELLO[kind.name], **spec}}
        self.kube.put(kind.resource, wanted)

    def drop(self, kind: OldKind, name: str = "hello", namespace: str = "team") -> None:
        """Delete an object of an old kind, and with it what it owns, as the garbage collector does."""
        found = self.kube.find(kind.resource, name, namespace)
        assert found is not None
        self.kube.forget(kind.resource, found)
        for job in list(self.jobs):
            owners = job["metadata"].get("ownerReferences") or ()
            if any(one["uid"] == found["metadata"]["uid"] for one in owners):
                self.delete(job["metadata"]["name"], namespace)

    def shown(self, kind: OldKind, name: str = "hello", namespace: str = "team") -> Object:
        """The old status."""
        found: Object = (self.kube.find(kind.resource, name, namespace) or {}).get("status") or {}
        return found

    def child(self, kind: OldKind, name: str = "hello", namespace: str = "team") -> Object | None:
        """The SlurmJob of an object."""
        return self.kube.find(SLURMJOBS, kind.child(name), namespace)

    async def look(self, kind: OldKind, name: str = "hello", namespace: str = "team") -> Result:
        """One pass over an object of an old kind."""
        return await self.controllers[kind.name].reconcile((namespace, name))

    @override
    async def until(self, holds: Callable[[], Any]) -> None:
        """Run passes over all objects until something holds."""
        while not holds():
            for kind in KINDS:
                for namespace, name in list(self.stores[kind.name].keys()):
                    await self.look(kind, name, namespace)
            for namespace, name in list(self.jobs.keys()):
                await self.step(name, namespace)
            await asyncio.sleep(0.005)

    async def runs(self, kind: OldKind, name: str = "hello") -> int:
        """Wait until the old status has the number of a job."""
        await self.until(lambda: self.shown(kind, name).get("jobId"))
        number: int = self.shown(kind, name)["jobId"]
        return number


@asynccontextmanager
async def old_world() -> AsyncIterator[OldWorld]:
    async with FakeSlurmrestd(key=KEY) as slurm:
        for number in range(4):
            slurm.add_node(f"w-{number}")
        slurm.world.add_partition("main")
        world = OldWorld(slurm)
        await world.start()
        try:
            yield world
        finally:
            await world.clients.close_all()
