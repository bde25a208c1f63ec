"""Kubernetes Nodes with a scheduler and kubelets that judge room by themselves; a pod that is refused is counted."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from slinky_operator.jobs.quantities import number_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import BRIDGE_PODS, NODES, PODS
from tests.support.bridged.api import PodKube

OVER: Final = frozenset({"Succeeded", "Failed"})
START_S: Final = 0.02
"""Seconds from the binding of a pod to its start."""


@dataclass(slots=True)
class Work:
    """What a pod does once it runs."""

    seconds: float
    code: int = 0
    grace_s: float = 0.0


@dataclass(slots=True)
class Machine:
    """A kubelet, and the pods that it has admitted and that have not ended."""

    name: str
    cpus: Decimal
    admitted: dict[str, Decimal] = field(default_factory=dict)
    """CPUs by uid of the pod."""
    scheduled: dict[str, Decimal] = field(default_factory=dict)
    """The same as the scheduler counts."""
    waiting: deque[tuple[str, str]] = field(default_factory=deque)
    """Pods for which the scheduler has found no room."""


def cpus_of(pod: Object) -> Decimal:
    """What a pod requests."""
    return sum((number_of(one["resources"]["requests"]["cpu"], "cpu") for one in pod["spec"]["containers"]), Decimal(0))


def pinned_to(pod: Object) -> str:
    """The Node that a pod must have; empty if it names none."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or ()
    values = [value for term in terms for one in term.get("matchFields") or () for value in one["values"]]
    return str(values[0]) if values else ""


def takes(pod: Object, node: Object) -> bool:
    """Whether a pod takes the labels of a Node, by the expressions of its first term that say In."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or ()
    wanted = [one for term in terms for one in term.get("matchExpressions") or ()]
    return all(node["metadata"]["labels"].get(one["key"]) in one["values"] for one in wanted)


class Machines:
    """All machines of a site.

    Parameters
    ----------
    kube
        Where pods and Nodes are.
    """

    def __init__(self, kube: PodKube) -> None:
        self._kube = kube
        self.all: dict[str, Machine] = {}
        self.work: dict[tuple[str, str], Work] = {}
        """By namespace and name of the pod."""
        self.refused: list[str] = []
        """Pods that a kubelet would have failed: they were bound to a Node without room."""
        self.unfit: list[str] = []
        """Pods that Slurm has given a Node whose labels they do not take: they would wait for ever."""
        self.overfull: list[str] = []
        """Machines whose pods had more cores than there are."""
        self.bound = 0
        self.waited = 0
        """Pods for which there was no room at first."""
        self.ended: Callable[[Object], None] = lambda _: None
        """Called with each pod that has ended, or is gone."""
        kube.pod_changed.append(self._changed)

    def add(self, name: str, cpus: int, **labels: str) -> None:
        """Add a machine."""
        self.all[name] = Machine(name, Decimal(cpus))
        shown = {"cpu": str(cpus), "memory": "64Gi"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
        status = {"allocatable": shown, "capacity": shown, "conditions": [ready]}
        self._kube.put(NODES, {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": status})

    def change(self, name: str, **spec: Any) -> None:
        """Change the spec of a Node."""
        found = self._kube.find(NODES, name)
        assert found is not None
        self._kube.put(NODES, {**found, "spec": {**found["spec"], **spec}})
        self._retry(self.all[name])

    def label(self, name: str, **labels: str | None) -> dict[str, str]:
        """Set labels of a Node, or take them off; gives those that it has."""
        found = self._kube.find(NODES, name)
        assert found is not None
        wanted = {**found["metadata"]["labels"], **labels}
        own = {key: value for key, value in wanted.items() if value is not None}
        self._kube.put(NODES, {**found, "metadata": {**found["metadata"], "labels": own}})
        return own

    def _changed(self, old: Object | None, new: Object | None) -> None:
        pod = new or old
        assert pod is not None
        where, spec = pod["spec"].get("nodeName"), pod["spec"]
        if new is None:
            if where:
                self._leave(self.all[where], pod)
            if pod["status"].get("phase") not in OVER:
                self.ended(pod)
        elif not where and not spec.get("schedulingGates") and not pod["metadata"].get("deletionTimestamp"):
            self._schedule(pod)
        elif where and pod["metadata"].get("deletionTimestamp") and not _is_deleting(old):
            grace = self.work[_key(pod)].grace_s
            _ = asyncio.get_running_loop().call_later(grace, self._gone, _key(pod), pod["metadata"]["uid"])

    def _schedule(self, pod: Object) -> None:
        """What the scheduler does: it judges room, and cordons; the pod waits where it finds none."""
        name = pinned_to(pod)
        machine, node = self.all[name], self._kube.find(NODES, name)
        uid, wanted = pod["metadata"]["uid"], cpus_of(pod)
        if uid in machine.scheduled:
            return
        if node is not None and not takes(pod, node):
            self.unfit.append(pod["metadata"]["name"])
        is_cordoned = node is None or bool(node["spec"].get("unschedulable"))
        if is_cordoned or sum(machine.scheduled.values(), wanted) > machine.cpus:
            if _key(pod) not in machine.waiting:
                machine.waiting.append(_key(pod))
                self.waited += 1
            return
        machine.scheduled[uid] = wanted
        self.bound += 1
        # The kubelet hears of it later, and judges by what runs there then.
        _ = self._kube.put(PODS, {**pod, "spec": {**pod["spec"], "nodeName": name}})
        _ = asyncio.get_running_loop().call_later(START_S, self._admit, _key(pod), uid)

    def _admit(self, key: tuple[str, str], uid: str) -> None:
        """What the kubelet does with a pod that is bound to its Node."""
        pod = self._kube.find(BRIDGE_PODS, key[1], key[0])
        if pod is None or pod["metadata"]["uid"] != uid or pod["metadata"].get("deletionTimestamp"):
            return
        machine = self.all[pod["spec"]["nodeName"]]
        if sum(machine.admitted.values(), cpus_of(pod)) > machine.cpus:
            self.refused.append(key[1])
            self.ended(self._show(pod, phase="Failed", reason="OutOfcpu"))
            return
        machine.admitted[uid] = cpus_of(pod)
        _ = self._show(pod, phase="Running")
        _ = asyncio.get_running_loop().call_later(self.work[key].seconds, self._end, key, uid)

    def _end(self, key: tuple[str, str], uid: str) -> None:
        pod = self._kube.find(BRIDGE_PODS, key[1], key[0])
        if pod is None or pod["metadata"]["uid"] != uid or pod["status"].get("phase") != "Running":
            return
        code = self.work[key].code
        end = {"exitCode": code, "reason": "Error" if code else "Completed"}
        self._leave(self.all[pod["spec"]["nodeName"]], pod)
        shown = [{"name": "main", "state": {"terminated": end}}]
        self.ended(self._show(pod, phase="Failed" if code else "Succeeded", containerStatuses=shown))

    def _gone(self, key: tuple[str, str], uid: str) -> None:
        pod = self._kube.find(BRIDGE_PODS, key[1], key[0])
        if pod is not None and pod["metadata"]["uid"] == uid:
            self._kube.forget(BRIDGE_PODS, pod)

    def _show(self, pod: Object, **status: Any) -> Object:
        return self._kube.put(BRIDGE_PODS, {**pod, "status": {**pod["status"], **status}})

    def _leave(self, machine: Machine, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if sum(machine.admitted.values()) > machine.cpus:
            self.overfull.append(machine.name)
        _ = machine.admitted.pop(uid, None), machine.scheduled.pop(uid, None)
        self._retry(machine)

    def _retry(self, machine: Machine) -> None:
        """Room has become free: pods that wait are tried in the order in which they came."""
        waiting, machine.waiting = machine.waiting, deque()
        for namespace, name in waiting:
            pod = self._kube.find(BRIDGE_PODS, name, namespace)
            if pod is not None and not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp"):
                self._schedule(pod)


def _key(pod: Object) -> tuple[str, str]:
    return str(pod["metadata"]["namespace"]), str(pod["metadata"]["name"])


def _is_deleting(pod: Object | None) -> bool:
    return pod is not None and bool(pod["metadata"].get("deletionTimestamp"))
