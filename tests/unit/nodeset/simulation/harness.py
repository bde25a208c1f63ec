"""Runs the controller in the simulated world, one history at a time.

A history is a list of steps, each a name and a number. Most change the world; `pass` lets the controller run a pass,
during which some of the following steps happen; `see` lets a cache catch up; `restart` replaces the controller by one
that remembers nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from typing_extensions import override

from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.metrics.changes import Changes
from slinky_operator.nodeset.controller import NodeSetReconciler
from slinky_operator.nodeset.execute.hosts.machines import Machines
from slinky_operator.nodeset.model.drain_requests import DrainRequest
from slinky_operator.nodeset.model.machines import MachineRules
from slinky_operator.nodeset.model.pods import pod_facts
from slinky_operator.nodeset.model.pods.registered_pods import Marking
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.observation.indexes import INDEXES_OF_CLAIMS, INDEXES_OF_PODS, INDEXES_OF_REVISIONS
from slinky_operator.nodeset.observation.neighbours import Neighbours
from slinky_operator.nodeset.planning.plan import plan
from slinky_operator.nodeset.planning.steady import Steady
from slinky_operator.nodeset.planning.survey import survey
from slinky_operator.nodeset.pod_spec.generated import Defaults
from slinky_operator.nodeset.report import status
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS
from slinky_operator.reconcile.clusters import ClusterReader
from slurm_client.models import Node
from tests.support.no_log_servers import unasked
from tests.support.traced_pods import TracedPods
from tests.unit.nodeset.simulation.doors import KubeDoor, SlurmDoor
from tests.unit.nodeset.simulation.objects import (
    CLUSTER,
    CLUSTER_UID,
    HOSTS,
    NAMESPACE,
    NEIGHBOUR_UID,
    NODESET,
    PATIENCE,
    Object,
    clone,
    is_selected,
)
from tests.unit.nodeset.simulation.state import Died
from tests.unit.nodeset.simulation.steps import TROUBLES, Step
from tests.unit.nodeset.simulation.world import World

OWN_KEY = (NAMESPACE, NODESET)

COUNTED: Final = Changes()
"""Of all controllers here: nobody reads it, and each history begins with a new controller."""

UNDISTURBED = frozenset({"pass", "restart", "takeover", "slurm_clock", "job_names", "drain_request", "settings"})
"""Steps that do not happen within a pass. A job that names a node is not submitted between the last look at jobs and
the deletion of a record: Slurm has no call that would show it in time."""


def ready_since(pod: Object) -> datetime | None:
    """Since when a pod is Ready, by its status."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    found = [one["lastTransitionTime"] for one in conditions if one["type"] == "Ready" and one["status"] == "True"]
    return datetime.fromisoformat(found[0]) if found else None


class Silent:
    """A recorder that forgets."""

    def normal(self, obj: Object, reason: str, message: str) -> None: ...

    def warning(self, obj: Object, reason: str, message: str) -> None: ...


class Violated(AssertionError):
    """Something happened that never may."""


class Doubting(NodeSetReconciler):
    """The controller, which looks whether a pass that it leaves out would have done nothing, and compares what it keeps
    of a look at the caches with what they have."""

    left_out = 0
    """Passes left out by all of them."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._look = self._observer.observe
        self._observer.observe = self._observe_twice  # type: ignore[method-assign]

    def _observe_twice(self, *args: Any, **options: Any) -> Snapshot:
        """Take a snapshot, and another one by an observer that has kept nothing."""
        observer, found = self._observer, self._look(*args, **options)
        kept = observer._pods_read, observer._nodes_read, observer._neighbours
        observer._pods_read, observer._nodes_read = {}, {}
        observer._neighbours = Neighbours(observer._pods, observer._hosts)
        fresh = self._look(*args, **options)
        observer._pods_read, observer._nodes_read, observer._neighbours = kept
        if fresh != found or not all(map(pod_facts.are_alike, found.pods, fresh.pods)):
            raise Violated(f"a snapshot is not what the caches have: {found}, {fresh}")
        return found

    @override
    def _followed(self, before: Steady, snapshot: Snapshot) -> Steady:
        type(self).left_out += 1
        now, followed = self._now(), super()._followed(before, snapshot)
        seen = survey(snapshot, now)
        planned = plan(seen)
        whole = status.build(snapshot, planned.decisions, now)
        counted = followed.loads.shown_in(snapshot.nodeset.status)
        if planned.actions or seen.suspects or seen.needs_jobs or whole != counted:
            raise Violated(f"a pass was left out that has something to do: {planned.actions}, {whole}, {counted}")
        return followed


@dataclass
class Run:
    """One history under way."""

    world: World
    cursor: int = 0
    pending: list[Step] = field(default_factory=list)
    interruptions: int = 0
    cordons: set[str] = field(default_factory=set)
    """Nodes that are cordoned, as the controller's cache shows them."""
    awake: bool = True
    """Whether anything makes the controller come again: an event, an error, or the time that a pass asked for."""
    shown: dict[str, Node] = field(default_factory=dict)
    """The records that the controller has had events of."""
    contact: bool = True
    """Whether Slurm answered, as the controller has been informed."""

    def __post_init__(self) -> None:
        self.kube = KubeDoor(self.world)
        self.slurm = SlurmDoor(self.world, self.meanwhile)
        self.restart()

    def restart(self, *, is_late: bool = False) -> None:
        """A controller that remembers nothing. Its caches have just listed; those of NodeSets and pods may be late."""
        if not is_late:
            self.nodesets = Store(INDEXES_OF_NODESETS)
            self.pods: Store = TracedPods(INDEXES_OF_PODS)
            if self.world.nodeset is not None:
                self.nodesets.put(clone(self.world.nodeset))
            for pod in self.world.pods.values():
                self.pods.put(clone(pod))
        self.revisions = Store(INDEXES_OF_REVISIONS)
        self.claims = Store(INDEXES_OF_CLAIMS)
        self.clusters = Store()
        self.see_cluster()
        for revision in self.world.revisions.values():
            self.revisions.put(clone(revision))
        for claim in self.world.claims.values():
            self.claims.put(clone(claim))
        self.cursor = len(self.world.log)
        self.world.do_poll(0)
        self.awake, self.shown, self.contact = True, dict(self.world.picture), self.world.ready
        given = self.world.settings
        self.controller = Doubting(
            self.kube,
            nodesets=self.nodesets,
            clusters=ClusterReader(self.clusters),
            pods=self.pods,
            watch_hosts=True,
            revisions=self.revisions,
            claims=self.claims,
            slurm=self,
            recorder=Silent(),
            defaults=Defaults(image="slurmd"),
            ask_volumes=unasked,
            machines=Machines(
                self.kube,
                MachineRules(frozenset(given["namespaces"]), reboot_by=given["by"], delete_nodes=given["deletes"]),
                lambda key: self.slurm if key == (NAMESPACE, CLUSTER) else None,
                clock=lambda: self.world.now.timestamp(),  # noqa: PLW0108 - now changes
                now=lambda: self.world.now,
            ),
            drain_requests=lambda: {host: DrainRequest("nv", host, host, host, "x") for host in self.world.requests},
            now=lambda: self.world.now,
            patience=timedelta(seconds=PATIENCE),
            # In half of the worlds three pods are many: the status names those that have registered, for long.
            marking=Marking(at_once=0, quiet=timedelta(seconds=300)) if self.world.keeps_instance else Marking(),
            clock=lambda: self.world.now.timestamp(),  # noqa: PLW0108 - now changes
            changes=COUNTED,
        )
        self.conditions: dict[str, tuple[str, datetime]] = {}
        self.boots: dict[str, tuple[str, datetime | None, datetime | None]] = {}
        self.hosts: set[str] = set()
        for host in self.world.hosts.values():
            self.see_host(clone(host))

    def take_over(self) -> None:
        """A controller that remembers nothing, with the caches of a standby: they are as late as those before were."""
        late = [event for event in self.world.log[self.cursor :] if event[0] in {"nodesets", "pods"}]
        self.restart(is_late=True)
        self.world.log += late
        self.cursor = len(self.world.log) - len(late)

    def see_cluster(self) -> None:
        """The cache shows the Cluster as it is."""
        self.awake = True
        version = str(self.world.next())
        self.clusters.put(
            {
                "apiVersion": "slinky.slurm.net/v1alpha1",
                "kind": "Cluster",
                "metadata": {"name": CLUSTER, "namespace": NAMESPACE, "uid": CLUSTER_UID, "resourceVersion": version},
                "spec": {"maintenance": {"windows": list(self.world.windows)}},
                "status": {"isReady": True, "config": {"nodeSets": [NODESET]}},
            }
        )

    def get(self, uid: str) -> SlurmDoor | None:
        """The client map."""
        return self.slurm if uid == CLUSTER_UID else None

    def hear(self, keys: Iterable[Key]) -> None:
        """The keys to which an event has led."""
        self.awake |= OWN_KEY in list(keys)

    def hear_slurm(self) -> None:
        """Events of the records that have changed, and of Slurm's answering at all."""
        triggers, picture = self.controller.triggers, self.world.picture
        for name in {*self.shown, *picture}:
            old, new = self.shown.get(name), picture.get(name)
            if old != new:
                self.hear(triggers.node(CLUSTER_UID, old, new))
        if self.contact != self.world.ready:
            self.hear(triggers.contact(CLUSTER_UID))
        self.shown, self.contact = dict(picture), self.world.ready

    def see_host(self, host: Object, *, gone: bool = False) -> None:
        self.hear(self.controller.triggers.host(host if gone else None, None if gone else host))
        name = host["metadata"]["name"]
        self.cordons.discard(name)
        self.world.seen_selected.discard(name)
        self.hosts.discard(name)
        if gone:
            self.conditions.pop(name, None)
            self.boots.pop(name, None)
            return
        self.see_boot(name, (host["status"].get("nodeInfo") or {}).get("bootID") or "")
        self.hosts.add(name)
        self.see_condition(name, host["status"].get("conditions") or ())
        if host["spec"].get("unschedulable"):
            self.cordons.add(name)
        if is_selected(host):
            self.world.seen_selected.add(name)

    def see_boot(self, host: str, boot: str) -> None:
        """The boot id of a Node, and when the cache last showed another one."""
        known, last, before = self.boots.get(host, ("", None, None))
        if known and boot and boot != known:
            last, before = self.world.now, last
        self.boots[host] = boot or known, last, before

    def see_condition(self, host: str, conditions: Sequence[Object]) -> None:
        """The condition of a Node, and since when it is so: of one that has gone, since the cache shows that."""
        for one in conditions:
            self.conditions[host] = one["status"], datetime.fromisoformat(one["lastTransitionTime"])
        if not conditions and self.conditions.get(host, ("", None))[0]:
            self.conditions[host] = "", self.world.now

    def see(self, count: int) -> None:
        """The caches catch up by some events."""
        for resource, kind, obj in self.world.log[self.cursor : self.cursor + count]:
            self.cursor += 1
            if resource == "nodes":
                self.see_host(obj, gone=kind == "DELETED")
                continue
            stores = {"pods": self.pods, "revisions": self.revisions, "claims": self.claims, "nodesets": self.nodesets}
            store = stores[resource]
            change = store.remove(obj) if kind == "DELETED" else store.put(obj)
            if change is None:
                continue
            if resource == "pods":
                self.controller.expectations.observe(*change)
                self.hear(self.controller.triggers.pod(*change))
            elif resource == "nodesets":
                self.hear(self.controller.triggers.nodeset(*change))
            elif resource == "claims":
                self.hear(self.controller.triggers.claim(*change))

    def meanwhile(self) -> None:
        """Some of what comes next happens in the midst of a pass."""
        if self.interruptions and self.pending and self.pending[0][0] not in UNDISTURBED:
            self.interruptions -= 1
            self.apply(*self.pending.pop(0))

    async def history(self, steps: Sequence[Step]) -> None:
        """Live through a history."""
        self.pending = list(steps)
        while self.pending:
            name, number = self.pending.pop(0)
            if name == "pass":
                self.interruptions = number % 3
                await self.one_pass()
                self.interruptions = 0
            else:
                self.apply(name, number)
            self.hear_slurm()
            self.check()

    def apply(self, name: str, number: int) -> None:
        self.world.troubled |= name in TROUBLES
        match name:
            case "see":
                self.see(1 + number)
            case "see_all":
                self.see(len(self.world.log))
            case "restart":
                self.restart()
            case "takeover":
                self.take_over()
            case "settings":
                self.world.do_settings(number)
                self.restart()
            case "drain_request":
                self.world.do_drain_request(number)
                self.awake = True
            case "window":
                self.world.do_window(number)
                self.see_cluster()
            case "neighbour_comes":
                self.neighbour_comes(number)
            case "time" if any(map(self.world.is_neighbours, self.world.pods.values())):
                # Caches lag behind by seconds: for that long a name is reserved for the one who takes it.
                self.see(len(self.world.log))
                self.world.do_time(number)
            case _:
                getattr(self.world, f"do_{name}")(number)

    def neighbour_comes(self, number: int) -> None:
        """Another NodeSet, of the same controller, takes the name of a node that nobody has or is taking."""
        node = HOSTS[number % len(HOSTS)] if self.world.on_hosts else f"{NODESET}-{number % 4}"
        there = {self.world.node_of(name) for name in self.world.pods} | set(self.world.records)
        seen = {self.world.node_in(pod) for pod in self.pods} | set(self.world.picture)
        if node in there | seen or not self.controller._reserved.take(CLUSTER_UID, node, NEIGHBOUR_UID):
            return
        self.world.neighbour_comes(node)

    async def one_pass(self) -> None:
        seen = self.nodesets.get(NAMESPACE, NODESET)
        # A pass decides by what is seen when it begins.
        self.world.seen_cordoned = set(self.cordons)
        self.world.seen_drain = seen["spec"].get("drain") or {} if seen is not None else {}
        self.world.seen_health = seen["spec"].get("health") if seen is not None else None
        self.world.seen_topology = (seen["spec"].get("topology") or []) if seen is not None else []
        self.world.seen_outside = self.world.is_outside_windows()
        tries = (seen.get("status") or {}).get("replacements") or () if seen is not None else ()
        self.world.seen_tries = {one["host"]: one for one in tries}
        self.world.seen_conditions = dict(self.conditions)
        self.world.seen_boots = {host: (last, before) for host, (_, last, before) in self.boots.items()}
        bound = {self.world.node_in(pod): pod["spec"].get("nodeName") for pod in self.pods if self.world.is_ours(pod)}
        self.world.seen_hosts = {node: host for node, host in bound.items() if host in self.hosts}
        self.world.seen_requested = {node for node, host in bound.items() if host in self.world.requests}
        self.world.given_back = set()
        self.world.seen_finalizers = seen is not None and bool(seen["metadata"].get("finalizers"))
        self.world.seen_deleting = seen is not None and "deletionTimestamp" in seen["metadata"]
        self.world.seen_image = seen["spec"]["image"] if seen is not None else ""
        self.world.seen_replicas = seen["spec"]["replicas"] if seen is not None else 0
        retention = "persistentVolumeClaimRetentionPolicy"
        self.world.seen_retention = seen["spec"][retention] if seen is not None else {}
        self.world.seen_pods = {pod["metadata"]["name"] for pod in self.pods if self.world.is_ours(pod)}
        self.world.seen_live = {self.world.node_in(pod) for pod in self.pods if self.world.is_live(pod)}
        failing = self.world.fail_kube
        left_over = self.claims_without_pods()
        self.world.seen_update = (seen["spec"].get("updateStrategy") or {}) if seen is not None else {}
        self.world.seen_patience = seen["spec"].get("minReadySeconds", 0) if seen is not None else 0
        picture = self.world.picture.values()
        self.world.seen_silent = {node.name for node in picture if node.is_down or node.is_not_responding}
        self.world.seen_invalid = {node.name for node in picture if "INVALID_REG" in node.state.flags}
        self.world.seen_ready = {self.world.node_in(pod): ready_since(pod) for pod in self.pods}
        self.hear_slurm()
        self.awake = False
        try:
            result = await self.controller.reconcile(OWN_KEY)
            self.awake = result.requeue_after is not None
        except* (kube_errors.KubeError, Died):
            # The loop of the real thing comes again; so does this one.
            self.awake = True
        if self.world.dead:
            self.world.dead = False
            self.restart()
        self.hear_slurm()
        retains = self.world.seen_retention.get("whenScaled") == "Retain"
        if retains and failing == self.world.fail_kube and self.has_looked_at(seen):
            # Those that got their pods back in this very pass are not kept any more.
            self.world.kept |= left_over & self.claims_without_pods()

    def claims_without_pods(self) -> set[str]:
        """Uids of claims whose pods are gone, by what the controller sees, and are not just being made."""
        world = self.world
        pods = world.seen_pods | set(world.pods)
        numbers = {world.ordinal_of(pod) for pod in pods}
        return {
            claim["metadata"]["uid"]
            for claim in self.claims
            for pod in [claim["metadata"]["name"].removeprefix("data-")]
            if (pod not in pods if world.on_hosts else world.ordinal_of(pod) not in numbers)
        }

    def has_looked_at(self, seen: Object | None) -> bool:
        """Whether the controller has settled what to do about a spec, and no deletion has changed that since."""
        nodeset = self.world.nodeset
        if seen is None or nodeset is None or "deletionTimestamp" in seen["metadata"]:
            return False
        observed = (nodeset.get("status") or {}).get("observedGeneration")
        return bool(observed == seen["metadata"]["generation"])

    def check(self) -> None:
        if self.world.violations:
            raise Violated("; ".join(self.world.violations))
        for name, reason in self.world.foreign.items():
            record = self.world.records.get(name)
            if record is not None and record.drain and record.reason != reason:
                raise Violated(f"the reason of {name} was {reason!r} and is {record.reason!r}")

    def describe(self) -> str:
        world = self.world
        pods = {name: (pod["metadata"].get("deletionTimestamp"), pod.get("status")) for name, pod in world.pods.items()}
        return f"{world.nodeset}\n{pods}\n{world.records}\n{world.jobs}"
