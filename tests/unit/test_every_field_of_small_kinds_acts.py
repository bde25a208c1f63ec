"""No field of a LoginSet or a Token is accepted and then has no effect, as for Clusters (`test_every_field_acts`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from slinky_api.v1alpha1.loginset import LoginSetSpec
from slinky_api.v1alpha1.token import TokenSpec
from tests.unit.loginset import builders as loginsets
from tests.unit.test_every_field_acts import plain, written
from tests.unit.test_every_field_counts import fields_of
from tests.unit.token.worlds import TokenWorld

OTHER = {"changed": "yes"}
LOGINSET: Mapping[str, Any] = {
    "image": "changed:1",
    "resources.requests": {"cpu": "11m"},
    "resources.limits": {"cpu": "3"},
    "template": {"metadata": {"annotations": OTHER}},
    "service.labels": OTHER,
    "service.annotations": OTHER,
    "service.spec": {"type": "NodePort"},
    "rootSshAuthorizedKeys": "ssh-ed25519 changed",
    "authorizedKeysRef.name": "changed",
    "extraSshdConfig": "PasswordAuthentication no",
    "sshHostKeysRef.name": "changed",
    "sessionGracePeriod": "1h",
    "clusterName": "changed",
    "replicas": 3,
}
TOKEN: Mapping[str, Any] = {
    "clusterRef.name": "changed",
    "clusterRef.namespace": "changed",
    "username": "bob",
    "lifetime": "1h",
    "refresh": False,
    "secretRef.name": "changed",
    "secretRef.key": "changed",
}


def nested(path: str, value: Any) -> dict[str, Any]:
    """A spec with one field."""
    *parents, last = path.split(".")
    spec: dict[str, Any] = {last: value}
    for parent in reversed(parents):
        spec = {parent: spec}
    return spec


def of_loginset(spec: Mapping[str, Any]) -> str:
    """What comes of a LoginSet: all objects but itself, and its status."""
    world = loginsets.World(**spec)
    with asyncio.Runner() as runner:
        runner.run(world.settle())
    objects = {str(key): obj for key, obj in world.kube.objects.items() if key[0] != "loginsets"}
    return json.dumps(plain([objects, world.status, world.events.told]), sort_keys=True)


def of_token(spec: Mapping[str, Any]) -> str:
    """What comes of a Token in the first ten minutes: the Secrets of its namespace, and its status."""
    world = TokenWorld()
    world.cluster(auth={"tokens": [{"namespaces": ["lab", "ns"], "usernames": ["alice", "bob"], "maxLifetime": "2h"}]})
    first: dict[str, Any] = {"username": "alice", "lifetime": "5m"}
    reference = {"name": "slurm", "namespace": "ns", **spec.get("clusterRef", {})}
    secret = {"name": "secret", **spec.get("secretRef", {})}
    world.token("a", "lab", **{**first, **spec, "clusterRef": reference, "secretRef": secret})
    asyncio.run(world.step("a", "lab"))
    asyncio.run(world.later("a", "lab", minutes=4))
    asyncio.run(world.later("a", "lab", minutes=6))
    objects = {str(key): obj for key, obj in world.kube.objects.items() if key[0] == "secrets"}
    return json.dumps(plain([objects, world.status("a", "lab"), world.events.told]), sort_keys=True)


def test_every_field_is_tried() -> None:
    for kind, table in ((LoginSetSpec, LOGINSET), (TokenSpec, TOKEN)):
        assert {written(path) for path, _, _ in fields_of(kind)} == set(table)


@pytest.mark.parametrize("path", LOGINSET)
def test_a_field_of_a_loginset_that_is_changed_changes_what_the_operator_does(path: str) -> None:
    assert of_loginset({}) == of_loginset({})
    assert of_loginset(nested(path, LOGINSET[path])) != of_loginset({})


@pytest.mark.parametrize("path", TOKEN)
def test_a_field_of_a_token_that_is_changed_changes_what_the_operator_does(path: str) -> None:
    assert of_token({}) == of_token({})
    assert of_token(nested(path, TOKEN[path])) != of_token({})
