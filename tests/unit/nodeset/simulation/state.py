"""The true state of the simulated Slurm and Kubernetes, with look-ups."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from slurm_client.models import Node
from tests.unit.nodeset.simulation.objects import (
    HOSTS,
    NEIGHBOUR_UID,
    OURS,
    PROTECT_LABEL,
    RACK,
    REGISTERED,
    UID_LABEL,
    Object,
    clone,
    is_selected,
)


class Died(Exception):
    """The operator has ended in the midst of a pass."""


@dataclass
class Record:
    """A node record in slurmctld."""

    name: str
    extra: str
    instance: str
    slurmd: str
    """Uid of the pod whose slurmd it talks to; may be dead."""
    slurmd_start: datetime | None
    """None while slurmctld, restarted, has not heard of the slurmd."""
    features: tuple[str, ...] = ("a",)
    topology: str = ""
    drain: bool = False
    down: bool = False
    invalid: bool = False
    """Whether Slurm does not take what the slurmd registered with last."""
    reason: str = ""
    changed: datetime | None = None
    comment: str = ""


@dataclass
class WorldJob:
    """A job on one node or several, which it may share with another."""

    id: int
    nodes: tuple[str, ...]
    state: str
    """RUNNING, SUSPENDED, COMPLETING, STAGE_OUT, or an end state."""
    alive: set[str]
    """Uids of the pods its processes are in: where one ends, the others run on until Slurm gives the job up."""
    start: datetime | None = None
    requeue: bool = True
    batch: bool = True
    array: int | None = None
    """Of which array it is a task: one of them has the id of the array for its own, as in Slurm."""
    required: tuple[str, ...] = ()
    """The nodes that it requires, whether it has them or not; `()` if it names none."""
    excluded: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return self.state in {"RUNNING", "SUSPENDED", "COMPLETING", "STAGE_OUT"}

    def names(self, node: str) -> bool:
        """Whether Slurm must still find a node for it."""
        return (self.holds or self.state == "PENDING") and node in {*self.required, *self.excluded}

    def end(self, state: str) -> None:
        """Slurm has its processes ended on all its nodes."""
        self.state = state
        self.alive.clear()


@dataclass
class State:
    """The truth."""

    keeps_instance: bool = True
    """Slurm 26.05 keeps a record's instance id over registrations; 24.11 takes the new one."""
    on_hosts: bool = False
    """Whether the NodeSet has one pod on each Node that is labelled, which gives the Slurm node its name."""
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    slurm_ahead: timedelta = timedelta(0)
    """How far Slurm's clock is ahead of everybody else's."""
    nodeset: Object | None = None
    pods: dict[str, Object] = field(default_factory=dict)
    hosts: dict[str, Object] = field(default_factory=dict)
    running: dict[str, datetime] = field(default_factory=dict)
    """Uids of pods whose slurmd really runs, and since when."""
    known: set[str] = field(default_factory=set)
    """Uids of running slurmds that have registered and have a record."""
    ever_known: set[str] = field(default_factory=set)
    """Uids of slurmds that have registered, whatever has become of their records."""
    where: dict[str, str] = field(default_factory=dict)
    """Where the pods run or have run, by uid."""
    stuck: set[str] = field(default_factory=set)
    """Uids of pods whose slurmds never register."""
    next_stuck: int = 0
    """How many of the next pods will be so."""
    repaired: set[str] = field(default_factory=set)
    """Nodes whose pods were deleted because their slurmds did not register; until others have come up."""
    maps: dict[str, Object] = field(default_factory=dict)
    guards_made: set[str] = field(default_factory=set)
    """Uids of all ConfigMaps there ever were."""
    bared: set[str] = field(default_factory=set)
    """Uids of pods whose guard somebody has deleted: the garbage collector may have them before they get another."""
    revisions: dict[str, Object] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    """Hashes of revisions that the garbage collector has taken from a NodeSet that is being deleted."""
    claims: dict[str, Object] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)
    jobs: list[WorldJob] = field(default_factory=list)
    lost_jobs: list[WorldJob] = field(default_factory=list)
    """Jobs that run on and that Slurm does not show any more."""
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
    seen_drain: Object = field(default_factory=dict)
    """`spec.drain` that the controller sees."""
    seen_finalizers: bool = False
    """Whether the NodeSet has finalizers, as the controller sees it."""
    seen_deleting: bool = False
    """Whether the NodeSet is being deleted, as the controller sees it."""
    seen_replicas: int = 0
    """The number of replicas in the spec that the controller sees."""
    seen_image: str = ""
    """The image in that spec."""
    seen_selected: set[str] = field(default_factory=lambda: set(HOSTS))
    """The Nodes that are to have a pod, as the controller sees them."""
    seen_cordoned: set[str] = field(default_factory=set)
    """The Nodes that are cordoned, as the controller sees them."""
    seen_retention: Object = field(default_factory=dict)
    """What is to become of claims, in that spec."""
    seen_pods: set[str] = field(default_factory=set)
    """Names of our pods, as the controller sees them."""
    seen_live: set[str] = field(default_factory=set)
    """Nodes of our pods that neither end nor have ended, as the controller sees them."""
    kept: set[str] = field(default_factory=set)
    """Uids of claims that were kept by a scale-in, by what the controller has seen; until a pod has them again."""
    seen_update: Object = field(default_factory=dict)
    """How it is to update, in that spec."""
    seen_ready: dict[str, datetime | None] = field(default_factory=dict)
    """Since when the pods of nodes are Ready, as the controller sees them."""
    seen_silent: set[str] = field(default_factory=set)
    """Nodes that do not answer slurmctld, as the controller sees them."""
    seen_invalid: set[str] = field(default_factory=set)
    """Nodes whose registrations Slurm does not take, as the controller sees them."""
    seen_patience: int = 0
    """For how many seconds a pod is to be Ready, in that spec."""
    seen_health: Object | None = None
    """`spec.health` that the controller sees."""
    seen_conditions: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    """By Node the status of its condition and since when, as the controller sees it; empty if it went."""
    seen_boots: dict[str, tuple[datetime | None, datetime | None]] = field(default_factory=dict)
    """By Node when its machine was last seen to have started again, and the time before that."""
    replaced: dict[str, set[str]] = field(default_factory=dict)
    """By Node the uids of pods that were deleted for its health, as long as the status remembers tries there."""
    seen_tries: dict[str, Object] = field(default_factory=dict)
    """Tries that the status remembers, by Node, as the controller sees it."""
    requests: set[str] = field(default_factory=set)
    """Kubernetes Nodes that NVSentinel asks for."""
    checks: Object | None = None
    """The ConfigMap with health checks."""
    delivered: Object = field(default_factory=dict)
    """What the kubelets have brought of it."""
    broken: set[str] = field(default_factory=set)
    """Nodes in which checks find something wrong."""
    hung: set[str] = field(default_factory=set)
    """Nodes on which no check can be run."""
    results: dict[str, tuple[str, str, float]] = field(default_factory=dict)
    """By node revision and result of its last report, and since when it is so."""
    settings: Object = field(default_factory=lambda: {"by": "RebootNode", "deletes": True, "namespaces": ["*"]})
    """What the operator's settings allow about machines."""
    lacks_rights: bool = False
    """Whether the chart is missing that lets the operator write on Nodes."""
    refusal: str = ""
    """What the next write about a machine meets."""
    dies_in: int = 0
    """Writes after which the operator ends; 0 for never."""
    dead: bool = False
    """Whether it has."""
    boot_ids: dict[str, str] = field(default_factory=dict)
    """Of machines that have started again."""
    reboots: dict[str, Object] = field(default_factory=dict)
    """RebootNodes."""
    capi: dict[str, Object] = field(default_factory=dict)
    """Machines of Cluster API."""
    tenants: set[str] = field(default_factory=set)
    """Nodes on which a pod of somebody else runs."""
    asked: dict[str, Object] = field(default_factory=dict)
    """By Node what the controller has last asked for: the end of which boot of its machine, by what, and when."""
    asked_ever: set[tuple[str, str]] = field(default_factory=set)
    """Nodes and tries."""
    excused: set[str] = field(default_factory=set)
    """Nodes to which jobs may have come after that, by no doing of the controller."""
    windows: list[Object] = field(default_factory=list)
    """Maintenance windows of the Cluster."""
    seen_outside: bool = False
    """Whether updates were held for maintenance when the controller's pass began."""
    seen_topology: list[Object] = field(default_factory=list)
    """`spec.topology` that the controller sees."""
    seen_requested: set[str] = field(default_factory=set)
    """Nodes in Slurm of the pods there, as the controller sees them."""
    seen_hosts: dict[str, str] = field(default_factory=dict)
    """By name of the node in Slurm the Node of its pod, of those Nodes that the controller knows."""
    foreign: dict[str, str] = field(default_factory=dict)
    """Reasons of drains that are not ours, by node, as long as they stand."""
    frozen: bytes = b""
    """As it was when it was first copied."""
    given_back: set[str] = field(default_factory=set)
    """Nodes that somebody has given back to Slurm since the controller's pass began."""
    exposed: set[str] = field(default_factory=set)
    """Uids of pods that may be evicted although jobs may start there, since somebody else gave their nodes back."""

    given_up: bool = False
    """Whether the user has said that the jobs of the NodeSet, which is being deleted, may die."""
    troubled: bool = False
    """Whether something has happened after which nobody can be sure to learn of every job: faults, lost machines."""

    @property
    def slurm_now(self) -> datetime:
        """The time by Slurm's clock."""
        return self.now + self.slurm_ahead

    def next(self) -> int:
        self.counter += 1
        return self.counter

    def tell(self, resource: str, kind: str, obj: Object) -> None:
        obj["metadata"]["resourceVersion"] = str(self.next())
        self.log.append((resource, kind, clone(obj)))

    def told(self, obj: Object) -> Object:
        """A copy of an object for a caller: the one that watchers were just given, or one more.

        Nobody changes such a copy, neither caches nor the controller.
        """
        version = obj["metadata"].get("resourceVersion")
        if version is not None:
            for _, _, copied in self.log[:-4:-1]:
                if copied["metadata"]["resourceVersion"] == version:
                    return copied
        return clone(obj)

    def pick(self, items: Any, index: int) -> Any:
        ordered = sorted(items)
        return ordered[index % len(ordered)] if ordered else None

    # Pods

    def uid_of(self, name: str) -> str:
        return str(self.pods[name]["metadata"]["uid"])

    def node_in(self, pod: Object) -> str:
        """Name of a pod's node in Slurm."""
        return str(pod["spec"].get("hostname") or pod["metadata"]["name"])

    def node_of(self, name: str) -> str:
        """The same, of a pod that is there."""
        return self.node_in(self.pods[name])

    def pod_of(self, node: str) -> str | None:
        """Name of the pod of a node."""
        return next((name for name in self.pods if self.node_of(name) == node), None)

    def image_of(self, name: str) -> str:
        return str(self.pods[name]["spec"]["containers"][0]["image"])

    def is_outdated(self, name: str) -> bool:
        """Whether a pod is not what the spec asks for that the controller sees."""
        volumes = self.pods[name]["spec"].get("volumes") or ()
        has_checks = any(one["name"] == "health-checks" for one in volumes)
        return self.image_of(name) != self.seen_image or has_checks != bool((self.seen_health or {}).get("checks"))

    def is_ours(self, pod: Object) -> bool:
        return (pod["metadata"].get("labels") or {}).get(UID_LABEL) == "set-uid"

    def is_neighbours(self, pod: Object) -> bool:
        """Whether a pod is another NodeSet's."""
        return (pod["metadata"].get("labels") or {}).get(UID_LABEL) == NEIGHBOUR_UID

    def is_protected(self, name: str) -> bool:
        return (self.pods[name]["metadata"].get("labels") or {}).get(PROTECT_LABEL) == "true"

    def is_pinned(self, name: str, host: str) -> bool:
        """Whether a pod that belongs to one Node can be bound to this one."""
        affinity = self.pods[name]["spec"]["affinity"]["nodeAffinity"]
        (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        (field_,) = term["matchFields"]
        return self.is_selected(host) and field_["values"] == [host]

    def live(self) -> list[str]:
        """Names of our pods that are not being deleted."""
        return [n for n, p in self.pods.items() if self.is_ours(p) and "deletionTimestamp" not in p["metadata"]]

    def is_live(self, pod: Object) -> bool:
        """Whether a pod is ours, and neither ends nor has ended."""
        over = "deletionTimestamp" in pod["metadata"] or (pod.get("status") or {}).get("phase") == "Failed"
        return self.is_ours(pod) and not over

    def guards_of(self, name: str) -> set[str]:
        """Uids of the ConfigMaps that own a pod."""
        owners = self.pods[name]["metadata"].get("ownerReferences") or ()
        return {one["uid"] for one in owners if one["kind"] == "ConfigMap"}

    def expose(self, node: str) -> None:
        """Slurm takes a node back without our doing."""
        name = self.pod_of(node)
        if name is not None:
            self.excused.add(self.pods[name]["spec"].get("nodeName") or "")
        if name is not None and not self.is_protected(name):
            self.exposed.add(self.uid_of(name))

    def is_recorded(self, name: str) -> bool:
        """Whether it is recorded, on a pod or in the status, that its slurmd has registered."""
        pod = self.pods[name]
        if "creationTimestamp" not in pod["metadata"]:
            return False  # The operator has not created it.
        if any(one["type"] == REGISTERED for one in pod["status"].get("conditions") or ()):
            return True
        recorded = ((self.nodeset or {}).get("status") or {}).get("registered")
        if recorded is None or self.on_hosts or pod["metadata"]["creationTimestamp"] > recorded["createdUntil"]:
            return False
        ranges = [part.partition("-") for part in recorded["ordinals"].split(",")]
        return any(int(first) <= self.ordinal_of(name) <= int(last or first) for first, _, last in ranges)

    def ordinal_of(self, name: str) -> int:
        return int(name.rpartition("-")[2])

    # Kubernetes Nodes

    def is_reached(self, uid: str) -> bool:
        """Whether the kubelet of a pod's Node can be reached, as far as anybody knows."""
        return self.where.get(uid, "") in {"", *self.hosts}

    def is_selected(self, host: str | None) -> bool:
        return bool(host in self.hosts and is_selected(self.hosts[host]))

    def is_cordoned(self, host: str | None) -> bool:
        return bool(host in self.hosts and self.hosts[host]["spec"].get("unschedulable"))

    def traits_of(self, host: str | None) -> tuple[set[str], str | None]:
        """The features and the place that a Node gives; None if it gives none."""
        metadata = self.hosts[host]["metadata"] if host in self.hosts else {}
        notes = metadata.get("annotations") or {}
        words = str(notes.get("features.slinky.slurm.net/spec") or "").split(",")
        features = {f"k8s/{word}" for word in words if word}
        place = str(notes.get("topology.slinky.slurm.net/spec") or "")
        if place or not metadata or not (self.nodeset or {"spec": {}})["spec"].get("topology"):
            return features, place or None
        rack = metadata["labels"].get(RACK)
        return features, f"default:top:{rack}" if rack else ""

    def is_outside_windows(self) -> bool:
        """Whether updates wait for a maintenance window."""
        holding = [one for one in self.windows if one.get("holdUpdates")]
        starts = [(datetime.fromisoformat(one["start"]), int(one["duration"][:-1])) for one in holding]
        return bool(holding) and not any(
            start <= self.now < start + timedelta(minutes=minutes) for start, minutes in starts
        )

    def condition_of(self, host: str | None) -> str:
        """Status of the condition of a Node for which rules drain; empty if it has none."""
        conditions = self.hosts[host]["status"].get("conditions") or () if host in self.hosts else ()
        return str(conditions[0]["status"]) if conditions else ""

    def causes_of(self, node: str) -> set[str]:
        """The causes for which we drain a node."""
        record = self.records.get(node)
        if record is None or not record.drain or not record.reason.startswith(OURS):
            return set()
        return set(record.reason.removeprefix(OURS).partition(" (")[0].split(", "))

    def replacements(self) -> dict[str, Object]:
        """Tries that the status remembers, by Node."""
        status = (self.nodeset or {}).get("status") or {}
        return {one["host"]: one for one in status.get("replacements") or ()}

    def is_out(self, one: Object) -> bool:
        """Whether the pod of a try has gone, and the next one has not been seen to come up."""
        pod = self.pods.get(one["pod"])
        if pod is not None and pod["metadata"]["uid"] == one["podUid"]:
            return False
        takes = 1799 if one.get("bootId") else 299
        young = (self.now - datetime.fromisoformat(one["last"])).total_seconds() < takes
        node = self.node_in(pod) if pod is not None else one["pod"]
        return young and (one["pod"] not in self.seen_pods or self.seen_ready.get(node) is None)

    def is_held(self, node: str) -> bool:
        """Whether a node is drained by us for its health."""
        return "health" in self.causes_of(node)

    def watch_death(self) -> None:
        """Count a write, and let the operator end with it."""
        if self.dies_in:
            self.dies_in -= 1
            self.dead = not self.dies_in
        self.check_alive()

    def check_alive(self) -> None:
        """Raise if the operator has ended: whatever it was about to do does not happen."""
        if self.dead:
            raise Died

    # The NodeSet, and jobs

    def exists(self, uid: str) -> bool:
        """Whether an owner is there, for the garbage collector."""
        if self.nodeset is not None and self.nodeset["metadata"]["uid"] == uid:
            return True
        return any(guard["metadata"]["uid"] == uid for guard in self.maps.values())

    @property
    def update_budget(self) -> int:
        """How many pods may be missing for an update, by the spec that the controller sees."""
        given = (self.seen_update.get("rollingUpdate") or {}).get("maxUnavailable", 1)
        return max(1, self.seen_replicas * int(given[:-1]) // 100 if isinstance(given, str) else given)

    def health_budget(self, health: Object, desired: int) -> int:
        """How many nodes may be drained for their health."""
        given = health.get("maxUnhealthy", "10%")
        if isinstance(given, int):
            return given
        return max(1, desired * int(given[:-1]) // 100)

    def wanted(self) -> int:
        """How many pods there are to be when all has come to rest."""
        assert self.nodeset is not None
        replicas = int(self.nodeset["spec"]["replicas"])
        if not self.on_hosts:
            return replicas
        there = {pod["spec"].get("nodeName") for pod in self.pods.values()}
        selected = [host for host in self.hosts if self.is_selected(host)]
        return min(replicas, sum(1 for host in selected if host in there or not self.is_cordoned(host)))

    def edited(self) -> None:
        """The spec has changed."""
        assert self.nodeset is not None
        self.nodeset["metadata"]["generation"] += 1
        self.tell("nodesets", "MODIFIED", self.nodeset)

    def jobs_on(self, node: str) -> list[WorldJob]:
        return [job for job in self.jobs if node in job.nodes and job.holds]

    def may_end_jobs(self, node: str, on_timeout: str) -> bool:
        """Whether the spec that the controller sees gives up the jobs of a node: the drain is ours and too old."""
        record = self.records.get(node)
        spec = self.seen_drain
        if record is None or record.changed is None or "timeout" not in spec or spec.get("onTimeout") != on_timeout:
            return False
        causes = record.reason.removeprefix(OURS).partition(" (")[0].split(", ")
        going = record.reason.startswith(OURS) and not {"cordon", "node-cordon", "health", "drain-request"}.issuperset(
            causes
        )
        return record.drain and going and (self.slurm_now - record.changed).total_seconds() >= 60
