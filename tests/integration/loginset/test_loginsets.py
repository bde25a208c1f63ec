"""LoginSets on a real API server: its schema, server-side apply of their objects, the scale subresource, the status.

There are no Nodes and no controllers of Kubernetes: what these would write, tests write in their place.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.calls.writing import Propagation
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    CLUSTERS,
    CONFIGMAPS,
    DEPLOYMENTS,
    LOGINSETS,
    NAMESPACES,
    PODDISRUPTIONBUDGETS,
    PODS,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    Resource,
)
from slinky_operator.loginset.controller import LoginSetReconciler
from slinky_operator.loginset.observe import INDEXERS, Caches
from slinky_operator.loginset.plan import Defaults
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.secrets import SecretReader
from tests.support.control_plane import ControlPlane

NAME = "front-login"
KINDS = (DEPLOYMENTS, SERVICES, CONFIGMAPS)


class Events:
    """Keeps reasons of Events."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.told.append(reason)


class Site:
    """The LoginSet controller with caches that are filled right before each pass."""

    def __init__(self, kube: KubeClient, plane: ControlPlane, namespace: str) -> None:
        self.kube, self.plane, self.namespace, self.events = kube, plane, namespace, Events()
        self.now = 0.0

    async def make(self, **spec: Any) -> Object:
        body = {"metadata": {"name": "front"}, "spec": {"clusterName": "slurm", **spec}}
        kind = {"apiVersion": LOGINSETS.api_version, "kind": LOGINSETS.kind}
        return await self.kube.create(LOGINSETS, {**kind, **body}, self.namespace)

    async def step(self) -> None:
        """One pass of a controller that has just started."""
        stores = Caches(
            loginsets=Store(INDEXES_OF_NODESETS),
            clusters=ClusterReader(Store()),
            **{name: Store(INDEXERS) for name in ("pods", "deployments", "services", "config_maps", "budgets")},
        )
        for resource, store in (
            (LOGINSETS, stores.loginsets),
            (CLUSTERS, stores.clusters.store),
            (PODS, stores.pods),
            (DEPLOYMENTS, stores.deployments),
            (SERVICES, stores.services),
            (CONFIGMAPS, stores.config_maps),
            (PODDISRUPTIONBUDGETS, stores.budgets),
        ):
            for obj in (await self.kube.list(resource, self.namespace)).items:
                # Members of a list do not name their kind; caches add it.
                store.put({"apiVersion": resource.api_version, "kind": resource.kind, **obj})
        secrets, defaults = SecretReader(self.kube), Defaults(image="slinky/login:26.05")
        controller = LoginSetReconciler(self.kube, self.events, stores, secrets, defaults)
        _ = await controller.reconcile((self.namespace, "front"))

    async def settle(self, message: str = "") -> None:
        """Passes while trials of sshd end: with success, or with these words."""
        for _ in range(3):
            await self.step()
            for one in (await self.kube.list(PODS, self.namespace)).items:
                state = {"terminated": {"exitCode": 255, "message": message}}
                container = {"name": "sshd", "image": "i", "imageID": "i", "ready": False, "restartCount": 0}
                failed = {"phase": "Failed", "containerStatuses": [{**container, "state": state}]}
                self.say("pod", one["metadata"]["name"], failed if message else {"phase": "Succeeded"})
        await self.step()

    def say(self, kind: str, name: str, status: dict[str, Any]) -> None:
        """Write a status, as somebody else would."""
        patch = f"--patch={json.dumps({'status': status})}"
        self.plane.kubectl(
            "patch", kind, name, f"--namespace={self.namespace}", "--subresource=status", "--type=merge", patch
        )

    async def get(self, resource: Resource, name: str = NAME) -> Object:
        return await self.kube.get(resource, name, self.namespace)

    async def status(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.get(LOGINSETS, "front"))["status"]
        return found

    async def reason(self, condition: str) -> str:
        return str(next(one["reason"] for one in (await self.status())["conditions"] if one["type"] == condition))


@pytest.fixture
async def site(control_plane: ControlPlane) -> AsyncIterator[Site]:
    """A namespace with a Cluster that has its key and its first configuration."""
    async with await Connection.connect(control_plane.kubeconfig) as connection:
        kube = KubeClient(connection, fence=OpenFence(), field_manager="test")
        namespace = f"login-{uuid.uuid4().hex[:8]}"
        await kube.create(NAMESPACES, {"metadata": {"name": namespace}})
        await kube.apply(SERVICEACCOUNTS, {"metadata": {"name": "default", "namespace": namespace}})
        body = {"apiVersion": CLUSTERS.api_version, "kind": "Cluster", "metadata": {"name": "slurm"}, "spec": {}}
        await kube.create(CLUSTERS, body, namespace)
        key = {"slurm.key": base64.b64encode(b"k" * 32).decode()}
        await kube.create(SECRETS, {"metadata": {"name": "slurm-auth-slurm"}, "data": key}, namespace)
        found = Site(kube, control_plane, namespace)
        found.say("clusters.slinky.slurm.net", "slurm", {"config": {"hash": "h", "appliedHash": "h"}})
        yield found


async def test_a_set_gets_its_objects_once_and_owns_them(site: Site) -> None:
    made = await site.make(replicas=2)
    await site.settle()
    found = [await site.get(kind) for kind in KINDS]
    found.append(await site.get(SECRETS, "front-ssh-host-keys"))
    for one in found:
        (owner,) = one["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (made["metadata"]["uid"], True)
    assert found[0]["spec"]["replicas"] == 2
    # The API server has added its defaults: to the controller, the objects are as it wants them.
    await site.step()
    again = [await site.get(kind) for kind in KINDS]
    assert [one["metadata"]["resourceVersion"] for one in again] == [
        one["metadata"]["resourceVersion"] for one in found[:-1]
    ]
    assert (await site.kube.list(PODS, site.namespace)).items == []


async def test_it_is_scaled_by_its_subresource_and_shows_its_pods(site: Site) -> None:
    await site.make()
    await site.settle()
    site.plane.kubectl("scale", "loginset/front", "--replicas=3", f"--namespace={site.namespace}")
    await site.step()
    assert (await site.get(DEPLOYMENTS))["spec"]["replicas"] == 3
    assert await site.reason("Ready") == "PodsNotReady"
    generation = (await site.get(DEPLOYMENTS))["metadata"]["generation"]
    counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas", "availableReplicas"), 3)
    site.say("deployment", NAME, {"observedGeneration": generation, **counts})
    await site.step()
    status = await site.status()
    assert (status["replicas"], status["readyReplicas"], status["summary"]) == (3, 3, "ready")
    assert await site.reason("Ready") == "AsExpected"
    scale = json.loads(
        site.plane.kubectl("get", "loginset", "front", "--subresource=scale", "--output=json", "-n", site.namespace)
    )
    assert scale["status"] == {"replicas": 3, "selector": status["selector"]}


async def test_a_refused_line_is_told_once_and_changes_nothing_that_runs(site: Site) -> None:
    await site.make()
    await site.settle()
    before = await site.get(DEPLOYMENTS), await site.get(CONFIGMAPS)
    await site.kube.merge_patch(LOGINSETS, "front", {"spec": {"extraSshdConfig": "Nonsense yes"}}, site.namespace)
    await site.settle("/etc/slurm-login/config/sshd_config: line 4: Bad configuration option: Nonsense")
    assert await site.reason("SshdConfigApplied") == "SshdConfigRefused"
    assert (await site.get(DEPLOYMENTS), await site.get(CONFIGMAPS)) == before
    assert site.events.told == ["SshdConfigRefused"]


async def test_an_object_of_somebody_else_stays_and_is_named(site: Site) -> None:
    port = {"name": "web", "port": 80}
    own = {"metadata": {"name": NAME}, "spec": {"selector": {"app": "web"}, "ports": [port]}}
    before = await site.kube.create(SERVICES, own, site.namespace)
    await site.make()
    await site.settle()
    assert (await site.get(SERVICES))["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert await site.reason("Degraded") == "NameConflict"
    with pytest.raises(errors.NotFound):
        await site.get(DEPLOYMENTS)


async def test_a_set_of_the_same_name_adopts_what_the_former_one_has_left(site: Site) -> None:
    await site.make()
    await site.settle()
    keys = await site.get(SECRETS, "front-ssh-host-keys")
    await site.kube.delete(LOGINSETS, "front", site.namespace, uid=None, propagation=Propagation.BACKGROUND)
    # No garbage collector has come by yet.
    after = await site.make()
    await site.settle()
    for kind in KINDS:
        owners = (await site.get(kind))["metadata"]["ownerReferences"]
        assert [one["uid"] for one in owners] == [after["metadata"]["uid"]]
    assert (await site.get(SECRETS, "front-ssh-host-keys"))["data"] == keys["data"]


async def test_nothing_is_written_for_a_set_that_is_being_deleted(site: Site) -> None:
    await site.make()
    await site.settle()
    before = await site.get(DEPLOYMENTS)
    await site.kube.delete(LOGINSETS, "front", site.namespace, uid=None, propagation=Propagation.FOREGROUND)
    loginset = await site.get(LOGINSETS, "front")
    assert loginset["metadata"]["deletionTimestamp"]
    await site.kube.merge_patch(LOGINSETS, "front", {"spec": {"replicas": 5}}, site.namespace)
    await site.step()
    assert await site.get(DEPLOYMENTS) == before


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"replicas": -1}, "spec.replicas"),
        ({"sessionGracePeriod": "25h"}, "spec.sessionGracePeriod"),
        ({"authorizedKeysRef": {"name": "A b"}}, "spec.authorizedKeysRef.name"),
        ({"clusterName": "../x"}, "spec.clusterName"),
        ({"extraSshdConfig": "a\x00"}, "spec.extraSshdConfig"),
        ({"rootSshAuthorizedKeys": "k" * 65537}, "spec.rootSshAuthorizedKeys"),
    ],
)
async def test_nonsense_is_refused_at_once(site: Site, spec: dict[str, Any], field: str) -> None:
    with pytest.raises(errors.Invalid) as caught:
        await site.make(**spec)
    assert field in {cause.field for cause in caught.value.causes}


async def test_its_cluster_stays(site: Site) -> None:
    await site.make()
    with pytest.raises(errors.Invalid, match="immutable"):
        await site.kube.merge_patch(LOGINSETS, "front", {"spec": {"clusterName": "other"}}, site.namespace)
