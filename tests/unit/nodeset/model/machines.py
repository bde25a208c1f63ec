"""What happens in Kubernetes by itself: to pods, their kubelets and the objects that are being deleted."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.unit.nodeset.model.objects import BAD, HOSTS, TAG, Object, stamp
from tests.unit.nodeset.model.state import Record, State


class Machines(State):
    """Pods are scheduled, started, evicted and removed."""

    def do_schedule(self, index: int) -> None:
        name = self.pick([n for n, p in self.pods.items() if not p["spec"].get("nodeName") and self.is_ours(p)], index)
        if name is not None:
            free = [host for host in HOSTS if not self.is_cordoned(host)]
            if self.on_hosts:
                free = [host for host in HOSTS if self.is_pinned(name, host)]
            if not free:
                return
            self.pods[name]["spec"]["nodeName"] = free[index % len(free)]
            waiting = {"waiting": {"reason": "ContainerCreating"}}
            self.pods[name]["status"]["containerStatuses"] = self.statuses(waiting)
            self.tell("pods", "MODIFIED", self.pods[name])

    def do_start(self, index: int) -> None:
        """The container starts; its kubelet will say so later."""
        found = [
            n
            for n, p in self.pods.items()
            if p["spec"].get("nodeName") in self.hosts
            and self.uid_of(n) not in self.running
            and p["status"].get("phase") == "Pending"
            and "deletionTimestamp" not in p["metadata"]
        ]
        name = self.pick(found, index)
        if name is None:
            return
        if self.image_of(name) == BAD:
            waiting = {"waiting": {"reason": "ImagePullBackOff"}}
            self.pods[name]["status"]["containerStatuses"] = self.statuses(waiting)
            self.tell("pods", "MODIFIED", self.pods[name])
        else:
            self.running[self.uid_of(name)] = self.now

    def do_report(self, index: int) -> None:
        """A kubelet tells that the container runs."""
        found = [
            n
            for n, p in self.pods.items()
            if self.uid_of(n) in self.running
            and p["status"].get("phase") == "Pending"
            and "deletionTimestamp" not in p["metadata"]
        ]
        name = self.pick(found, index)
        if name is None:
            return
        status = self.pods[name]["status"]
        status["phase"] = "Running"
        started = self.running[self.uid_of(name)]
        status["containerStatuses"] = self.statuses({"running": {"startedAt": stamp(started)}})
        others = [one for one in status.get("conditions") or [] if one["type"] != "Ready"]
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp(self.now)}
        status["conditions"] = [*others, ready]
        self.tell("pods", "MODIFIED", self.pods[name])

    def do_register(self, index: int) -> None:
        """A slurmd that runs registers, if slurmctld is there."""
        if self.slurm_fault:
            return
        found = [n for n in self.pods if self.uid_of(n) in self.running and self.uid_of(n) not in self.known]
        name = self.pick([n for n in found if self.is_ours(self.pods[n])], index)
        if name is None:
            return
        uid = self.uid_of(name)
        self.known.add(uid)
        node = self.node_of(name)
        record = self.records.get(node)
        if record is None:
            self.records[node] = Record(node, TAG, uid, uid, self.running[uid])
            return
        record.slurmd, record.slurmd_start = uid, self.running[uid]
        # So it is with ReturnToService at 2.
        record.down = False
        if not self.keeps_instance:
            record.instance, record.extra = uid, TAG

    def do_come_up(self, index: int) -> None:
        """Everything that is on its way up arrives."""
        for number in range(len(self.pods)):
            self.do_schedule(0)
            self.do_start(0)
            self.do_report(0)
            self.do_register(number)

    def do_kubelet_ends(self, index: int) -> None:
        """A pod that is being deleted comes to its end: first its containers, then the object."""
        name = self.pick([n for n, p in self.pods.items() if "deletionTimestamp" in p["metadata"]], index)
        if name is None:
            return
        pod = self.pods[name]
        states = pod["status"].get("containerStatuses") or []
        if states and "terminated" not in states[0]["state"]:
            self.end_processes(pod["metadata"]["uid"])
            pod["status"]["containerStatuses"] = self.statuses({"terminated": {"exitCode": 0}})
            self.tell("pods", "MODIFIED", pod)
        else:
            self.remove_pod(name)

    def do_evict(self, index: int) -> None:
        """A kubelet throws a running pod out: its jobs die, by no fault of ours."""
        found = [n for n, p in self.pods.items() if p["status"].get("phase") == "Running" and self.is_ours(p)]
        name = self.pick(found, index)
        if name is not None and "deletionTimestamp" not in self.pods[name]["metadata"]:
            self.end_processes(self.uid_of(name))
            self.pods[name]["status"]["phase"] = "Failed"
            self.pods[name]["status"]["containerStatuses"] = self.statuses({"terminated": {"exitCode": 137}})
            self.tell("pods", "MODIFIED", self.pods[name])

    def do_claims_go(self, index: int) -> None:
        """Claims that are being deleted come to their end."""
        for name, claim in list(self.claims.items()):
            if "deletionTimestamp" in claim["metadata"]:
                self.tell("claims", "DELETED", self.claims.pop(name))

    # Faults

    def do_lose_kube(self, index: int) -> None:
        self.lose_kube = 1 + index % 2

    def do_fail_kube(self, index: int) -> None:
        self.fail_kube = 1 + index % 2

    # What the others set going

    def collect_guards(self) -> None:
        """The garbage collector takes owners that are gone from pods that have another one."""
        there = {guard["metadata"]["uid"] for guard in self.maps.values()}
        for name, pod in self.pods.items():
            if self.guards_of(name) - there:
                metadata = pod["metadata"]
                metadata["ownerReferences"] = [
                    one for one in metadata["ownerReferences"] if one["kind"] != "ConfigMap" or one["uid"] in there
                ]
                self.tell("pods", "MODIFIED", pod)

    def begin_deletion(self, name: str) -> None:
        pod = self.pods[name]
        if not pod["spec"].get("nodeName") or pod["status"].get("phase") == "Failed":
            self.remove_pod(name)
        else:
            pod["metadata"]["deletionTimestamp"] = stamp(self.now + timedelta(seconds=30))
            self.tell("pods", "MODIFIED", pod)

    def remove_pod(self, name: str) -> None:
        pod = self.pods.pop(name)
        self.end_processes(pod["metadata"]["uid"])
        self.tell("pods", "DELETED", pod)

    def end_processes(self, uid: str) -> None:
        """The containers of a pod end, and with them whatever runs there."""
        self.running.pop(uid, None)
        self.known.discard(uid)
        for job in self.jobs:
            if job.slurmd == uid:
                job.alive = False

    def release(self) -> None:
        """What the API server does with an object being deleted that has no finalizer left."""
        if self.nodeset is None:
            return
        metadata = self.nodeset["metadata"]
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            obj, self.nodeset = self.nodeset, None
            self.tell("nodesets", "DELETED", obj)
            if any(self.is_ours(pod) for pod in self.pods.values()):
                self.violations.append("the NodeSet went before its pods")
            if self.maps:
                self.violations.append("the guard outlived the NodeSet")

    def statuses(self, state: Object, **more: Any) -> list[Object]:
        return [{"name": "slurmd", "state": state, "restartCount": 0, **more}]
