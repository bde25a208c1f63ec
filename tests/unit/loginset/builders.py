"""A LoginSet, its Cluster and its controller over an API server in memory."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, cast

from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    CLUSTERS,
    CONFIGMAPS,
    DEPLOYMENTS,
    LOGINSETS,
    PODDISRUPTIONBUDGETS,
    PODS,
    SECRETS,
    SERVICES,
)
from slinky_operator.loginset.bodies import host_keys
from slinky_operator.loginset.controller import LoginSetReconciler
from slinky_operator.loginset.observe import INDEXERS, Caches
from slinky_operator.loginset.plan import Defaults
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.secrets import SecretReader
from tests.support.memory_kube import MemoryKube

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ("ns", "front")
APPLIED = {"config": {"hash": "h", "appliedHash": "h"}}


class Events:
    """Keeps Events."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.told.append((reason, message))


@cache
def keys() -> Mapping[str, bytes]:
    """Host keys; they take a while."""
    return host_keys.generate("front")


class World:
    """One namespace."""

    def __init__(self, cluster: dict[str, Any] | None = None, **spec: Any) -> None:
        self.kube, self.events = MemoryKube(), Events()
        self.at = 0.0
        caches = Caches(
            loginsets=self.kube.cache(LOGINSETS, INDEXES_OF_NODESETS),
            clusters=ClusterReader(self.kube.cache(CLUSTERS)),
            pods=self.kube.cache(PODS, INDEXERS),
            deployments=self.kube.cache(DEPLOYMENTS, INDEXERS),
            services=self.kube.cache(SERVICES, INDEXERS),
            config_maps=self.kube.cache(CONFIGMAPS, INDEXERS),
            budgets=self.kube.cache(PODDISRUPTIONBUDGETS, INDEXERS),
        )
        self.controller = LoginSetReconciler(
            self.kube,
            self.events,
            caches,
            SecretReader(cast("KubeClient", self.kube), clock=lambda: self.at),
            Defaults(image="slinky/login:26.05"),
            clock=lambda: self.at,
            now=lambda: NOW + timedelta(seconds=self.at),
        )
        self.kube.put(CLUSTERS, _object("Cluster", "slurm", cluster or {}, APPLIED))
        self.secret("slurm-auth-slurm", {"slurm.key": b"k" * 32})
        self.secret("front-ssh-host-keys", keys())
        self.change(**spec)

    def change(self, **spec: Any) -> None:
        """Create the LoginSet, or replace its spec."""
        known = self.kube.objects.get(("loginsets", *KEY))
        body = _object("LoginSet", "front", {"clusterName": "slurm", **spec}, {})
        if known is not None:
            body = {**known, "spec": body["spec"]}
            body["metadata"] = {**body["metadata"], "generation": known["metadata"]["generation"] + 1}
        self.kube.put(LOGINSETS, body)

    def defaults(self, image: str) -> None:
        """Another version of the operator, with another default image."""
        self.controller._defaults = Defaults(image=image)

    def secret(self, name: str, data: Mapping[str, bytes]) -> None:
        """Store a Secret."""
        coded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        self.kube.put(SECRETS, {"metadata": {"name": name, "namespace": "ns"}, "data": coded})

    async def step(self) -> None:
        """Run one pass, after a while."""
        self.at += 100
        _ = await self.controller.reconcile(KEY)

    async def settle(self, words: str = "") -> None:
        """Run passes while sshd's trials end: with success, or with these words of sshd."""
        for _ in range(4):
            await self.step()
            for trial in self.trials():
                state = {"terminated": {"exitCode": 255, "message": words}}
                failed = {"phase": "Failed", "containerStatuses": [{"name": "sshd", "state": state}]}
                self.kube.put(PODS, {**trial, "status": failed if words else {"phase": "Succeeded"}})

    def of(self, plural: str) -> list[Object]:
        """All objects of a kind."""
        return [obj for (kind, _, _), obj in self.kube.objects.items() if kind == plural]

    def trials(self) -> list[Object]:
        """Pods that try configurations."""
        return [one for one in self.of("pods") if "sshd-trial" in one["metadata"]["name"]]

    def child(self, plural: str, name: str = "front-login") -> Object:
        """One object."""
        return self.kube.objects[plural, "ns", name]

    def has(self, plural: str, name: str = "front-login") -> bool:
        """Whether an object exists."""
        return (plural, "ns", name) in self.kube.objects

    @property
    def status(self) -> dict[str, Any]:
        """The status of the LoginSet."""
        found: dict[str, Any] = self.kube.objects["loginsets", *KEY]["status"]
        return found

    def condition(self, kind: str) -> dict[str, Any]:
        """One condition."""
        return next(dict(one) for one in self.status["conditions"] if one["type"] == kind)


def _object(kind: str, name: str, spec: Mapping[str, Any], status: Mapping[str, Any]) -> Object:
    return {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-of-{name}", "generation": 1},
        "spec": dict(spec),
        "status": dict(status),
    }
