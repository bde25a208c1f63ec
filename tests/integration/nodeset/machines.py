"""Scheduler, kubelets and slurmds for a control plane without Nodes: pods start, register and end.

Slurm is the fake slurmrestd. The order is that of a real kubelet and slurmd: bound, running, registered; terminated,
deleted.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from slinky_operator.kube import errors
from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS, Resource
from slurm_client.models import NodeState
from slurm_client.testing import FakeSlurmrestd


class Machines:
    """Plays for all pods of one namespace.

    Parameters
    ----------
    starting
        Whether containers start; off, pods stay as they were bound.
    hosts
        Names of the Kubernetes Nodes; pods are spread over them by their ordinals.
    silent
        Names of pods whose slurmds run and never register.
    """

    def __init__(self, kube: KubeClient, slurm: FakeSlurmrestd, namespace: str, pods: Informer) -> None:
        self.kube = kube
        self.slurm = slurm
        self.namespace = namespace
        self.pods = pods
        self.starting = True
        self.hosts = ["machine"]
        self.ending = True
        self.silent: set[str] = set()
        self._started: set[str] = set()
        """Uids of pods whose containers were started: once each, however late the cache shows it."""
        self._changed = asyncio.Event()
        pods.add_handler(lambda old, new: self._changed.set())

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._changed.clear()
            for pod in self.pods.store.items(self.namespace):
                try:
                    await self._one(pod)
                except (errors.NotFound, errors.Conflict, errors.Unavailable):
                    continue  # changed or gone meanwhile, or not answered in time: the next round sees it as it is
            try:
                async with asyncio.timeout(0.2):
                    await self._changed.wait()
            except TimeoutError:
                continue  # a kubelet looks again even if nothing has told it to

    async def _one(self, pod: Object) -> None:
        if "deletionTimestamp" in pod["metadata"]:
            if self.ending:
                await self._end(pod)
        elif not pod["spec"].get("nodeName"):
            await self._bind(pod)
        elif self.starting and (pod.get("status") or {}).get("phase") == "Pending":
            await self._start(pod)

    async def _bind(self, pod: Object) -> None:
        name = pod["metadata"]["name"]
        binding = Resource("", "v1", f"pods/{name}/binding", "Binding")
        target = {"apiVersion": "v1", "kind": "Node", "name": self._host_for(pod)}
        await self.kube.create(
            binding,
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target},
            self.namespace,
        )

    def _host_for(self, pod: Object) -> str:
        affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
        for term in affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", []):
            for field in term.get("matchFields", []):
                return str(field["values"][0])
        ordinal = int(pod["metadata"]["labels"].get("nodeset.slinky.slurm.net/pod-index", "0"))
        return self.hosts[ordinal % len(self.hosts)]

    async def _start(self, pod: Object) -> None:
        if pod["metadata"]["uid"] in self._started:
            return
        now = datetime.now(UTC)
        running = {"running": {"startedAt": now.strftime("%Y-%m-%dT%H:%M:%SZ")}}
        await self.report(pod, "Running", running, ready=True)
        self._started.add(pod["metadata"]["uid"])
        if pod["metadata"]["name"] not in self.silent:
            self.register(pod, now)

    def register(self, pod: Object, now: datetime) -> None:
        """What slurmctld does when the slurmd of a pod registers, as 26.05 does it."""
        name = pod["spec"]["hostname"]
        known = self.slurm.nodes.get(name)
        if known is not None:
            base = "IDLE" if known.state.base == "DOWN" else known.state.base
            self.slurm.update_node(name, state=NodeState(base, known.state.flags), slurmd_start_time=now)
            return
        arguments = pod["spec"]["containers"][0]["args"]
        marks = {}
        if "--extra" in arguments:
            marks = {"instance_id": pod["metadata"]["uid"], "extra": arguments[arguments.index("--extra") + 1]}
        self.slurm.add_node(name, slurmd_start_time=now, **marks)

    async def _end(self, pod: Object) -> None:
        name = pod["metadata"]["name"]
        await self.report(pod, "Running", {"terminated": {"exitCode": 0}}, ready=False)
        await self.kube.delete(PODS, name, self.namespace, uid=pod["metadata"]["uid"], grace_seconds=0)

    async def report(self, pod: Object, phase: str, state: Object, *, ready: bool) -> None:
        """What a kubelet writes into a pod's status."""
        containers: list[Any] = [
            {
                "name": "slurmd",
                "image": "slurmd",
                "imageID": "",
                "ready": ready,
                "restartCount": 0,
                "state": state,
            }
        ]
        condition = {
            "type": "Ready",
            "status": "True" if ready else "False",
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        metadata = {"name": pod["metadata"]["name"], "namespace": self.namespace, "uid": pod["metadata"]["uid"]}
        status = {"phase": phase, "containerStatuses": containers, "conditions": [condition]}
        await self.kube.apply(
            PODS, {"metadata": metadata, "status": status}, subresource="status", field_manager="kubelet"
        )
