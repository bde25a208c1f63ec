"""Tokens on a real API server: what its schema refuses, and that no write reaches a Secret of somebody else."""

from __future__ import annotations

import base64
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NAMESPACES, SECRETS, TOKENS
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.slurm.tokens.signing_keys import SigningKey
from slinky_operator.token import jwts
from slinky_operator.token.controller import TokenReconciler
from slinky_operator.token.observation import INDEXES_OF_TOKENS
from tests.support.control_plane import ControlPlane

KEY = b"k" * 32


class Events:
    """Keeps reasons of Events."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.told.append(reason)


class Tokens:
    """The Token controller with caches that are filled right before each pass."""

    def __init__(self, kube: KubeClient, namespace: str) -> None:
        self.kube, self.namespace, self.events = kube, namespace, Events()
        self.tokens, self.clusters = Store(INDEXES_OF_TOKENS), Store()
        clusters = ClusterReader(self.clusters)
        self.reconciler = TokenReconciler(kube, SecretReader(kube), self.events, self.tokens, clusters)

    async def make(self, name: str, **spec: Any) -> Object:
        body = {"metadata": {"name": name}, "spec": {"clusterRef": {"name": "slurm"}, **spec}}
        return await self.kube.create(TOKENS, {**self._kind, **body}, self.namespace)

    async def step(self, name: str) -> None:
        for resource, store in ((TOKENS, self.tokens), (CLUSTERS, self.clusters)):
            for obj in (await self.kube.list(resource, self.namespace)).items:
                store.put(obj)
        await self.reconciler.reconcile((self.namespace, name))

    async def ready(self, name: str) -> str:
        """Reason of the condition."""
        conditions = (await self.kube.get(TOKENS, name, self.namespace))["status"]["conditions"]
        return str(next(one["reason"] for one in conditions if one["type"] == "Ready"))

    async def secret(self, name: str) -> Object:
        return await self.kube.get(SECRETS, name, self.namespace)

    async def value(self, name: str) -> bytes:
        return base64.b64decode(((await self.secret(name)).get("data") or {}).get("auth-token") or "")

    @property
    def _kind(self) -> Object:
        return {"apiVersion": TOKENS.api_version, "kind": TOKENS.kind}


@pytest.fixture
async def tokens(control_plane: ControlPlane) -> AsyncIterator[Tokens]:
    """A namespace with a Cluster and the copy of its keys."""
    async with await Connection.connect(control_plane.kubeconfig) as connection:
        kube = KubeClient(connection, fence=OpenFence(), field_manager="test")
        namespace = f"token-{uuid.uuid4().hex[:8]}"
        await kube.create(NAMESPACES, {"metadata": {"name": namespace}})
        body = {"apiVersion": CLUSTERS.api_version, "kind": "Cluster", "metadata": {"name": "slurm"}, "spec": {}}
        cluster = await kube.create(CLUSTERS, body, namespace)
        own = {labels.LABEL_CLUSTER_UID: cluster["metadata"]["uid"]}
        data = {"jwt.key": base64.b64encode(KEY).decode()}
        copy = {"metadata": {"name": "slurm-auth-copy", "labels": own}, "data": data}
        await kube.create(SECRETS, copy, namespace)
        yield Tokens(kube, namespace)


async def test_a_token_is_made_restored_and_taken_away(tokens: Tokens) -> None:
    await tokens.make("portal")
    await tokens.step("portal")
    claims = jwts.read(await tokens.value("portal"), SigningKey(KEY))
    assert claims is not None
    assert claims.username == "nobody"
    assert await tokens.ready("portal") == "AsExpected"

    await tokens.kube.delete(SECRETS, "portal", tokens.namespace, uid=None)
    await tokens.step("portal")
    assert jwts.read(await tokens.value("portal"), SigningKey(KEY)) is not None

    none = {"spec": {"auth": {"tokens": [{"usernames": ["alice"]}]}}}
    await tokens.kube.merge_patch(CLUSTERS, "slurm", none, tokens.namespace)
    await tokens.step("portal")
    assert await tokens.value("portal") == b""
    assert await tokens.ready("portal") == "NotGranted"
    assert tokens.events.told == ["NotGranted"]


async def test_a_secret_of_a_user_is_not_touched(tokens: Tokens) -> None:
    password = {"metadata": {"name": "portal"}, "data": {"auth-token": "cGFzc3dvcmQ="}}
    before = await tokens.kube.create(SECRETS, password, tokens.namespace)
    await tokens.make("portal")
    await tokens.step("portal")
    assert await tokens.secret("portal") == before
    assert await tokens.ready("portal") == "SecretNotOwned"


@pytest.mark.parametrize("write", ["merge_patch", "delete"])
async def test_a_secret_that_was_replaced_meanwhile_is_not_touched(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    await tokens.make("portal")
    await tokens.step("portal")
    if write == "delete":
        await tokens.kube.merge_patch(SECRETS, "portal", {"immutable": True}, tokens.namespace)
    none = {"spec": {"auth": {"tokens": [{"usernames": ["alice"]}]}}}
    await tokens.kube.merge_patch(CLUSTERS, "slurm", none, tokens.namespace)
    send: Callable[..., Any] = getattr(tokens.kube, write)

    async def replaced_first(*arguments: Any, **options: Any) -> Object:
        monkeypatch.undo()
        await tokens.kube.delete(SECRETS, "portal", tokens.namespace, uid=None)
        password = {"metadata": {"name": "portal"}, "data": {"auth-token": "cGFzc3dvcmQ="}}
        await tokens.kube.create(SECRETS, password, tokens.namespace)
        answer: Object = await send(*arguments, **options)
        return answer

    monkeypatch.setattr(tokens.kube, write, replaced_first)
    await tokens.step("portal")
    assert await tokens.value("portal") == b"password"
    await tokens.step("portal")
    assert await tokens.value("portal") == b"password"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"username": "0"}, "spec.username"),
        ({"username": "0x0"}, "spec.username"),
        ({"username": "a\nb"}, "spec.username"),
        ({"username": "a" * 65}, "spec.username"),
        ({"lifetime": "29s"}, "spec.lifetime"),
        ({"lifetime": "87601h"}, "spec.lifetime"),
        ({"secretRef": {"name": "A"}}, "spec.secretRef.name"),
        ({"clusterRef": {"name": "slurm", "namespace": "../x"}}, "spec.clusterRef.namespace"),
    ],
)
async def test_nonsense_is_refused_at_once(tokens: Tokens, spec: dict[str, Any], field: str) -> None:
    with pytest.raises(errors.Invalid) as caught:
        await tokens.make("portal", **spec)
    assert field in {cause.field for cause in caught.value.causes}


@pytest.mark.parametrize(
    "change", [{"clusterRef": {"name": "other"}}, {"secretRef": {"name": "other"}}, {"secretRef": None}]
)
async def test_cluster_and_secret_stay(tokens: Tokens, change: dict[str, Any]) -> None:
    await tokens.make("portal", secretRef={"name": "mine"})
    with pytest.raises(errors.Invalid, match="immutable"):
        await tokens.kube.merge_patch(TOKENS, "portal", {"spec": change}, tokens.namespace)


@pytest.mark.parametrize("pattern", ["**", "a*b", " ", "a\nb"])
async def test_patterns_of_users_are_checked_at_once(tokens: Tokens, pattern: str) -> None:
    grant = {"spec": {"auth": {"tokens": [{"usernames": [pattern]}]}}}
    with pytest.raises(errors.Invalid, match="usernames"):
        await tokens.kube.merge_patch(CLUSTERS, "slurm", grant, tokens.namespace)
