"""The Cluster controller, whole, over an API server in memory, and the kubelets and daemons around it.

A story edits objects and lets passes happen. Between two passes kubelets start pods, trials end, and daemons answer, as
far as the story does not say otherwise. What the operator does is recorded at its borders: requests to the API server,
questions to daemons, connections, Events.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

from slinky_api import labels
from slinky_operator.cluster import observe
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.controller import ClusterReconciler
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.plan import Environment
from slinky_operator.cluster.rollout.config_sources import ConfigMapWatcher, prune, text_source
from slinky_operator.kube import errors, resources
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.events import EventType, Recorder
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.slurm.conf import TextSource
from slinky_operator.slurm.connection.clients import ClientMap
from slinky_operator.slurm.connection.contact import Trouble
from slinky_operator.slurm.connection.pod_reader import PodReader
from tests.unit.cluster.stories.api_server import CREATED, ApiServer, OperatorKilledError
from tests.unit.cluster.stories.slurm import Connections, Slurm
from tests.unit.cluster.stories.telling import BEGIN, LATE, SOON, Flat, Telling

NAMESPACE, NAME = "here", "slurm"
KEY = (NAMESPACE, NAME)
IMAGES = Images(
    {
        "slurmctld": "slurmctld:26.05",
        "slurmrestd": "slurmrestd:26.05",
        "agent": "agent:1",
        "slurmd": "slurmd:26.05",
        "sssd": "sssd:1",
    }
)

CONFIG = f"{NAME}-config"
CONTROLLER = f"{NAME}-controller"
RESTAPI = f"{NAME}-restapi"
ACCOUNTING = f"{NAME}-accounting"
DATABASE = f"{NAME}-database"

End = tuple[int, str]
"""Exit code and message of a container."""

QUIET = 2
"""Passes without a write, one after the other, after which a story has settled."""


@dataclass
class Site:
    """A namespace with one Cluster."""

    spec: Mapping[str, Any]
    references: dict[str, Flat] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    off: tuple[str, ...] = ()
    """Fields that have no effect with the operator's settings."""

    refuses: Callable[[str], str] = lambda text: ""
    """What a disposable slurmctld says of a slurm.conf; empty if it takes it."""

    ends: Callable[[str, str, Object], End | None] = lambda trial, container, pod: (0, "")
    """How a container of another trial ends: `None` while it runs."""

    def __post_init__(self) -> None:
        self.now, self.kube = 1000.0, ApiServer()
        self.telling = Telling(self.references)
        self.slurm = Slurm(self.telling.ask, lambda: self.now, self._spend)
        self.trouble = Trouble.NONE
        self.starting: set[str] = set()
        """Names of workloads whose pods do not become ready: `slurm-accounting`."""

        self.is_stale = False
        """Whether the kubelet of slurmctld's pod mounts nothing new."""

        self.is_rigid = False
        """Whether volumes do not grow."""

        self.stuck = False
        """Whether pods of trials stay as they are."""

        self.passes = 0
        self._writes = 0
        self._numbers = 0
        self._templates: dict[str, str] = {}
        self._touched = ""
        self._slurmctld = ""
        """Uid of slurmctld's pod, as it was last seen."""

        self.kube.tell = self._told
        for name, data in self.secrets.items():
            self.secret(name, data)
        self.caches = self._caches()
        self.put("Cluster", NAME, self.spec, uid="cluster-uid")
        self.begin()

    # what stories do

    def put(self, kind: str, name: str, spec: Mapping[str, Any], uid: str = "", **metadata: Any) -> Object:
        """A user's object."""
        resource = {"Cluster": resources.CLUSTERS, "NodeSet": resources.NODESETS}[kind]
        about = {"name": name, "namespace": NAMESPACE, "uid": uid or f"uid-of-{name}", "generation": 1, **metadata}
        return self.kube.put(resource, {"metadata": about, "spec": copy.deepcopy(dict(spec))})

    def node_set(self, name: str, spec: Mapping[str, Any] | None = None, **metadata: Any) -> None:
        """A NodeSet of the Cluster."""
        self.put("NodeSet", name, {"clusterName": NAME, "replicas": 1, **(spec or {})}, **metadata)

    def edit(self, spec: Mapping[str, Any], kind: Resource = resources.CLUSTERS, name: str = NAME) -> None:
        """Another spec."""
        obj = self.kube.find(kind, name, NAMESPACE)
        assert obj is not None
        about = {**obj["metadata"], "generation": obj["metadata"]["generation"] + 1}
        self.kube.put(kind, {**obj, "metadata": about, "spec": copy.deepcopy(dict(spec))})
        changed = json.dumps(spec, sort_keys=True)
        self.telling.say(f"* {kind.kind} {name} has the spec {changed if len(changed) < 400 else 'of its base'}")

    def secret(self, name: str, data: Mapping[str, bytes], **metadata: Any) -> None:
        """A Secret of the user's, by its bytes."""
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        about = {"name": name, "namespace": NAMESPACE, "uid": f"uid-of-{name}", **metadata}
        self.kube.put(resources.SECRETS, {"metadata": about, "data": encoded})

    def texts(self, name: str, data: Mapping[str, str]) -> None:
        """A ConfigMap of the user's."""
        self.kube.put(resources.CONFIGMAPS, {"metadata": {"name": name, "namespace": NAMESPACE}, "data": dict(data)})

    def delete(self, kind: Resource = resources.CLUSTERS, name: str = NAME) -> None:
        """Somebody deletes an object."""
        self.telling.say(f"* {kind.kind} {name} is deleted")
        obj = self.kube.find(kind, name, NAMESPACE)
        assert obj is not None
        if not obj["metadata"].get("finalizers"):
            self.kube.end(kind, name, NAMESPACE)
            return
        self.kube.put(kind, {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": self._wall().isoformat()}})

    def slurmd(self, name: str, node_set: str = "compute", **spec: Any) -> None:
        """A slurmd pod that runs."""
        own = {labels.LABEL_CLUSTER_NAME: NAME, labels.LABEL_CLUSTER_UID: "cluster-uid"}
        own |= {labels.LABEL_NODESET_UID: f"uid-of-{node_set}", labels.LABEL_NODESET_NAME: node_set}
        owners = [{"kind": "NodeSet", "name": node_set, "uid": f"uid-of-{node_set}", "controller": True}]
        about = {"name": name, "namespace": NAMESPACE, "labels": own, "ownerReferences": owners}
        container = {"name": "slurmd", "image": "slurmd:26.05"}
        self._numbers += 1
        conditions = [{"type": "Ready", "status": "True"}, {"type": "slinky.slurm.net/registered", "status": "True"}]
        status = {"phase": "Running", "podIP": f"10.2.0.{self._numbers}", "conditions": conditions}
        body = {"metadata": about, "spec": {"nodeName": "node-2", "containers": [container], **spec}, "status": status}
        self.kube.put(resources.PODS, body)

    def kill_pod(self, name: str) -> None:
        """A pod is gone."""
        self.telling.say(f"* pod {name} is lost")
        self.kube.end(resources.PODS, name, NAMESPACE)

    def restart(self) -> None:
        """Another operator, which remembers nothing."""
        self.telling.say("* another operator")
        self.begin()

    def say(self, line: str) -> None:
        """Tell what the story does."""
        self.telling.say(f"* {line}")

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.telling.say(f"* {seconds:g} s pass")
        self.now += seconds

    async def rounds(self, count: int) -> None:
        """So many passes."""
        for _ in range(count):
            await self.one_pass()

    async def runs(self) -> None:
        """Let the Cluster come up; of what was done for that only a digest is recorded."""
        await self.settle()
        self.telling.unsaid()

    async def settle(self, at_most: int = 40) -> None:
        """Passes until there is nothing to write, and a few at most if there always is."""
        quiet = 0
        for _ in range(at_most):
            before = self._writes
            await self.one_pass()
            quiet = quiet + 1 if self._writes == before else 0
            if quiet >= QUIET:
                return
        self.telling.say("* not settled")

    async def one_pass(self) -> None:
        """Kubelets and daemons do what is due, then the operator looks once."""
        self.happen()
        self.passes += 1
        self.telling.head(self.passes, self.now - 1000)
        after: float | None = 1.0
        try:
            result = await self.operator.reconcile(KEY)
            after = result.requeue_after
            self.telling.tail(after)
        except OperatorKilledError:
            self.telling.say("* the operator is killed")
            self.begin()
        except errors.KubeError as error:
            self.telling.say(f" fails: {error}")
            await self.operator.tell(KEY, error)
        self.now += min(max(SOON, LATE if after is None else after), LATE)

    async def with_kills(self, passes: int) -> None:
        """So many passes, each of an operator that is killed after its first write."""
        for _ in range(passes):
            self.kube.writes_left = 1
            await self.one_pass()
        self.kube.writes_left = None

    # what kubelets, controllers and daemons do

    def happen(self) -> None:
        """Everything that is due."""
        if not self.kube.lags:
            self.kube.catch_up()
        for number, service in enumerate(self.kube.of(resources.SERVICES)):
            if not service["spec"].get("clusterIP"):
                spec = {**service["spec"], "clusterIP": f"10.1.0.{number + 1}"}
                self.kube.put(resources.SERVICES, {**service, "spec": spec})
        for workload in self.kube.of(resources.STATEFULSETS):
            self._run(resources.STATEFULSETS, workload, "StatefulSet")
        for workload in self.kube.of(resources.DEPLOYMENTS):
            self._run(resources.DEPLOYMENTS, workload, "ReplicaSet")
        for token in self.kube.of(resources.TOKENS):
            if not token.get("status"):
                status = {"secretName": token["metadata"]["name"], "issuedAt": CREATED}
                self.kube.put(resources.TOKENS, {**token, "status": status})
        for pod in self.kube.of(resources.PODS):
            if "-preflight-" in pod["metadata"]["name"] and not self.stuck:
                self._try(pod)
        self._mount()
        self._grow()
        self.slurm.trouble = self.trouble or self._trouble()

    def _run(self, resource: Resource, workload: Object, owner: str) -> None:
        """Pods of a workload, of its template and as ready as the story wants."""
        metadata, template = workload["metadata"], workload["spec"]["template"]
        name = metadata["name"]
        pod_name = f"{name}-0"
        pod = self.kube.find(resources.PODS, pod_name, NAMESPACE)
        digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()
        wanted = workload["spec"].get("replicas", 1)
        if pod is not None and (self._templates.get(pod_name) != digest or not wanted):
            self.kube.end(resources.PODS, pod_name, NAMESPACE)
            pod = None
        ready = name not in self.starting
        if wanted:
            self._templates[pod_name] = digest
            self._start(pod, pod_name, template, owner, metadata, ready=ready)
            self._claims(workload, pod_name)
        count = {"replicas": wanted, "updatedReplicas": wanted, "readyReplicas": wanted if ready else 0}
        status = {**count, "observedGeneration": metadata.get("generation", 1)}
        if workload.get("status") != status:
            self.kube.put(resource, {**workload, "status": status})

    def _start(self, pod: Object | None, name: str, template: Object, owner: str, of: Object, *, ready: bool) -> None:
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        if pod is not None:
            if (pod["status"].get("conditions") or [])[:1] != conditions:
                containers = [{**one, "ready": ready} for one in pod["status"].get("containerStatuses") or ()]
                now = {"conditions": conditions, "containerStatuses": containers}
                self.kube.put(resources.PODS, {**pod, "status": {**pod["status"], **now}})
            return
        self._numbers += 1
        about = template.get("metadata") or {}
        metadata: Object = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{self._numbers}-of-{name}"}
        metadata |= {key: dict(about[key]) for key in ("labels", "annotations") if about.get(key)}
        metadata["ownerReferences"] = [{"kind": owner, "name": of["name"], "uid": of["uid"], "controller": True}]
        metadata["creationTimestamp"] = self._wall().isoformat()
        containers = [{"name": one["name"], "ready": ready} for one in template["spec"]["containers"]]
        address = f"10.0.0.{1 if name == f'{CONTROLLER}-0' else self._numbers + 1}"
        status = {"phase": "Running", "podIP": address, "conditions": conditions, "containerStatuses": containers}
        spec = {**copy.deepcopy(template["spec"]), "nodeName": "node-1"}
        self.kube.put(resources.PODS, {"metadata": metadata, "spec": spec, "status": status})

    def _claims(self, workload: Object, pod: str) -> None:
        for one in workload["spec"].get("volumeClaimTemplates") or ():
            name = f"{one['metadata']['name']}-{pod}"
            if self.kube.find(resources.PERSISTENTVOLUMECLAIMS, name, NAMESPACE) is None:
                spec = copy.deepcopy(one["spec"])
                own = {**workload["spec"]["selector"]["matchLabels"], **(one["metadata"].get("labels") or {})}
                about = {"name": name, "namespace": NAMESPACE, "labels": own}
                status = {"phase": "Bound", "capacity": dict(spec["resources"]["requests"])}
                body = {"metadata": about, "spec": spec, "status": status}
                self.kube.put(resources.PERSISTENTVOLUMECLAIMS, body)

    def _grow(self) -> None:
        for claim in self.kube.of(resources.PERSISTENTVOLUMECLAIMS):
            wanted = claim["spec"]["resources"]["requests"]
            if claim["status"].get("capacity") != wanted and not self.is_rigid:
                status = {**claim["status"], "capacity": dict(wanted)}
                self.kube.put(resources.PERSISTENTVOLUMECLAIMS, {**claim, "status": status})

    def _try(self, pod: Object) -> None:
        """Let a trial end."""
        if pod.get("status"):
            return
        name = pod["metadata"]["name"]
        files = (self.kube.find(resources.CONFIGMAPS, name, NAMESPACE) or {}).get("data") or {}
        ends = {}
        for container in pod["spec"]["containers"]:
            end = self._end(name, container, files, pod)
            if end is None:
                return
            ends[container["name"]] = end
        failed = any(code for code, _ in ends.values())
        at = self._wall().isoformat()
        statuses = [
            {"name": one, "state": {"terminated": {"exitCode": code, "message": words, "finishedAt": at}}}
            for one, (code, words) in ends.items()
        ]
        metadata = {**pod["metadata"], "creationTimestamp": at}
        spec = {"nodeName": "node-1", **pod["spec"]}
        status = {"phase": "Failed" if failed else "Succeeded", "containerStatuses": statuses}
        self.kube.put(resources.PODS, {**pod, "metadata": metadata, "spec": spec, "status": status})

    def _end(self, name: str, container: Object, files: Mapping[str, str], pod: Object) -> End | None:
        found = self.ends(name.rpartition("-preflight-")[2][:1], container["name"], pod)
        if found != (0, ""):
            return found
        release = container["image"].partition(":")[2]
        release = {"26.05": "26.05.5", "24.11": "24.11.5"}.get(release, release)
        if container["name"].startswith("asked-"):
            return 0, f"slurm-wlm {release}"
        if container["name"] == "slurmctld":
            words = self.refuses(files.get("slurm.conf", ""))
            if words:
                return 1, f"slurmctld: fatal: {words}"
            return 0, f"slurm {release}"
        return 0, ""

    def _mount(self) -> None:
        """What slurmctld's pod has mounted: what there is when it starts or is touched."""
        pod = self.kube.find(resources.PODS, f"{CONTROLLER}-0", NAMESPACE)
        config = self.kube.find(resources.CONFIGMAPS, CONFIG, NAMESPACE)
        if pod is None or config is None:
            return
        metadata, files = pod["metadata"], dict(config.get("data") or {})
        touched = (metadata.get("annotations") or {}).get(labels.ANNOTATION_CONFIG_TOUCH, "")
        if metadata["uid"] != self._slurmctld:
            self._slurmctld, self._touched = metadata["uid"], touched
            self.slurm.mounted = self.slurm.read = files
            self.slurm.read_at = self.now
        elif touched != self._touched and not self.is_stale:
            self._touched, self.slurm.mounted = touched, files

    def _trouble(self) -> Trouble:
        cluster = self.kube.find(resources.CLUSTERS, NAME, NAMESPACE)
        if cluster is None or cluster["spec"].get("server"):
            return Trouble.NONE
        pods = [self.kube.find(resources.PODS, f"{one}-0", NAMESPACE) for one in (RESTAPI, CONTROLLER)]
        if pods[0] is None:
            return Trouble.NO_ANSWER
        slurmctld = pods[1]
        if slurmctld is None or slurmctld["status"]["conditions"][0]["status"] != "True":
            return Trouble.CONTROLLER_DOWN
        return Trouble.NONE

    # the operator

    def _caches(self) -> observe.Caches:
        kube = self.kube
        children = [kube.cache(one, observe.INDEXERS) for one in observe.CHILDREN]
        node_sets = kube.cache(resources.NODESETS, INDEXES_OF_NODESETS)
        pods = kube.cache(resources.PODS, observe.INDEXERS)
        return observe.Caches(kube.cache(resources.CLUSTERS), node_sets, pods, *children)

    def begin(self) -> None:
        """A new process."""
        kube = cast("KubeClient", self.kube)
        self.connections = Connections(self.slurm, lambda line: self.telling.say(f" {line}"), self._wall)
        context = PassContext(
            kube,
            SecretReader(kube, clock=lambda: self.now),
            cast("ConfigMapWatcher", _Texts(self.kube)),
            cast("ClientMap", self.connections),
            cast("Recorder", _Events(self.telling)),
            cast("PodReader", _Agents(self.slurm)),
            clock=lambda: self.now,
            random_bytes=self._random,
            ask_daemon=self.slurm.key,
        )
        self.operator = ClusterReconciler(self.caches, context, Environment(IMAGES, off=self.off), wall=self._wall)

    def _spend(self, seconds: float) -> None:
        self.now += seconds

    def _wall(self) -> datetime:
        return BEGIN + timedelta(seconds=self.now - 1000)

    def _random(self, size: int) -> bytes:
        self._numbers += 1
        return hashlib.shake_256(str(self._numbers).encode()).digest(size)

    def _told(self, request: Any) -> None:
        if request.verb not in {"look", "list"}:
            self._writes += 1
        self.telling.request(request)


class _Events:
    """Tells of Events."""

    def __init__(self, telling: Telling) -> None:
        self._telling = telling

    def event(self, obj: Object, kind: EventType, reason: str, message: str) -> None:
        self._telling.event(obj, str(kind), str(reason), message)

    def normal(self, obj: Object, reason: str, message: str) -> None:
        self.event(obj, EventType.NORMAL, reason, message)

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.event(obj, EventType.WARNING, reason, message)


class _Texts:
    """The user's ConfigMaps."""

    def __init__(self, kube: ApiServer) -> None:
        self._kube = kube

    async def read(self, cluster: tuple[str, str], names: Iterable[str]) -> Mapping[str, TextSource]:
        return {name: self._one(name) for name in names}

    async def forget(self, cluster: tuple[str, str]) -> None:
        pass

    def _one(self, name: str) -> TextSource:
        found = self._kube.find(resources.CONFIGMAPS, name, NAMESPACE)
        if found is None:
            return TextSource(name, exists=False)
        shown = copy.deepcopy(found)
        prune(shown)
        return text_source(shown)


class _Agents:
    """Answers of agents; what is kept of them is not counted."""

    def __init__(self, slurm: Slurm) -> None:
        self._slurm = slurm

    async def read(self, url: str, *, owner: str, limit: int) -> Mapping[str, Any]:
        return self._slurm.agent(url)

    def keep(self, owner: str, what: object, size: int) -> None:
        pass

    def forget(self, owner: str, what: object) -> None:
        pass


def live(story: Callable[[Site], Any], site: Site) -> str:
    """Live through a story; returns its text."""
    asyncio.run(story(site))
    return site.telling.text()
