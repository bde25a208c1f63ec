"""What happens in Kubernetes without the controller: to pods, their kubelets and objects that are being deleted."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.unit.nodeset.simulation.objects import (
    BAD,
    HOSTS,
    LOW,
    MISFIT,
    SELECTED,
    TAG,
    Object,
    owners_of,
    revision_of,
    stamp,
)
from tests.unit.nodeset.simulation.state import Record, State


class Machines(State):
    """Pods are scheduled, started, evicted and removed."""

    def do_schedule(self, index: int) -> None:
        name = self.pick([n for n, p in self.pods.items() if not p["spec"].get("nodeName") and self.is_ours(p)], index)
        if name is not None:
            free = [host for host in HOSTS if host in self.hosts and not self.is_cordoned(host)]
            if self.on_hosts:
                free = [host for host in HOSTS if self.is_pinned(name, host)]
            if not free:
                return
            host = self.pods[name]["spec"]["nodeName"] = free[index % len(free)]
            self.where[self.uid_of(name)] = host
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
            and self.is_reached(self.uid_of(n))
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
        status["podIP"] = self.uid_of(name)
        others = [one for one in status.get("conditions") or [] if one["type"] != "Ready"]
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp(self.now)}
        status["conditions"] = [*others, ready]
        self.tell("pods", "MODIFIED", self.pods[name])

    def do_register(self, index: int) -> None:
        """A slurmd that runs registers, if slurmctld is there."""
        if self.slurm_fault:
            return
        found = [n for n in self.pods if self.uid_of(n) in self.running and self.uid_of(n) not in self.known]
        able = [n for n in found if self.is_ours(self.pods[n]) and self.uid_of(n) not in self.stuck]
        name = self.pick(able, index)
        if name is None:
            return
        uid = self.uid_of(name)
        self.known.add(uid)
        self.ever_known.add(uid)
        # Its node takes jobs until the controller has seen it.
        self.excused.add(self.where.get(uid, ""))
        node = self.node_of(name)
        record = self.records.get(node)
        if record is None:
            self.records[node] = Record(node, TAG, uid, uid, self.running[uid])
            if self.image_of(name) == MISFIT:
                self.reject(self.records[node])
            return
        record.slurmd, record.slurmd_start = uid, self.running[uid]
        # So it is with ReturnToService at 2.
        record.down = False
        if not self.keeps_instance:
            record.instance, record.extra = uid, TAG

    def reject(self, record: Record) -> None:
        """Slurm drains a node for what its slurmd registered with; its words stand over any other."""
        record.invalid = record.drain = True
        record.reason, record.changed = LOW, self.slurm_now

    def do_misregister(self, index: int) -> None:
        """The slurmd of a node finds less than it did, and registers so; jobs on the node go on."""
        found = [r.name for r in self.records.values() if r.slurmd in self.running and r.name not in self.foreign]
        name = self.pick([one for one in found if self.records[one].extra == TAG], index)
        if name is not None and not self.slurm_fault:
            self.reject(self.records[name])

    def do_reregister(self, index: int) -> None:
        """What slurmds find is enough again, and they register with it; Slurm leaves the drain standing."""
        for record in self.records.values():
            if record.slurmd in self.running and not self.slurm_fault:
                pod = self.pod_of(record.name)
                record.invalid = record.invalid and pod is not None and self.image_of(pod) == MISFIT

    def do_stick(self, index: int) -> None:
        """A slurmd that has not registered never will; where all have, those of the next pods."""
        found = [n for n in self.pods if self.is_ours(self.pods[n]) and self.uid_of(n) not in self.known]
        name = self.pick(found, index)
        if name is None or index > 5:
            self.next_stuck = 3
        else:
            self.stuck.add(self.uid_of(name))

    def befall(self, uid: str) -> None:
        """A new pod may be one of those whose slurmds never register."""
        if self.next_stuck:
            self.stuck.add(uid)
            self.next_stuck -= 1

    def do_come_up(self, index: int) -> None:
        """Everything that is on its way up arrives."""
        for number in range(len(self.pods)):
            self.do_schedule(0)
            self.do_start(0)
            self.do_report(0)
            self.do_register(number)

    def do_kubelet_ends(self, index: int) -> None:
        """A pod that is being deleted comes to its end: first its containers, then the object."""
        found = [n for n, p in self.pods.items() if "deletionTimestamp" in p["metadata"]]
        name = self.pick([n for n in found if self.is_reached(self.uid_of(n))], index)
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
        name = self.pick([n for n in found if self.is_reached(self.uid_of(n))], index)
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

    # Kubernetes Nodes

    def do_host_goes(self, index: int) -> None:
        """A Node is deleted; its machine is gone with it, or only out of reach."""
        name = HOSTS[1 + index % (len(HOSTS) - 1)]
        host = self.hosts.pop(name, None)
        if host is not None:
            self.tell("nodes", "DELETED", host)
            if index > 3:
                self.end_machine(name)
                self.boot_ids[name] = f"boot-{self.next()}"

    def do_host_comes(self, index: int) -> None:
        """The Node registers again: its kubelet ends what has no pod any more, and what the API server calls failed."""
        name = self.pick([host for host in HOSTS if host not in self.hosts], index)
        if name is None:
            return
        alive = {pod["metadata"]["uid"]: pod for pod in self.pods.values()}
        self.hosts[name] = {
            "metadata": {"name": name, "uid": f"uid-{self.next()}", "labels": dict(SELECTED)},
            "spec": {},
            "status": {"nodeInfo": {"bootID": self.boot_ids.get(name, "first")}},
        }
        self.tell("nodes", "ADDED", self.hosts[name])
        for uid in [uid for uid, host in self.where.items() if host == name]:
            pod = alive.get(uid)
            if pod is None or pod["status"].get("phase") == "Failed":
                self.end_processes(uid)
            elif uid not in self.running and pod["status"].get("phase") == "Running":
                self.running[uid] = self.now
                started = {"running": {"startedAt": stamp(self.now)}}
                pod["status"]["containerStatuses"] = self.statuses(started, restartCount=1)
                self.tell("pods", "MODIFIED", pod)
            if pod is not None and pod["status"].get("phase") == "Failed":
                pod["status"]["containerStatuses"] = self.statuses({"terminated": {"exitCode": 137}})
                self.tell("pods", "MODIFIED", pod)

    def do_pods_collected(self, index: int) -> None:
        """Pods on Nodes that are gone are called Failed, and then removed; what still runs of them runs on."""
        for name, pod in list(self.pods.items()):
            if self.is_ours(pod) and not self.is_reached(pod["metadata"]["uid"]):
                if pod["status"].get("phase") != "Failed":
                    pod["status"]["phase"] = "Failed"
                    self.tell("pods", "MODIFIED", pod)
                else:
                    self.remove_pod(name)

    # The garbage collector

    def do_collect(self, index: int) -> None:
        """It deletes what has no owner left, or only one that is being deleted in the foreground."""
        owner = self.nodeset["metadata"] if self.nodeset is not None else {}
        finalizers = owner.get("finalizers") or [] if "deletionTimestamp" in owner else []
        for name, pod in list(self.pods.items()):
            self._collect_pod(name, pod, owner.get("uid"), finalizers)
        if "foregroundDeletion" in finalizers:
            for name in list(self.revisions):
                self.taken.add(revision_of(self.revisions[name]))
                self.tell("revisions", "DELETED", self.revisions.pop(name))
            owned = [name for name, one in self.maps.items() if any(o["uid"] == owner["uid"] for o in owners_of(one))]
            for name in owned:
                del self.maps[name]
        left = any(one["uid"] == owner.get("uid") for pod in self.pods.values() for one in owners_of(pod))
        done = [one for one in finalizers if left or one not in {"foregroundDeletion", "orphan"}]
        if self.nodeset is not None and done != finalizers:
            owner["finalizers"] = done
            self.tell("nodesets", "MODIFIED", self.nodeset)
            self.release()

    def _collect_pod(self, name: str, pod: Object, going: str | None, finalizers: list[str]) -> None:
        owners = owners_of(pod)
        there = [one for one in owners if self.exists(one["uid"])]
        if going is not None and {"foregroundDeletion", "orphan"} & set(finalizers):
            there = [one for one in there if one["uid"] != going]
        if not owners or there == owners:
            return
        if there or "orphan" in finalizers:
            pod["metadata"]["ownerReferences"] = there
            self.tell("pods", "MODIFIED", pod)
        elif "deletionTimestamp" not in pod["metadata"]:
            uid = pod["metadata"]["uid"]
            if uid not in self.bared:
                self.violations += [
                    f"pod {name} was collected under job {job.id} ({job.state})"
                    for job in self.jobs
                    if uid in job.alive
                ]
            self.begin_deletion(name)

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
            if self.is_ours(pod) and self.guards_of(name) - there:
                self.bared.add(self.uid_of(name))
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
        if self.is_reached(pod["metadata"]["uid"]):
            self.end_processes(pod["metadata"]["uid"])
        self.tell("pods", "DELETED", pod)

    def end_machine(self, host: str) -> None:
        """All that runs on a machine ends with it, and nobody says so."""
        for uid in [uid for uid, where in self.where.items() if where == host]:
            self.end_processes(uid)

    def end_processes(self, uid: str) -> None:
        """The containers of a pod end, and with them whatever runs there."""
        self.running.pop(uid, None)
        self.known.discard(uid)
        for job in (*self.jobs, *self.lost_jobs):
            job.alive.discard(uid)

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
        return [{"name": "slurmd", "state": state, "restartCount": 0} | more]
