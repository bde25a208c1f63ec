"""A Cluster with a real Slurm, machines that are its nodes, and the operator's own loops, woken by their triggers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final

from slinky_api import labels
from slinky_operator.bridge.caches import prune_pod
from slinky_operator.bridge.nodes.controller import BridgeNodesReconciler
from slinky_operator.bridge.nodes.observation import Observation
from slinky_operator.bridge.nodes.pod_requests import PodRequests
from slinky_operator.bridge.nodes.triggers import BridgeNodesTriggers
from slinky_operator.bridge.pods.clusters import BridgeClusters
from slinky_operator.bridge.pods.controller import GroupReconciler
from slinky_operator.bridge.pods.model.membership import INDEX
from slinky_operator.bridge.pods.observation import INDEXES_OF_JOBS, INDEXES_OF_PODS, Singles
from slinky_operator.bridge.pods.observation import Observer as GroupObserver
from slinky_operator.bridge.pods.triggers import GroupTriggers
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    BATCH_JOBS,
    BRIDGE_PODS,
    CLUSTERS,
    NAMESPACES,
    NODES,
    NODESETS,
    SLURMJOBS,
    Resource,
)
from slinky_operator.reconcile.cached.indexes import node_pruner
from slinky_operator.reconcile.cached.scripts import prune_job
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.triggers import connect, observe
from slinky_operator.runtime.controller import Controller
from slinky_operator.slurmjob.observation import INDEXES_OF_JOBS as INDEXES_OF_SLURMJOBS
from tests.support.bridged.api import PodKube
from tests.support.bridged.machines import Machines, Work
from tests.support.slurm_jobs import JobWorld, Kube, Source

TEAM: Final = "team"
USER: Final = "daemon"
HURRY: Final = 10.0
"""How much faster than others' the clock of the controller of nodes runs: it waits a minute before it resizes one."""

CONF: Final = """MinJobAge=60
GresTypes=gpu
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
NodeSet=bridge Feature=bridge
NodeSet=slurmd Feature=slurmd
PartitionName=pods Nodes=bridge State=UP PriorityTier=1
PartitionName=urgent Nodes=bridge State=UP PriorityTier=9
PartitionName=batch Nodes=slurmd State=UP"""
"""Lines of slurm.conf: what the Cluster's spec would make of it."""


class BridgedSite(JobWorld):
    """Cluster ns/slurm places pods of namespace team.

    Parameters
    ----------
    url, key
        Where the slurmrestd of its Slurm is, and the key of tokens.
    poll_interval
        Seconds between two questions whether jobs have changed.
    """

    KUBE: type[Kube] = PodKube
    kube: PodKube

    def __init__(self, url: str, key: bytes, *, poll_interval: float = 0.25) -> None:
        super().__init__(url, key, USER, poll_interval=poll_interval)
        self.groups = self.kube.cache(BRIDGE_PODS, INDEXES_OF_PODS, prune_pod)
        self.jobs = self.kube.cache(SLURMJOBS, {**INDEXES_OF_SLURMJOBS, **INDEXES_OF_JOBS}, prune_job)
        self.hosts = self.kube.cache(NODES, prune=node_pruner(bridged=True))
        _ = self.kube.cache(BATCH_JOBS)
        self.kube.put(NAMESPACES, {"metadata": {"name": "ns", "labels": {}}})
        self.machines = Machines(self.kube)
        self.controllers: tuple[Controller[Key], ...] = ()
        """Those that run."""
        tenants = [{"namespaces": [TEAM], "user": USER, "partitions": ["pods", "urgent"]}]
        self.cluster(jobs={"tenants": tenants, "bridge": {"nodeLabels": {"bridge": "yes"}, "featureLabels": ["zone"]}})

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the operator's loops for SlurmJobs, groups of pods and Kubernetes Nodes."""
        await self.start()
        async with self.working(8) as jobs:
            groups, nodes = self._groups(), self._nodes()
            self.controllers = (jobs, groups, nodes)
            tasks = [asyncio.create_task(one.run()) for one in (groups, nodes)]
            nodes.queue.add(("ns", "slurm"))
            try:
                yield
            finally:
                for one in (groups, nodes):
                    await one.stop(10)
                _ = await asyncio.gather(*tasks)
                await self.clients.close_all()

    def _sources(self, *resources: Resource) -> dict[Resource, Source]:
        return {one: Source(self.kube, one) for one in resources}

    def _groups(self) -> Controller[Key]:
        singles = Singles()
        chosen = BridgeClusters(self.kube, ClusterReader(self.clusters), ("*",), time.monotonic)
        observer = GroupObserver(
            self.kube,
            self.groups,
            self.jobs,
            chosen,
            singles,
            now=lambda: datetime.now(UTC),
            clock=time.monotonic,
            hosts=self.hosts,
        )
        reconciler = GroupReconciler(self.kube, self.events, self.groups, self.jobs, observer)
        table = GroupTriggers(self.groups, self.jobs, singles).table(
            reconciler.subscribe, seen=reconciler.expectations.observe
        )
        controller: Controller[Key] = Controller(
            "bridge-pods", reconciler.reconcile, workers=8, tell=reconciler.tell, lane=lambda key: key[0] or None
        )
        sources = self._sources(BRIDGE_PODS, SLURMJOBS, CLUSTERS)
        observe(table, sources)
        connect(table, controller.queue, sources, self.clients)
        return controller

    def _nodes(self) -> Controller[Key]:
        def clock() -> float:
            return time.monotonic() * HURRY

        reconciler = BridgeNodesReconciler(
            self.kube,
            self.events,
            ClusterReader(self.clusters),
            self.nodesets,
            Observation(self.hosts, PodRequests(self.kube, clock)),
            self.clients,
            ["*"],
            clock=clock,
        )
        controller: Controller[Key] = Controller("bridge-nodes", reconciler.reconcile)
        table = BridgeNodesTriggers(self.clusters, self.clients).table()
        connect(table, controller.queue, self._sources(CLUSTERS, NODES, NODESETS), self.clients)
        return controller

    def nodes(self) -> list[str]:
        """Names of the nodes of Slurm."""
        entry = self.clients.get("cluster-1")
        return [] if entry is None else list(entry.nodes)

    def pod(
        self,
        name: str,
        cpu: str,
        work: Work,
        owner: Object | None = None,
        index: int | None = None,
        zones: Sequence[str] = (),
        namespace: str = TEAM,
    ) -> None:
        """A pod that waits for Slurm; with an owner and an index one of a Job; it may take some zones only."""
        about: Object = {"name": name, "namespace": namespace, "labels": {labels.LABEL_BRIDGE_POD: "true"}}
        annotations = {labels.BRIDGE_PREFIX + "partition": "pods"}
        if owner is not None:
            reference = {"apiVersion": "batch/v1", "kind": "Job", "controller": True}
            own = owner["metadata"]
            about["ownerReferences"] = [{**reference, "name": own["name"], "uid": own["uid"]}]
            annotations = {**own["annotations"], INDEX: str(index)}
        zone = {"key": "zone", "operator": "In", "values": list(zones)}
        terms = [{"matchExpressions": [zone]}] if zones else []
        self._pod(about, annotations, cpu, work, [{"name": labels.GATE_BRIDGE}], terms)

    def urgent_pod(self, name: str, cpu: str, work: Work) -> None:
        """A pod whose job preempts others."""
        about: Object = {"name": name, "namespace": TEAM, "labels": {labels.LABEL_BRIDGE_POD: "true"}}
        self._pod(about, {labels.BRIDGE_PREFIX + "partition": "urgent"}, cpu, work, [{"name": labels.GATE_BRIDGE}])

    def ordinary_pod(self, name: str, node: str, cpu: str, work: Work) -> None:
        """A pod that Slurm does not place, for one Node."""
        pin = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        self._pod({"name": name, "namespace": TEAM}, {}, cpu, work, [], [pin])

    def _pod(
        self,
        about: Object,
        annotations: dict[str, Any],
        cpu: str,
        work: Work,
        gates: list[Object],
        terms: Sequence[Object] = (),
    ) -> None:
        self.machines.work[about["namespace"], about["name"]] = work
        container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
        spec: Object = {"containers": [container], "schedulingGates": gates}
        if terms:
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
            spec["affinity"] = {"nodeAffinity": required}
        body = {"metadata": {**about, "annotations": annotations}, "spec": spec, "status": {"phase": "Pending"}}
        self.kube.put(BRIDGE_PODS, body)
