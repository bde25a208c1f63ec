"""Slurm and Kubernetes as they are, and what may happen to them: a small model that knows no rule of the controller.

`World` holds the truth: pods with their objects, what really runs in them, node records, jobs with their processes.
Every method named `do_*` is something that happens by itself or by somebody else's hand. The doors through which the
controller sees and changes the world are in `doors`; they call the methods named `order_*`, which also watch over what
is never allowed to happen and note it in `violations`.
"""

from __future__ import annotations

import marshal
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from slurm_client import errors as slurm_errors
from slurm_client.models import Job, Node
from slurm_client.models.job import JobState
from slurm_client.models.node import NodeState

NAMESPACE = "ns"
NODESET = "a"
CLUSTER = "c"
TAG = f"{NAMESPACE}/{NODESET}"
HOSTS = ("host-0", "host-1", "host-2")
"""Kubernetes Nodes; the first is never cordoned, so that there is always room."""
SELECTED = {"slurm": "yes"}
"""Labels of the Nodes that are to have a pod each."""
NEIGHBOUR = f"{NAMESPACE}/a-b"
"""Tag of somebody else's nodes; ours is how it begins."""

REGISTERED = "nodeset.slinky.slurm.net/Registered"
PROTECT_LABEL = "nodeset.slinky.slurm.net/pod-protect"
UID_LABEL = "nodeset.slinky.slurm.net/uid"
OURS = "slurm-operator: "
BAD = "bad"
"""An image that no kubelet can start."""

Object = dict[str, Any]


@dataclass
class Record:
    """A node record in slurmctld."""

    name: str
    extra: str
    instance: str
    slurmd: str
    """Uid of the pod whose slurmd it talks to; may be dead."""
    slurmd_start: datetime
    features: tuple[str, ...] = ("a",)
    topology: str = ""
    drain: bool = False
    down: bool = False
    reason: str = ""
    changed: datetime | None = None


@dataclass
class WorldJob:
    """A job on one node, which it may share with another."""

    id: int
    node: str
    state: str
    """RUNNING, SUSPENDED, COMPLETING, STAGE_OUT, or an end state."""
    slurmd: str
    """Uid of the pod its processes are in."""
    alive: bool = True
    start: datetime | None = None
    requeue: bool = True
    batch: bool = True

    @property
    def holds(self) -> bool:
        return self.state in {"RUNNING", "SUSPENDED", "COMPLETING", "STAGE_OUT"}


@dataclass
class World:
    """The truth."""

    keeps_instance: bool = True
    """Slurm 26.05 keeps a record's instance id over registrations; 24.11 takes the new one."""
    on_hosts: bool = False
    """Whether the NodeSet has one pod on each Node that is labelled, which gives the Slurm node its name."""
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    nodeset: Object | None = None
    pods: dict[str, Object] = field(default_factory=dict)
    hosts: dict[str, Object] = field(default_factory=dict)
    running: dict[str, datetime] = field(default_factory=dict)
    """Uids of pods whose slurmd really runs, and since when."""
    known: set[str] = field(default_factory=set)
    """Uids of running slurmds that have registered and have a record."""
    maps: dict[str, Object] = field(default_factory=dict)
    revisions: dict[str, Object] = field(default_factory=dict)
    claims: dict[str, Object] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)
    jobs: list[WorldJob] = field(default_factory=list)
    log: list[tuple[str, str, Object]] = field(default_factory=list)
    """What watchers will be told: resource, kind of event, object."""
    violations: list[str] = field(default_factory=list)
    slurm_fault: str = ""
    """Empty, or what every call to Slurm meets: 401, timeout, 500."""
    lose_slurm: int = 0
    """Writes to Slurm whose answers will be lost although they are carried out."""
    lose_kube: int = 0
    fail_kube: int = 0
    picture: dict[str, Node] = field(default_factory=dict)
    """The last full list the poller took."""
    picture_at: float | None = None
    ready: bool = True
    """What the state of contact says; lags behind the truth."""
    counter: int = 0
    update_budget: int = 1
    seen_drain: Object = field(default_factory=dict)
    """`spec.drain` that the controller sees."""
    seen_replicas: int = 0
    """The number of replicas in the spec that the controller sees."""
    seen_selected: set[str] = field(default_factory=lambda: set(HOSTS))
    """The Nodes that are to have a pod, as the controller sees them."""
    seen_cordoned: set[str] = field(default_factory=set)
    """The Nodes that are cordoned, as the controller sees them."""
    seen_retention: Object = field(default_factory=dict)
    """What is to become of claims, in that spec."""
    seen_update: Object = field(default_factory=dict)
    """How it is to update, in that spec."""
    foreign: dict[str, str] = field(default_factory=dict)
    """Reasons of drains that are not ours, by node, as long as they stand."""
    frozen: bytes = b""
    """As it was when it was first copied."""
    exposed: set[str] = field(default_factory=set)
    """Uids of pods that may be evicted although jobs may start there, since somebody else gave their nodes back."""

    def __post_init__(self) -> None:
        self.records["a-b-0"] = Record("a-b-0", NEIGHBOUR, "neighbour", "neighbour", self.now)
        self.running["neighbour"] = self.now
        self.known.add("neighbour")
        for name in HOSTS:
            metadata = {"name": name, "uid": f"uid-of-{name}", "labels": dict(SELECTED)}
            self.hosts[name] = {"metadata": metadata, "spec": {}, "status": {}}
            self.tell("nodes", "ADDED", self.hosts[name])
        self.create_nodeset(2)
        self.do_poll(0)

    # Helpers

    def twin(self) -> World:
        """A world of its own that is like this one, and of which nothing has been told yet."""
        if not self.frozen:
            self.log.clear()
            self.frozen = pickle.dumps(self)
        copied: World = pickle.loads(self.frozen)  # noqa: S301 - written a moment before
        return copied

    def next(self) -> int:
        self.counter += 1
        return self.counter

    def tell(self, resource: str, kind: str, obj: Object) -> None:
        obj["metadata"]["resourceVersion"] = str(self.next())
        self.log.append((resource, kind, clone(obj)))

    def pick(self, items: Any, index: int) -> Any:
        ordered = sorted(items)
        return ordered[index % len(ordered)] if ordered else None

    def uid_of(self, name: str) -> str:
        return str(self.pods[name]["metadata"]["uid"])

    def node_of(self, name: str) -> str:
        """Name of a pod's node in Slurm."""
        return str(self.pods[name]["spec"].get("hostname") or name)

    def pod_of(self, node: str) -> str | None:
        """Name of the pod of a node."""
        return next((name for name in self.pods if self.node_of(name) == node), None)

    def image_of(self, name: str) -> str:
        return str(self.pods[name]["spec"]["containers"][0]["image"])

    def is_ours(self, pod: Object) -> bool:
        return (pod["metadata"].get("labels") or {}).get(UID_LABEL) == "set-uid"

    def jobs_on(self, node: str) -> list[WorldJob]:
        return [job for job in self.jobs if job.node == node and job.holds]

    def create_nodeset(self, replicas: int) -> None:
        self.nodeset = {
            "apiVersion": "slinky.slurm.net/v1alpha1",
            "kind": "NodeSet",
            "metadata": {
                "name": NODESET,
                "namespace": NAMESPACE,
                "uid": "set-uid",
                "generation": 1,
                "creationTimestamp": stamp(self.now),
            },
            "spec": {
                "clusterName": CLUSTER,
                "replicas": replicas,
                "image": "v1",
                "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
                "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Delete"},
            },
        }
        if self.on_hosts:
            self.nodeset["spec"] |= {"scalingMode": "DaemonSet", "template": {"spec": {"nodeSelector": SELECTED}}}
        self.tell("nodesets", "ADDED", self.nodeset)

    def end_processes(self, uid: str) -> None:
        """The containers of a pod end, and with them whatever runs there."""
        self.running.pop(uid, None)
        self.known.discard(uid)
        for job in self.jobs:
            if job.slurmd == uid:
                job.alive = False

    def remove_pod(self, name: str) -> None:
        pod = self.pods.pop(name)
        self.end_processes(pod["metadata"]["uid"])
        self.tell("pods", "DELETED", pod)

    def statuses(self, state: Object, **more: Any) -> list[Object]:
        return [{"name": "slurmd", "state": state, "restartCount": 0, **more}]

    # What happens to pods

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

    def do_come_up(self, index: int) -> None:
        """Everything that is on its way up arrives."""
        for number in range(len(self.pods)):
            self.do_schedule(0)
            self.do_start(0)
            self.do_report(0)
            self.do_register(number)

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

    def do_user_deletes_pod(self, index: int) -> None:
        name = self.pick([n for n, p in self.pods.items() if "deletionTimestamp" not in p["metadata"]], index)
        if name is not None and self.is_ours(self.pods[name]):
            self.begin_deletion(name)

    def do_kubectl_drain(self, index: int) -> None:
        """Somebody drains a Kubernetes Node: pods outside the budget are evicted."""
        name = self.pick([n for n, p in self.pods.items() if self.is_ours(p)], index)
        if name is None or self.is_protected(name) or "deletionTimestamp" in self.pods[name]["metadata"]:
            return
        uid = self.uid_of(name)
        self.violations += [
            f"pod {name} was evicted under job {job.id} ({job.state})"
            for job in self.jobs
            if job.alive and job.slurmd == uid and uid not in self.exposed
        ]
        self.begin_deletion(name)

    def is_protected(self, name: str) -> bool:
        return (self.pods[name]["metadata"].get("labels") or {}).get(PROTECT_LABEL) == "true"

    def expose(self, node: str) -> None:
        """Slurm takes a node back without our doing."""
        name = self.pod_of(node)
        if name is not None and not self.is_protected(name):
            self.exposed.add(self.uid_of(name))

    def do_usurp(self, index: int) -> None:
        """A pod is deleted by force, and somebody puts one of their own under its name."""
        if any(not self.is_ours(pod) for pod in self.pods.values()):
            return
        name = self.pick([n for n, p in self.pods.items() if self.is_ours(p)], index)
        if name is not None:
            self.remove_pod(name)
            stranger: Object = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"stranger-{self.next()}"},
                "spec": {"nodeName": "elsewhere"},
                "status": {"phase": "Running"},
            }
            self.pods[name] = stranger
            self.tell("pods", "ADDED", stranger)

    def begin_deletion(self, name: str) -> None:
        pod = self.pods[name]
        if not pod["spec"].get("nodeName") or pod["status"].get("phase") == "Failed":
            self.remove_pod(name)
        else:
            pod["metadata"]["deletionTimestamp"] = stamp(self.now + timedelta(seconds=30))
            self.tell("pods", "MODIFIED", pod)

    def is_selected(self, host: str | None) -> bool:
        return bool(host in self.hosts and self.hosts[host]["metadata"]["labels"] == SELECTED)

    def is_pinned(self, name: str, host: str) -> bool:
        """Whether a pod that belongs to one Node can be bound to this one."""
        affinity = self.pods[name]["spec"]["affinity"]["nodeAffinity"]
        (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        (field_,) = term["matchFields"]
        return self.is_selected(host) and field_["values"] == [host]

    def do_label_host(self, index: int) -> None:
        """A Node is to have a pod, or none any more."""
        host = self.hosts[HOSTS[index % len(HOSTS)]]
        host["metadata"]["labels"] = {} if host["metadata"]["labels"] else dict(SELECTED)
        self.tell("nodes", "MODIFIED", host)

    def wanted(self) -> int:
        """How many pods there are to be when all has come to rest."""
        assert self.nodeset is not None
        replicas = int(self.nodeset["spec"]["replicas"])
        if not self.on_hosts:
            return replicas
        there = {pod["spec"].get("nodeName") for pod in self.pods.values()}
        selected = [host for host in self.hosts if self.is_selected(host)]
        return min(replicas, sum(1 for host in selected if host in there or not self.is_cordoned(host)))

    def is_cordoned(self, host: str | None) -> bool:
        return bool(host in self.hosts and self.hosts[host]["spec"].get("unschedulable"))

    def do_cordon_host(self, index: int) -> None:
        """Somebody cordons a Node, or takes that back."""
        host = self.hosts[HOSTS[1 + index % (len(HOSTS) - 1)]]
        if host["spec"].pop("unschedulable", None) is None:
            host["spec"]["unschedulable"] = True
            notes = host["metadata"].setdefault("annotations", {})
            notes["nodeset.slinky.slurm.net/node-cordon-reason"] = f"disk {index}"
        self.tell("nodes", "MODIFIED", host)

    def do_annotate_host(self, index: int) -> None:
        """A Node gets other features, or another place in the topology."""
        host = self.hosts[HOSTS[index % len(HOSTS)]]
        notes = host["metadata"].setdefault("annotations", {})
        notes["features.slinky.slurm.net/spec"] = ("", "ib", "ib,rack")[index % 3]
        notes["topology.slinky.slurm.net/spec"] = f"default:s{index % 2}"
        self.tell("nodes", "MODIFIED", host)

    def traits_of(self, host: str | None) -> tuple[set[str], str]:
        """The features and the topology that a Node gives."""
        notes = self.hosts[host]["metadata"].get("annotations") or {} if host in self.hosts else {}
        words = str(notes.get("features.slinky.slurm.net/spec") or "").split(",")
        return {f"k8s/{word}" for word in words if word}, str(notes.get("topology.slinky.slurm.net/spec") or "")

    def do_cordon(self, index: int) -> None:
        name = self.pick([n for n, p in self.pods.items() if self.is_ours(p)], index)
        if name is not None:
            notes = self.pods[name]["metadata"].setdefault("annotations", {})
            key = "nodeset.slinky.slurm.net/pod-cordon"
            notes[key] = "false" if notes.get(key) == "true" else "true"
            self.tell("pods", "MODIFIED", self.pods[name])

    # What happens in Slurm

    def do_job_starts(self, index: int) -> None:
        if self.slurm_fault == "500":
            return
        room = 1 if index < 4 else 2
        found = [
            r.name
            for r in self.records.values()
            if not r.drain and not r.down and r.slurmd in self.running and len(self.jobs_on(r.name)) < room
        ]
        name = self.pick(found, index)
        if name is not None:
            job = WorldJob(self.next(), name, "RUNNING", self.records[name].slurmd, start=self.now)
            job.requeue, job.batch = bool(index % 2), index % 4 != 3
            self.jobs.append(job)

    def do_job_suspends(self, index: int) -> None:
        found = {job.id: job for job in self.jobs if job.state in {"RUNNING", "SUSPENDED"}}
        number = self.pick(found, index)
        if number is not None:
            found[number].state = "SUSPENDED" if found[number].state == "RUNNING" else "RUNNING"

    def do_job_ends(self, index: int) -> None:
        """A step towards the end: at once, or by way of completing with processes that ignore TERM."""
        found = {job.id: job for job in self.jobs if job.holds and (job.alive or job.state == "COMPLETING")}
        number = self.pick(found, index)
        if number is None:
            return
        job = found[number]
        if job.state in {"COMPLETING", "STAGE_OUT"} or index % 3 == 0:
            job.state, job.alive = "COMPLETED", False
        else:
            job.state = "COMPLETING" if index % 3 == 1 else "STAGE_OUT"

    def do_slurm_notices(self, index: int) -> None:
        """Slurm gives up nodes whose slurmd is dead."""
        for record in self.records.values():
            if record.slurmd not in self.running:
                record.down = True
                for job in self.jobs_on(record.name):
                    job.state = "NODE_FAIL"

    def do_node_lost(self, index: int) -> None:
        """The network to a node breaks: Slurm gives it up although its pod is alive, and slurmd gives up its jobs."""
        name = self.pick([r.name for r in self.records.values() if r.slurmd in self.running], index)
        if name is not None:
            self.records[name].down = True
            for job in self.jobs_on(name):
                job.state, job.alive = "NODE_FAIL", False

    def do_node_returns(self, index: int) -> None:
        """Nodes whose slurmd is alive come back (ReturnToService=2)."""
        for record in self.records.values():
            if record.slurmd in self.running:
                record.down = False

    def do_admin_drains(self, index: int) -> None:
        name = self.pick(self.records, index)
        if name is not None:
            record = self.records[name]
            record.drain, record.reason, record.changed = True, f"mine {index}", self.now
            self.foreign[name] = record.reason

    def do_admin_undrains(self, index: int) -> None:
        name = self.pick([r.name for r in self.records.values() if r.drain], index)
        if name is not None:
            self.records[name].drain = False
            self.foreign.pop(name, None)
            self.expose(name)

    def do_slurm_forgets(self, index: int) -> None:
        """slurmctld comes back without its state; jobs run on that nobody knows of any more."""
        if index == 0:
            for name in self.pods:
                self.expose(self.node_of(name))
            self.records = {"a-b-0": self.records["a-b-0"]} if "a-b-0" in self.records else {}
            self.foreign.clear()

    def do_poll(self, index: int) -> None:
        self.ready = not self.slurm_fault
        if self.ready:
            self.picture = {name: self.show(record) for name, record in self.records.items()}
            self.picture_at = self.now.timestamp()

    def do_fault(self, index: int) -> None:
        self.slurm_fault = ("401", "timeout", "500")[index % 3]

    def do_heal(self, index: int) -> None:
        self.slurm_fault = ""

    def do_lose_slurm(self, index: int) -> None:
        self.lose_slurm = 1

    def do_lose_kube(self, index: int) -> None:
        self.lose_kube = 1 + index % 2

    def do_fail_kube(self, index: int) -> None:
        self.fail_kube = 1 + index % 2

    def do_time(self, index: int) -> None:
        self.now += timedelta(seconds=(1, 5, 20, 61, 200)[index % 5])

    # What the user does to the NodeSet

    def do_scale(self, index: int) -> None:
        if self.nodeset is not None:
            self.nodeset["spec"]["replicas"] = index % 4
            self.edited()

    def do_edit(self, index: int) -> None:
        if self.nodeset is not None:
            self.nodeset["spec"]["image"] = ("v0", "v1", BAD)[index % 3]
            self.edited()

    def do_retain(self, index: int) -> None:
        """The user says what is to become of claims."""
        if self.nodeset is not None:
            policy = {"whenScaled": ("Delete", "Retain")[index % 2], "whenDeleted": ("Delete", "Retain")[index // 4]}
            self.nodeset["spec"]["persistentVolumeClaimRetentionPolicy"] = policy
            self.edited()

    def do_claims_go(self, index: int) -> None:
        """Claims that are being deleted come to their end."""
        for name, claim in list(self.claims.items()):
            if "deletionTimestamp" in claim["metadata"]:
                self.tell("claims", "DELETED", self.claims.pop(name))

    def do_squat(self, index: int) -> None:
        """Somebody has a claim of a name that could be ours."""
        name = f"data-{NODESET}-{index % 4}"
        if name not in self.claims:
            self.claims[name] = {"metadata": {"name": name, "uid": f"theirs-{self.next()}"}}

    def do_hold_back(self, index: int) -> None:
        """The user keeps an update from some pods, or from all, or from none any more."""
        if self.nodeset is not None:
            self.nodeset["spec"]["updateStrategy"] = {
                "type": "RollingUpdate",
                "rollingUpdate": {"partition": index % 3, "paused": index == 4},
            }
            self.edited()

    def do_policy(self, index: int) -> None:
        """How long jobs may hold up a drain, and what happens then."""
        if self.nodeset is not None:
            on_timeout = ("Wait", "Requeue", "Cancel", "Force")[index % 4]
            self.nodeset["spec"]["drain"] = {"timeout": "60s", "onTimeout": on_timeout} if index < 6 else {}
            self.edited()

    def do_delete(self, index: int) -> None:
        if self.nodeset is None or index or "deletionTimestamp" in self.nodeset["metadata"]:
            return
        self.nodeset["metadata"]["deletionTimestamp"] = stamp(self.now)
        self.tell("nodesets", "MODIFIED", self.nodeset)
        self.release()

    def edited(self) -> None:
        assert self.nodeset is not None
        self.nodeset["metadata"]["generation"] += 1
        self.tell("nodesets", "MODIFIED", self.nodeset)

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

    # Slurm's answers

    def show(self, record: Record) -> Node:
        states = {job.state for job in self.jobs_on(record.name)}
        base = "ALLOCATED" if "RUNNING" in states else "IDLE"
        flags = {"DYNAMIC_NORM"}
        if record.down:
            base = "DOWN"
        if record.drain:
            flags.add("DRAIN")
        if "COMPLETING" in states:
            flags.add("COMPLETING")
        return Node(
            name=record.name,
            state=NodeState(base, frozenset(flags)),
            reason=record.reason,
            reason_changed_at=record.changed,
            extra=record.extra,
            instance_id=record.instance,
            features=record.features,
            active_features=record.features,
            topology=record.topology,
            slurmd_start_time=record.slurmd_start,
        )

    def show_job(self, job: WorldJob) -> Job:
        state = {
            "COMPLETING": JobState("CANCELLED", frozenset({"COMPLETING"})),
            "STAGE_OUT": JobState("COMPLETED", frozenset({"STAGE_OUT"})),
        }.get(job.state, JobState(job.state))
        return Job(
            id=job.id,
            state=state,
            nodes=(job.node,),
            start_time=job.start,
            requeue=job.requeue,
            batch=job.batch,
        )

    def check_slurm(self) -> None:
        match self.slurm_fault:
            case "401":
                raise slurm_errors.Unauthorized("token refused")
            case "timeout":
                raise slurm_errors.Timeout("no answer")
            case "500":
                raise slurm_errors.ControllerDown("slurmctld is away")
            case _:
                pass

    def lost(self) -> None:
        if self.lose_slurm:
            self.lose_slurm -= 1
            raise slurm_errors.Timeout("the answer was lost")

    # What the controller orders of Slurm

    def order_drain(self, names: list[str], reason: str) -> None:
        self.check_slurm()
        for name in sorted(names):
            record = self.records.get(name)
            if record is None:
                raise slurm_errors.NotFound(name)
            self.protect(name, "drained")
            record.drain, record.reason, record.changed = True, reason, self.now
        begun = [r.name for r in self.records.values() if r.drain and r.reason.startswith(OURS + "update")]
        pods = {
            self.node_of(name): name
            for name, pod in self.pods.items()
            if self.is_ours(pod) and "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] != "Failed"
        }
        live = list(pods)
        broken = [node for node, name in pods.items() if self.image_of(name) == BAD]
        if reason.startswith(OURS + "update"):
            for name in names:
                held_back = self.seen_update.get("paused")
                if not self.on_hosts:
                    held_back = held_back or int(name[-1]) < self.seen_update.get("partition", 0)
                if held_back and name in live:
                    self.violations.append(f"{name} was drained for an update that is held back from it")
        # What is too many anyway may go whatever it was drained for.
        excess = max(0, len(live) - self.seen_replicas)
        if self.on_hosts:
            # What began as an update goes on although its Node matches no more; it is none of the wanted ones then.
            begun = [name for name in begun if name in self.seen_selected]
        taken = {name for name in begun if name in live and name not in broken and not self.records[name].down}
        if taken and len(taken | set(broken)) > self.update_budget + excess:
            self.violations.append(f"more is updated at once than the budget allows: {begun}, with {broken} broken")
        self.lost()

    def order_undrain(self, names: list[str]) -> None:
        self.check_slurm()
        for name in sorted(names):
            if name not in self.records:
                raise slurm_errors.NotFound(name)
            self.protect(name, "undrained")
            self.records[name].drain = False
        self.lost()

    def order_resume(self, names: list[str]) -> None:
        self.check_slurm()
        for name in sorted(names):
            record = self.records.get(name)
            if record is None:
                raise slurm_errors.NotFound(name)
            self.protect(name, "resumed")
            if record.down:
                self.violations.append(f"node {name}, which is dead, was called idle")
            record.drain = record.down = False
        self.lost()

    def order_down(self, names: list[str], reason: str | None) -> None:
        self.check_slurm()
        for name in sorted(names):
            record = self.records.get(name)
            if record is None:
                raise slurm_errors.NotFound(name)
            if record.extra != TAG:
                self.violations.append(f"node {name} is not ours and was marked down")
            if reason is not None:
                self.protect(name, "marked down with another reason")
                record.reason = reason
            asked_for = self.may_end_jobs(name, "Requeue")
            for job in self.jobs_on(name):
                if job.alive and not (asked_for and job.batch and job.requeue):
                    self.violations.append(f"job {job.id} was running on {name} when it was marked down")
                job.state, job.alive = "NODE_FAIL", False
            record.down = True
        self.lost()

    def order_traits(self, names: list[str], features: Sequence[str] | None, topology: str | None) -> None:
        self.check_slurm()
        for name in sorted(names):
            record = self.records.get(name)
            if record is None:
                raise slurm_errors.NotFound(name)
            if record.extra != TAG:
                self.violations.append(f"node {name} is not ours and was given features")
            if features is not None and "a" not in features:
                self.violations.append(f"node {name} lost the feature of its NodeSet")
            record.features = tuple(features) if features is not None else record.features
            record.topology = topology if topology is not None else record.topology
        self.lost()

    def order_end_job(self, number: int, on_timeout: str) -> None:
        """Cancel or requeue a job: its processes get TERM, and end when they do."""
        self.check_slurm()
        job = next((one for one in self.jobs if one.id == number), None)
        if job is None:
            raise slurm_errors.NotFound(f"job {number}")
        if job.state in {"RUNNING", "SUSPENDED"}:
            if not self.may_end_jobs(job.node, on_timeout):
                self.violations.append(f"job {number} on {job.node} was ended ({on_timeout}) before its time")
            if on_timeout == "Requeue" and not (job.batch and job.requeue):
                raise slurm_errors.InvalidRequest("Requested operation is presently disabled")
            job.state = "COMPLETING"
        self.lost()

    def may_end_jobs(self, node: str, on_timeout: str) -> bool:
        """Whether the spec that the controller sees gives up the jobs of a node: the drain is ours and too old."""
        record = self.records.get(node)
        if record is None or record.changed is None or self.seen_drain.get("onTimeout") != on_timeout:
            return False
        causes = record.reason.removeprefix(OURS).partition(" (")[0].split(", ")
        going = record.reason.startswith(OURS) and not {"cordon", "node-cordon"}.issuperset(causes)
        return record.drain and going and (self.now - record.changed).total_seconds() >= 60

    def order_delete_records(self, names: list[str]) -> None:
        """Slurm deletes what it can, and tells of one that it could not."""
        self.check_slurm()
        refused: slurm_errors.SlurmError | None = None
        for name in names:
            record = self.records.get(name)
            if record is None:
                refused = slurm_errors.NotFound(name)
                continue
            self.protect(name, "deleted")
            states = {job.state for job in self.jobs_on(name)}
            if states & {"RUNNING", "COMPLETING"}:
                refused = slurm_errors.Conflict("Requested nodes are busy")
                continue
            if states:
                # Slurm does it all the same, and the job stays SUSPENDED on a node that is not there (measured).
                self.violations.append(f"the record of {name} was deleted under a job that is {states}")
            if record.slurmd in self.running:
                self.violations.append(f"the record of {name} was deleted under a living slurmd")
            del self.records[name]
        if refused is not None:
            raise refused
        self.lost()

    def protect(self, name: str, what: str) -> None:
        record = self.records[name]
        if record.extra != TAG:
            self.violations.append(f"node {name} is not ours and was {what}")
        if name in self.foreign and record.drain:
            self.violations.append(f"node {name}, drained by somebody else ({self.foreign[name]}), was {what}")

    # What the controller orders of Kubernetes

    def order_claim(self, claim: Object) -> None:
        claim["metadata"] |= {"uid": f"claim-{self.next()}"}
        self.claims[claim["metadata"]["name"]] = claim
        self.tell("claims", "ADDED", claim)

    def order_unclaim(self, name: str) -> None:
        claim = self.claims[name]
        if "deletionTimestamp" in claim["metadata"]:
            return
        claim["metadata"]["deletionTimestamp"] = stamp(self.now)
        self.tell("claims", "MODIFIED", claim)
        pod = name.removeprefix("data-")
        if "labels" not in claim["metadata"]:
            self.violations.append(f"claim {name} is not ours and was deleted")
        elif pod in self.pods and self.is_ours(self.pods[pod]):
            self.violations.append(f"claim {name} was deleted under its pod")
        if self.nodeset is None or "deletionTimestamp" in self.nodeset["metadata"]:
            return
        if self.seen_retention.get("whenScaled") != "Delete":
            self.violations.append(f"claim {name} was deleted although it was to be retained")
        ours = [
            one
            for one in self.claims.values()
            if "labels" in one["metadata"] and "deletionTimestamp" not in one["metadata"]
        ]
        if len(ours) < self.seen_replicas and not self.on_hosts:
            self.violations.append(f"claim {name} was deleted although a pod is to come back to it")

    def order_record(self, revision: Object) -> None:
        revision["metadata"] |= {"uid": f"revision-{self.next()}"}
        self.revisions[revision["metadata"]["name"]] = revision
        self.tell("revisions", "ADDED", revision)

    def order_drop(self, name: str) -> None:
        revision = self.revisions.pop(name)
        self.tell("revisions", "DELETED", revision)
        if any(revision_of(pod) == revision_of(revision) for pod in self.pods.values() if self.is_ours(pod)):
            self.violations.append(f"revision {name} was dropped although a pod carries it")

    def order_delete_pod(self, name: str) -> None:
        pod = self.pods[name]
        uid = pod["metadata"]["uid"]
        if not self.is_ours(pod):
            self.violations.append(f"pod {name} is not ours and was deleted")
        for job in self.jobs:
            if job.alive and job.slurmd == uid and not self.may_end_jobs(self.node_of(name), "Force"):
                self.violations.append(f"pod {name} was deleted under job {job.id} ({job.state})")
        self.begin_deletion(name)

    def order_mark(self, name: str, metadata: Object) -> None:
        """Change labels and annotations of a pod; None takes one away."""
        pod = self.pods[name]
        for kind, wanted in metadata.items():
            if kind in {"labels", "annotations"}:
                held = pod["metadata"].setdefault(kind, {})
                for key, value in wanted.items():
                    held.pop(key, None)
                    if value is not None:
                        held[key] = value
        if self.is_protected(name):
            self.exposed.discard(self.uid_of(name))
        self.tell("pods", "MODIFIED", pod)

    def order_create_pod(self, pod: Object) -> None:
        name = pod["metadata"]["name"]
        pod["metadata"] |= {"uid": f"pod-{self.next()}", "creationTimestamp": stamp(self.now)}
        pod["status"] = {"phase": "Pending"}
        pod["spec"].pop("nodeName", None)
        if not (self.nodeset or {"metadata": {}})["metadata"].get("finalizers"):
            self.violations.append(f"pod {name} was created before the finalizer was there")
        if not self.maps:
            self.violations.append(f"pod {name} was created before its guard")
        claim = self.claims.get(f"data-{name}")
        if claim is None or "labels" not in claim["metadata"] or "deletionTimestamp" in claim["metadata"]:
            self.violations.append(f"pod {name} was created without a claim of ours")
        if not any(revision_of(one) == revision_of(pod) for one in self.revisions.values()):
            self.violations.append(f"pod {name} was created before its revision was recorded")
        node = str(pod["spec"]["hostname"])
        if self.on_hosts and node in self.seen_cordoned:
            self.violations.append(f"pod {name} was created for a Node that is cordoned")
        if any(self.node_of(other) == node for other in self.pods):
            self.violations.append(f"pod {name} was created beside another of node {node}")
        record = self.records.get(node)
        if record is not None and self.jobs_on(node):
            self.violations.append(f"pod {name} was created while Slurm saw jobs of its predecessor")
        self.pods[name] = pod
        self.tell("pods", "ADDED", pod)
        live = [p for p in self.pods.values() if self.is_ours(p) and "deletionTimestamp" not in p["metadata"]]
        if len(live) > 4:
            self.violations.append(f"{len(live)} pods, and never more than 3 wanted")


def revision_of(obj: Object) -> str:
    return str((obj["metadata"].get("labels") or {}).get("controller-revision-hash"))


def clone(obj: Object) -> Object:
    """A copy of an object as it comes over the wire, in the fastest way there is: histories spend their time here."""
    copied: Object = marshal.loads(marshal.dumps(obj))  # noqa: S302 - written a moment before
    return copied


def stamp(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
