"""A Secret is used for an external Slurm only if it names that server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import jwt
import pytest

from slinky_operator.cluster.actions import Connect, Disconnect
from slinky_operator.cluster.secrets import allowlist
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.resources import SECRETS
from slinky_operator.reconcile.secrets import SecretReader, Source
from tests.support.memory_kube import MemoryKube
from tests.unit.cluster.world import World, cluster_object, node_set_object

SERVER = "http://there:6820"
TOKEN = jwt.encode({"sun": "slurm", "iat": 1, "exp": 4_000_000_000}, b"k" * 32)
FOREIGN = jwt.encode({"sub": "system:serviceaccount:here:admin"}, b"k" * 32)


def secret(data: dict[str, bytes], servers: str | None = None) -> Source:
    return Source("mine", 0.0, exists=True, servers=servers, data=data)


@pytest.mark.parametrize(
    "servers",
    [SERVER, f"{SERVER}/", "HTTP://There:6820/a/path", f"http://other:6820,{SERVER}", f" http://other\n{SERVER} "],
)
def test_a_secret_that_names_the_server_is_used(servers: str) -> None:
    assert allowlist.why_not(secret({"any": b"x"}, servers), SERVER, "here", as_token=True) is None
    assert allowlist.why_not(secret({"any": b"x"}, servers), SERVER, "here", as_token=False) is None


@pytest.mark.parametrize(
    "servers",
    [
        "",
        "http://there",
        "https://there:6820",
        "http://there.evil:6820",
        "there:6820",
        "http://[::1",
        "http://x:99999",
        "*",
    ],
)
def test_a_secret_that_names_others_or_none_is_not(servers: str) -> None:
    why = allowlist.why_not(secret({"auth-token": TOKEN.encode()}, servers), SERVER, "here", as_token=True)
    assert why is not None
    assert f"kubectl annotate secret mine --namespace here --overwrite cluster.slinky.slurm.net/server={SERVER}" in why


@pytest.mark.parametrize("token", [TOKEN, f"SLURM_JWT={TOKEN}\n"])
def test_a_token_as_slinky_kept_it_is_used_as_it_is(token: str) -> None:
    found = secret({"auth-token": token.encode()})
    assert allowlist.why_not(found, SERVER, "here", as_token=True) is None
    assert allowlist.why_not(found, SERVER, "here", as_token=False) is not None


@pytest.mark.parametrize(
    "data",
    [
        {"auth-token": b"abc"},
        {"auth-token": FOREIGN.encode()},
        {"auth-token": TOKEN.encode(), "password": b"x"},
        {"token": TOKEN.encode()},
        {"auth-token": b"\xff"},
        {"auth-token": b"e30." * 3},
        {},
    ],
)
def test_anything_else_is_asked_for_its_annotation(data: dict[str, bytes]) -> None:
    why = allowlist.why_not(secret(data), SERVER, "here", as_token=True)
    assert why is not None
    assert why.endswith(f"kubectl annotate secret mine --namespace here cluster.slinky.slurm.net/server={SERVER}")


def test_a_token_that_this_operator_has_made_is_asked_for_its_annotation() -> None:
    made = replace(secret({"auth-token": TOKEN.encode()}), is_of_operator=True)
    why = allowlist.why_not(made, SERVER, "here", as_token=True)
    assert why is not None
    assert "does not say that it is meant for http://there:6820" in why
    assert allowlist.why_not(replace(made, servers=SERVER), SERVER, "here", as_token=True) is None


OWNER = {"kind": "Token", "name": "mine", "uid": "u"}


@pytest.mark.parametrize(
    ("metadata", "of_operator"),
    [
        ({}, False),
        ({"labels": {"app.kubernetes.io/managed-by": "Helm", "team/slinky.slurm.net": "a"}}, False),
        ({"ownerReferences": [{**OWNER, "apiVersion": "apps/v1"}]}, False),
        ({"ownerReferences": [{**OWNER, "apiVersion": "notslinky.slurm.net/v1"}]}, False),
        ({"ownerReferences": [{**OWNER, "apiVersion": "slinky.slurm.net/v1alpha1"}]}, True),
        ({"ownerReferences": [{**OWNER, "apiVersion": "slinky.slurm.net/v1beta1"}]}, True),
        ({"labels": {"token.slinky.slurm.net/uid": "u"}}, True),
        ({"labels": {"slinky.slurm.net/any": "u"}}, True),
        ({"labels": {"app.kubernetes.io/managed-by": "slurm-operator"}}, True),
    ],
)
async def test_secrets_of_the_operator_have_its_owner_or_label(metadata: dict[str, Any], *, of_operator: bool) -> None:
    kube = MemoryKube()
    body = {"metadata": {"name": "mine", "namespace": "here", **metadata}, "data": {}}
    kube.put(SECRETS, body)
    found = await SecretReader(cast("KubeClient", kube)).read("here", ["mine"], older_than=60.0)
    assert found["mine"].is_of_operator is of_operator


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://a", "https://a:443"),
        ("http://A.b./c", "http://a.b:80"),
        ("http://[::1]:6820", "http://[::1]:6820"),
        ("ftp://a", ""),
        ("http://", ""),
        ("http://a:x", ""),
    ],
)
def test_servers_are_compared_by_scheme_host_and_port(url: str, origin: str) -> None:
    assert allowlist.origin(url) == origin


# in a plan

WITH_TOKEN = {"server": SERVER, "token": {"secretRef": "mine"}}
WITH_KEY = {"server": SERVER, "auth": {"jwtKeyRef": {"name": "mine"}}}


@pytest.mark.parametrize(
    ("spec", "data"),
    [
        (WITH_TOKEN, {"auth-token": b"hunter2"}),
        ({"server": SERVER, "token": {"secretRef": {"name": "mine", "key": "password"}}}, {"password": TOKEN.encode()}),
        (WITH_KEY, {"jwt_hs256.key": b"k" * 32}),
    ],
)
def test_nothing_of_a_secret_that_is_not_meant_for_it_is_sent(spec: dict[str, Any], data: dict[str, bytes]) -> None:
    world = World(cluster_object(spec), secrets={"mine": data})
    world.settle()
    assert not any(isinstance(one, Connect) for one in world.log)
    found = world.condition("TokenValid")
    assert (found["status"], found["reason"]) == ("False", "SecretNotAllowed")
    assert (
        "kubectl annotate secret mine --namespace here cluster.slinky.slurm.net/server=http://there:6820"
        in found["message"]
    )

    world.meant_for["mine"] = SERVER
    world.settle()
    assert world.raw["status"]["isReady"] is True


def test_a_secret_that_takes_its_word_back_is_not_used_any_longer() -> None:
    world = World(cluster_object(WITH_TOKEN), secrets={"mine": {"auth-token": b"abc"}}, meant_for={"mine": SERVER})
    world.settle()
    assert world.slurm is not None
    world.meant_for["mine"] = "http://other:6820"
    assert any(isinstance(one, Disconnect) for one in world.settle())


def test_a_key_for_nodes_that_is_not_meant_for_it_is_given_to_no_pod() -> None:
    spec = {**WITH_TOKEN, "auth": {"slurmKeyRef": {"name": "key"}}}
    world = World(cluster_object(spec), secrets={"mine": {"auth-token": TOKEN.encode()}, "key": {"slurm.key": b"x"}})
    world.add(node_set_object("compute"))
    world.settle()
    assert world.raw["status"]["config"]["nodeSets"] == []
    assert world.condition("Degraded")["reason"] == "SecretNotAllowed"
    assert "key of auth/slurm: Secret key does not say" in world.condition("Degraded")["message"]

    world.meant_for["key"] = SERVER
    world.settle()
    assert world.raw["status"]["config"]["nodeSets"] == ["compute"]


def test_the_keys_of_a_cluster_of_ours_need_no_word() -> None:
    world = World(
        cluster_object({"auth": {"jwtKeyRef": {"name": "mine"}}}), secrets={"mine": {"jwt_hs256.key": b"k" * 32}}
    )
    world.settle()
    assert world.raw["status"]["isReady"] is True
