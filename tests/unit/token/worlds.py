"""A Token with its Cluster and their Secrets on an API server in memory, and a clock."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from typing_extensions import override

from slinky_api import labels
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.errors import Conflict, Target
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, SECRETS, TOKENS, Resource
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.runtime.controller import Result
from slinky_operator.slurm.tokens.signing_keys import SigningKey
from slinky_operator.token import jwts
from slinky_operator.token.controller import TokenReconciler
from slinky_operator.token.observation import INDEXES_OF_TOKENS
from tests.support.memory_kube import MemoryKube

START = datetime(2026, 11, 22, 12, tzinfo=UTC)
KEY, OTHER_KEY = b"k" * 32, b"o" * 32


class CheckedKube(MemoryKube):
    """Refuses a write that names a version which is no longer there, as API servers do."""

    def __init__(self) -> None:
        super().__init__()
        self.before_write: Any = None
        """Called once, right before the next write of a Secret."""
        self.writes: list[str] = []

    def _check(self, resource: Resource, verb: str, name: str, namespace: str | None, **wanted: Any) -> None:
        if resource is SECRETS:
            self.writes.append(verb)
            act, self.before_write = self.before_write, None
            if act is not None:
                act()
        found = self.objects.get((resource.plural, namespace or "", name))
        about = found["metadata"] if found is not None else {}
        pairs = {"uid": wanted.get("uid"), "resourceVersion": wanted.get("resource_version")}
        if found is not None and any(value not in {None, about[field]} for field, value in pairs.items()):
            raise Conflict(Target(verb, str(resource), namespace, name), "changed", status=409)

    @override
    async def create(self, resource: Resource, body: Object, namespace: str | None = None) -> Object:
        self._check(resource, "create", body["metadata"]["name"], namespace)
        return await super().create(resource, body, namespace)

    @override
    async def merge_patch(
        self, resource: Resource, name: str, patch: Object, namespace: str | None = None, **options: Any
    ) -> Object:
        self._check(resource, "patch", name, namespace, **options)
        return await super().merge_patch(resource, name, patch, namespace)

    @override
    async def delete(self, resource: Resource, name: str, namespace: str | None = None, **options: Any) -> Object:
        self._check(resource, "delete", name, namespace, **options)
        return await super().delete(resource, name, namespace)


class Events:
    """Keeps Events."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.told.append((reason, message))


class TokenWorld:
    """Everything around the Tokens of namespace `ns` and others; the Cluster is `slurm` in `ns`."""

    def __init__(self) -> None:
        self.kube, self.events = CheckedKube(), Events()
        self.now = START
        tokens, clusters = self.kube.cache(TOKENS, INDEXES_OF_TOKENS), ClusterReader(self.kube.cache(CLUSTERS))
        reader = SecretReader(cast("KubeClient", self.kube), clock=self.clock)
        self.reconciler = TokenReconciler(
            self.kube, reader, self.events, tokens, clusters, clock=self.clock, now=lambda: self.now
        )
        self.triggers = self.reconciler.triggers.table()

    def clock(self) -> float:
        return self.now.timestamp()

    def cluster(self, namespace: str = "ns", key: bytes = KEY, **spec: Any) -> None:
        """Make or change the Cluster, and the copy of its keys."""
        metadata = {"name": "slurm", "namespace": namespace, "uid": f"cluster-{namespace}", "generation": 1}
        old = self.kube.objects.get(("clusters", namespace, "slurm"))
        new = self.kube.put(CLUSTERS, {"metadata": metadata, "spec": spec})
        own = {labels.LABEL_CLUSTER_UID: metadata["uid"], labels.LABEL_CLUSTER_NAME: "slurm"}
        self.secret("slurm-auth-copy", namespace, {"jwt.key": key}, labels=own)
        changed = {**new, "metadata": {**new["metadata"], "generation": 2}}
        list(self.reconciler.triggers.cluster(old, changed))

    def token(self, name: str = "portal", namespace: str = "ns", **spec: Any) -> None:
        """Make or change a Token."""
        old = self.kube.objects.get(("tokens", namespace, name))
        spec = {"clusterRef": {"name": "slurm"}, **spec}
        generation = 1 if old is None else old["metadata"]["generation"] + (old["spec"] != spec)
        metadata = {"name": name, "namespace": namespace, "generation": generation}
        metadata["creationTimestamp"] = self.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata["uid"] = old["metadata"]["uid"] if old else f"uid-of-{namespace}-{name}"
        status = {"status": old["status"]} if old and "status" in old else {}
        self.kube.put(TOKENS, {"metadata": metadata, "spec": spec, **status})

    def secret(self, name: str, namespace: str, data: dict[str, bytes], **metadata: Any) -> None:
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        self.kube.put(SECRETS, {"metadata": {"name": name, "namespace": namespace, **metadata}, "data": encoded})

    async def step(self, name: str = "portal", namespace: str = "ns") -> Result:
        return await self.reconciler.reconcile((namespace, name))

    async def later(self, name: str = "portal", namespace: str = "ns", **time: float) -> Result:
        self.now += timedelta(**time)
        return await self.step(name, namespace)

    def value(self, name: str = "portal", namespace: str = "ns") -> bytes:
        """What is in the Secret; empty if there is nothing."""
        found = self.kube.objects.get(("secrets", namespace, name)) or {}
        return jwts.decoded((found.get("data") or {}).get("auth-token") or "")

    def claims(self, name: str = "portal", namespace: str = "ns", key: bytes = KEY) -> jwts.Claims | None:
        return jwts.read(self.value(name, namespace), SigningKey(key))

    def status(self, name: str = "portal", namespace: str = "ns") -> Object:
        found: Object = self.kube.objects["tokens", namespace, name]["status"]
        return found

    def ready(self, name: str = "portal", namespace: str = "ns") -> tuple[str, str, str]:
        """Status, reason and message of the condition."""
        (found,) = [one for one in self.status(name, namespace)["conditions"] if one["type"] == "Ready"]
        return found["status"], found["reason"], found["message"]
