"""Groups of pods with an API server that keeps versions, late caches, and players of Slurm, controllers and kubelets.

What no lift and no eviction may do is asserted where it is written, against the truth, not the caches.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Final, cast

from typing_extensions import override

from slinky_api import labels
from slinky_operator.bridge.caches import pods_cache, prune_pod
from slinky_operator.bridge.pods.clusters import BridgeClusters
from slinky_operator.bridge.pods.controller import GroupReconciler
from slinky_operator.bridge.pods.device_reader import DeviceReader
from slinky_operator.bridge.pods.model.lift import pinned_to
from slinky_operator.bridge.pods.model.membership import INDEX
from slinky_operator.bridge.pods.observation import INDEXES_OF_JOBS, INDEXES_OF_PODS, Observer, Singles
from slinky_operator.bridge.pods.triggers import GroupTriggers
from slinky_operator.jobs.quantities import number_of
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.errors import Target
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import BATCH_JOBS, BRIDGE_PODS, CLUSTERS, NAMESPACES, SLURMJOBS, Resource
from slinky_operator.kube.resources import NODES as KUBERNETES_NODES
from slinky_operator.reconcile.cached.scripts import prune_job
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.text import stamp
from slinky_operator.runtime.controller import Result
from slurm_client.models import Node
from tests.support.memory_kube import MemoryKube, merge, name_of
from tests.support.slurm_jobs import Killed

TEAM: Final = "team"
GATE: Final = {"name": labels.GATE_BRIDGE}
REQUESTS: Final = {"cpu": "500m", "memory": "1Gi"}
START: Final = datetime(2026, 11, 1, tzinfo=UTC)
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class Kube(MemoryKube):
    """Keeps versions, shows changes on demand, and ends the operator after a write."""

    def __init__(self) -> None:
        super().__init__()
        self.late: dict[str, deque[tuple[Object | None, Object | None]]] = {}
        self.is_late = False
        self.now = START
        self.ahead = timedelta()
        """How far the clock of the API server is ahead."""
        self.handlers: list[Callable[[Resource, Object | None, Object | None], None]] = []
        self.blocked: set[str] = set()
        """Names of pods that a disruption budget protects."""
        self.binds = True
        """Whether the scheduler binds what is placed in the same moment."""
        self.writes: list[str] = []
        self.last_write: int | None = None
        self._resources: dict[str, Resource] = {}

    @override
    def put(self, resource: Resource, obj: Object) -> Object:
        about = {"creationTimestamp": stamp(self.now + self.ahead), **obj["metadata"]}
        old = self.find(resource, about["name"], about.get("namespace"))
        store = self.caches.pop(name_of(resource), None)
        stored = super().put(resource, {**obj, "metadata": about})
        if store is not None:
            self.caches[name_of(resource)] = store
        self._changed(resource, old, stored)
        return stored

    def drop(self, resource: Resource, obj: Object) -> None:
        """Let an object be gone."""
        about = obj["metadata"]
        found = self.objects.pop((name_of(resource), about.get("namespace") or "", about["name"]))
        gone = {**found, "metadata": {**found["metadata"], "resourceVersion": str(next(self._numbers))}}
        self._changed(resource, gone, None)

    def _changed(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        if name_of(resource) not in self.caches:
            return
        self._resources[name_of(resource)] = resource
        self.late.setdefault(name_of(resource), deque()).append((old, new))
        if not self.is_late:
            self.show(name_of(resource))

    def show(self, plural: str, most: int = 1_000_000) -> None:
        """Show the next changes of a kind in its cache."""
        queue = self.late.get(plural, deque())
        for _ in range(min(most, len(queue))):
            old, new = queue.popleft()
            if new is None:
                assert old is not None
                _ = self.caches[plural].remove(old)
            else:
                shown = {**new, "metadata": dict(new["metadata"])}
                self._prunes[plural](shown)
                _ = self.caches[plural].put(shown)
            for handler in self.handlers:
                handler(self._resources[plural], old, new)

    def show_all(self) -> None:
        """Show all changes."""
        for plural in list(self.late):
            self.show(plural)

    def check(self, resource: Resource, name: str, namespace: str | None, options: dict[str, Any]) -> Object:
        found = self.find(resource, name, namespace)
        target = Target("patch", str(resource), namespace, name)
        if found is None:
            raise errors.NotFound(target, "not found", status=404)
        about = found["metadata"]
        for option, key in (("uid", "uid"), ("resource_version", "resourceVersion")):
            if options.get(option) not in {None, about[key]}:
                raise errors.Conflict(target, "changed", status=409)
        return found

    def wrote(self, verb: str, name: str) -> None:
        self.writes.append(f"{verb} {name}")
        if self.last_write is not None and len(self.writes) >= self.last_write:
            self.last_write = None
            raise Killed

    @override
    async def create(self, resource: Resource, body: Object, namespace: str | None = None) -> Object:
        made = await super().create(resource, body, namespace)
        for one in self.all(SLURMJOBS):
            has_group = one["metadata"]["annotations"] == body["metadata"]["annotations"]
            is_over = (one.get("status") or {}).get("state") in {"Succeeded", "Failed", "Unknown"}
            is_other = one["metadata"]["uid"] != made["metadata"]["uid"]
            assert not (has_group and is_other) or is_over, "a group has two jobs"
        self.wrote("create", body["metadata"]["name"])
        return made

    @override
    async def merge_patch(
        self, resource: Resource, name: str, patch: Object, namespace: str | None = None, **options: Any
    ) -> Object:
        found = self.check(resource, name, namespace, options)
        merged = merge(found, patch)
        if resource is BRIDGE_PODS and "spec" not in patch:
            assert list(patch["metadata"]["annotations"]) == [labels.ANNOTATION_BRIDGE_DEADLINE]
            assert GATE not in (found["spec"].get("schedulingGates") or [])
        elif resource is BRIDGE_PODS:
            self.check_lift(found, merged)
            node = pins_of(merged)[0]
            if self.binds and self.find(KUBERNETES_NODES, node, None) is not None:
                merged["spec"]["nodeName"] = node
        elif "Nodes do not exist" in str(((patch.get("spec") or {}).get("external") or {}).get("ended")):
            assert not self.placed_by(name), "a job ends whose pods were placed"
        stored = self.put(resource, merged)
        self.wrote("lift" if resource is BRIDGE_PODS else "patch", name)
        return stored

    @override
    async def apply(self, resource: Resource, body: Object, **options: Any) -> Object:
        assert options["subresource"] == "status"
        about = body["metadata"]
        found = self.check(resource, about["name"], about["namespace"], {"uid": about["uid"]})
        (shown,) = body["status"]["conditions"]
        status = found.get("status") or {}
        others = [one for one in status.get("conditions") or () if one["type"] != shown["type"]]
        stored = self.put(resource, {**found, "status": {**status, "conditions": [*others, shown]}})
        self.wrote("show", about["name"])
        return stored

    @override
    async def delete(self, resource: Resource, name: str, namespace: str | None = None, **options: Any) -> Object:
        found = self.check(resource, name, namespace, options)
        self.put(resource, {**found, "metadata": {**found["metadata"], "deletionTimestamp": stamp(self.now)}})
        self.wrote("delete", name)
        return found

    async def evict(self, resource: Resource, name: str, namespace: str, **options: Any) -> Object:
        found = self.check(resource, name, namespace, options)
        job = self.find(SLURMJOBS, found["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_SLURMJOB], namespace)
        state = None if job is None else (job.get("status") or {}).get("state")
        is_over = job is None or bool(job["metadata"].get("deletionTimestamp")) or state in {"Succeeded", "Failed"}
        # It cannot begin any more, wherever.
        is_stranded = not found["spec"].get("nodeName") and self.find(KUBERNETES_NODES, pinned_to(found), None) is None
        assert is_over or is_stranded, f"{name} was evicted while its job is {state}"
        if name in self.blocked:
            raise errors.TooManyRequests(Target("evict", "pods", namespace, name), "budget", status=429)
        about = {**found["metadata"], "deletionTimestamp": stamp(self.now)}
        stored = self.put(resource, {**found, "metadata": about})
        self.wrote("evict", name)
        return stored

    def check_lift(self, before: Object, after: Object) -> None:
        """What a pod that is placed must be, by what is true now."""
        old, new = before["spec"].get("schedulingGates") or [], after["spec"].get("schedulingGates") or []
        assert GATE in old, "no pod is written to but to place it"
        assert new == [one for one in old if one != GATE], "only our gate is removed"
        about = after["metadata"]
        name = about["annotations"][labels.ANNOTATION_BRIDGE_SLURMJOB]
        slot = int(about["annotations"][labels.ANNOTATION_BRIDGE_SLOT])
        job = self.find(SLURMJOBS, name, about["namespace"])
        assert job is not None, "placed by a SlurmJob that does not exist"
        status = job["status"]
        assert (status["state"], bool(job["metadata"].get("deletionTimestamp"))) == ("Running", False)
        assert not (job["spec"]["external"].get("ended")), "placed by a job that has ended"
        owners = {about["uid"], *(one["uid"] for one in about.get("ownerReferences") or ())}
        if set(about["labels"]) == {labels.LABEL_BRIDGE_POD}:
            assert job["metadata"]["labels"][labels.LABEL_BRIDGE_GROUP] in owners
        nodes = [
            one["node"]
            for number, part in enumerate(parts_of(job))
            for one in status["allocation"]
            if one.get("component", 0) == number
            for _ in range(one["cpus"] // part["cpusPerTask"])
        ]
        asked = after["spec"]["containers"][0]["resources"]["requests"]
        sizes = [part for part in parts_of(job) for _ in range(part["tasks"])]
        assert sizes[slot]["cpusPerTask"] >= number_of(asked["cpu"], "cpu"), "more of a node than its job has"
        terms = after["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
        assert pins_of(after) == [nodes[slot]] * len(terms)
        for one in self.pods():
            where = one["metadata"].get("annotations") or {}
            is_same = where.get(labels.ANNOTATION_BRIDGE_SLURMJOB) == name and one["metadata"]["uid"] != about["uid"]
            is_void = bool(one["metadata"].get("deletionTimestamp")) and not one["spec"].get("nodeName")
            is_living = (one.get("status") or {}).get("phase") not in {"Succeeded", "Failed"} and not is_void
            if is_same and is_living and GATE not in (one["spec"].get("schedulingGates") or []):
                assert where[labels.ANNOTATION_BRIDGE_SLOT] != str(slot), "a task has two pods"

    def placed_by(self, job: str) -> list[Object]:
        """Pods that a SlurmJob has placed, and that have not ended."""
        return [
            one
            for one in self.pods()
            if (one["metadata"].get("annotations") or {}).get(labels.ANNOTATION_BRIDGE_SLURMJOB) == job
            and GATE not in (one["spec"].get("schedulingGates") or [])
            and (one.get("status") or {}).get("phase") not in {"Succeeded", "Failed"}
        ]

    def all(self, resource: Resource) -> list[Object]:
        return [obj for (plural, _, _), obj in list(self.objects.items()) if plural == name_of(resource)]

    def pods(self) -> list[Object]:
        return self.all(BRIDGE_PODS)


def pins_of(pod: Object) -> list[str]:
    """The Node that each term of a pod's affinity names."""
    terms = pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return [node for term in terms for one in term["matchFields"] for node in one["values"]]


def parts_of(job: Object) -> list[Object]:
    """The components of a job, or what a plain one asks for."""
    return job["spec"]["external"].get("components") or [job["spec"]]


class Events:
    """Remembers Events."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str, str]] = []

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.all.append((obj["metadata"]["name"], str(reason), message))

    normal = warning


class World:
    """Cluster ns/slurm places pods of namespace team on k1 and k2."""

    def __init__(self, kube: Kube | None = None) -> None:
        self.kube = kube or Kube()
        self.clusters: Store = self.kube.cache(CLUSTERS)
        self.pods: Store = self.kube.cache(BRIDGE_PODS, pods_cache(INDEXES_OF_PODS).indexers, prune_pod)
        self.jobs: Store = self.kube.cache(SLURMJOBS, INDEXES_OF_JOBS, prune_job)
        self.hosts: Store = self.kube.cache(KUBERNETES_NODES)
        for number in range(10):
            self.kube.put(KUBERNETES_NODES, {"metadata": {"name": f"k{number}"}})
        self.events = Events()
        self.nodes: list[Node] = []
        """Of its Slurm."""
        self.seconds = 0.0
        self.numbers = itertools.count(1)
        self.queue: dict[Key, None] = {}
        self.kube.put(NAMESPACES, {"metadata": {"name": TEAM, "labels": {}}})
        self.cluster()
        self.start()

    def start(self) -> None:
        """Start the operator, which remembers nothing."""
        singles = Singles()
        clusters = BridgeClusters(self.kube, ClusterReader(self.clusters), ("*",), lambda: self.seconds)
        observer = Observer(
            self.kube,
            self.pods,
            self.jobs,
            clusters,
            singles,
            now=lambda: self.kube.now,
            clock=lambda: self.seconds,
            slurm=cast(
                "Any", SimpleNamespace(get=lambda _: SimpleNamespace(nodes={one.name: one for one in self.nodes}))
            ),
            devices=(devices := self.devices()),
            hosts=self.hosts,
        )
        self.reconciler = GroupReconciler(
            cast("Any", self.kube),
            self.events,
            self.pods,
            self.jobs,
            observer,
            clock=lambda: self.seconds,
            now=lambda: self.kube.now,
        )
        self.reconciler.subscribe(self.wake)
        triggers = GroupTriggers(self.pods, self.jobs, singles).table(
            seen=self.reconciler.expectations.observe, reads_claims=devices is not None
        )

        def changed(resource: Resource, old: Object | None, new: Object | None) -> None:
            if resource in triggers.observers:
                triggers.observers[resource](old, new)
            for key in triggers.objects[resource](old, new) if resource in triggers.objects else ():
                self.wake(key)

        self.kube.handlers = [changed]
        for resource, store in ((BRIDGE_PODS, self.pods), (SLURMJOBS, self.jobs)):
            for obj in store:
                changed(resource, None, obj)

    def entry(self, _: str) -> SimpleNamespace:
        return SimpleNamespace(nodes={one.name: one for one in self.nodes})

    def devices(self) -> DeviceReader | None:
        """What reads devices; nothing does where the settings do not say so."""
        return None

    def wake(self, key: Key) -> None:
        self.queue[key] = None

    def tick(self, seconds: float) -> None:
        self.seconds += seconds
        self.kube.now += timedelta(seconds=seconds)

    # Objects

    def cluster(self, name: str = "slurm", tenants: list[dict[str, Any]] | None = None, **bridge: Any) -> None:
        own = [{"user": "alice", "namespaces": [TEAM], "accounts": ["physics"]}] if tenants is None else tenants
        spec = {"jobs": {"tenants": own, "bridge": {"nodeLabels": {"bridge": "yes"}, **bridge}}}
        self.kube.put(
            CLUSTERS,
            {
                "apiVersion": "slinky.slurm.net/v1alpha1",
                "metadata": {"name": name, "namespace": "ns", "uid": f"cluster-{name}", "generation": 1},
                "spec": spec,
            },
        )

    def pod(self, name: str = "p", *, owner: Object | None = None, **spec: Any) -> Object:
        """Create a pod that waits for Slurm."""
        container = {"name": "main", "image": "x:1", "resources": {"requests": spec.pop("requests", REQUESTS)}}
        about = {
            "name": name,
            "namespace": TEAM,
            "uid": spec.pop("uid", f"u{next(self.numbers)}"),
            "labels": {labels.LABEL_BRIDGE_POD: "true", **spec.pop("labels", {})},
            "annotations": spec.pop("annotations", {}),
            **({"ownerReferences": [owner]} if owner is not None else {}),
        }
        wanted = {"containers": [container], "schedulingGates": [GATE], **spec}
        return self.kube.put(BRIDGE_PODS, {"metadata": about, "spec": wanted, "status": {"phase": "Pending"}})

    def job(self, name: str = "j", pods: int = 3, *, make: bool = True, template: Any = None, **spec: Any) -> Object:
        """Create an Indexed Job, and its pods."""
        wanted = {"completions": pods, "parallelism": pods, "completionMode": "Indexed", **spec}
        made = self.kube.put(
            BATCH_JOBS,
            {"metadata": {"name": name, "namespace": TEAM, "uid": f"job-{name}"}, "spec": wanted, "status": {}},
        )
        for index in range(pods if make else 0):
            self.pod_of(made, index, **(template or {}))
        return made

    def pod_of(self, job: Object, index: int, **spec: Any) -> Object:
        about = job["metadata"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": about["name"], "uid": about["uid"]}
        name = spec.pop("name", f"{about['name']}-{index}-{next(self.numbers)}")
        annotations = {INDEX: str(index), **spec.pop("annotations", {})}
        return self.pod(name, owner={**owner, "controller": True}, annotations=annotations, **spec)

    def find(self, name: str) -> Object:
        found = self.kube.find(BRIDGE_PODS, name, TEAM)
        assert found is not None, name
        return found

    def slurmjobs(self) -> list[Object]:
        return sorted(self.kube.all(SLURMJOBS), key=lambda one: str(one["metadata"]["name"]))

    @property
    def slurmjob(self) -> Object:
        (one,) = self.slurmjobs()
        return one

    def condition(self, name: str) -> Object:
        conditions = (self.find(name).get("status") or {}).get("conditions") or ()
        found: Object = next((one for one in conditions if one["type"] == labels.BRIDGE_PREFIX + "Placed"), {})
        return found

    def lifted(self) -> list[str]:
        return [
            one["metadata"]["name"]
            for one in self.kube.pods()
            if GATE not in (one["spec"].get("schedulingGates") or [])
        ]

    # Players

    def lose(self, host: str) -> None:
        """Let a Kubernetes Node be gone."""
        self.kube.drop(KUBERNETES_NODES, {"metadata": {"name": host}})

    def set_pod(self, pod: Object | str, **status: Any) -> Object:
        found = self.find(pod if isinstance(pod, str) else pod["metadata"]["name"])
        return self.kube.put(BRIDGE_PODS, {**found, "status": {**found["status"], **status}})

    def ends(self, pod: Object | str, code: int = 0, reason: str = "") -> None:
        phase = "Failed" if code else "Succeeded"
        end = {"exitCode": code, "reason": reason or ("Error" if code else "Completed")}
        _ = self.set_pod(pod, phase=phase, containerStatuses=[{"name": "main", "state": {"terminated": end}}])

    def gone(self, pod: Object | str) -> None:
        """Let a pod be gone, with what it owns."""
        found = self.find(pod if isinstance(pod, str) else pod["metadata"]["name"])
        self.kube.drop(BRIDGE_PODS, found)

    def slurm(self, job: Object, state: str, **status: Any) -> Object:
        """Let the controller of SlurmJobs write a status."""
        found = self.kube.find(SLURMJOBS, job["metadata"]["name"], TEAM)
        assert found is not None
        before = found.get("status") or {}
        base = {"state": state, "reason": state, "summary": f"it is {state}", "jobId": before.get("jobId") or 7}
        if state in {"Succeeded", "Failed"}:
            finished = {
                "type": "Finished", "status": "True", "reason": state, "message": "",
                "lastTransitionTime": stamp(self.kube.now),
            }  # fmt: skip
            base |= {"conditions": [finished], "endTime": stamp(self.kube.now)}
        return self.kube.put(SLURMJOBS, {**found, "status": {**before, **base, **status}})

    def runs_in_components(self, job: Object) -> Object:
        """Let Slurm run a heterogeneous job: each component on a node of its own, k0, k1 and so on."""
        allocation = [
            {"component": number, "node": f"k{number}", "cpus": part["tasks"] * part["cpusPerTask"], "memory": 1}
            for number, part in enumerate(parts_of(job))
        ]
        return self.slurm(job, "Running", allocation=allocation, startTime=stamp(self.kube.now))

    def runs(self, job: Object, nodes: tuple[str, ...] = ("k2", "k1")) -> Object:
        """Let Slurm run a job: as many tasks as there are on the first node but one, the rest on the second."""
        spec = job["spec"]
        if "components" in spec["external"]:
            return self.runs_in_components(job)
        tasks, each = spec["tasks"], spec["cpusPerTask"]
        first = tasks - tasks // 2
        counts = [count for count in (first, tasks - first) if count]
        allocation = [
            {"node": node, "cpus": count * each, "memory": 1, "gres": []}
            for node, count in zip(nodes, counts, strict=False)
        ]
        return self.slurm(job, "Running", allocation=allocation, startTime=stamp(self.kube.now))

    # Passes

    async def turn(self) -> None:
        """One pass over each group that is due."""
        keys, self.queue = list(self.queue), {}
        for key in keys:
            _ = await self.look(key)

    async def look(self, key: Key) -> Result:
        return await self.reconciler.reconcile(key)

    async def settle(self, seconds: float = 0.0) -> None:
        """Passes over everything, at once and after some seconds, until nothing is written any more."""
        if seconds:
            self.tick(seconds)
        for key in self.every_key():
            self.wake(key)
        for _ in range(50):
            before = len(self.kube.writes)
            self.kube.show_all()
            await self.turn()
            if len(self.kube.writes) == before and not self.queue:
                return
        raise AssertionError("it does not settle")

    def every_key(self) -> Iterator[Key]:
        singles = Singles()
        triggers = GroupTriggers(self.pods, self.jobs, singles)
        for obj in self.pods:
            yield from triggers.pod(None, obj)
        for obj in self.jobs:
            yield from triggers.job(None, obj)


def pins(pod: Object) -> list[str]:
    terms = pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return [one["values"][0] for term in terms for one in term["matchFields"]]


def ended(job: Object) -> Object:
    found: Object = job["spec"]["external"].get("ended") or {}
    return found
