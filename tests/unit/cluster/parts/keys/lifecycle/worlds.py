"""Clusters with keys of each kind, before something happens to them."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.cluster.actions import (
    Action,
    EmitEvent,
    PutKeyBack,
)
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.parts.keys.sets import key_sets
from tests.unit.cluster.world import World, cluster_object, node_set_object, subject

SLURM, JWT, COPY = "slurm-auth-slurm", "slurm-auth-jwt", "slurm-auth-copy"
STAGED = "slurm-auth-accepted"
OF_USERS = {"auth": {"slurmKeyRef": {"name": "mine"}, "jwtKeyRef": {"name": "mine", "key": "jwt.key"}}}


SET = key_sets.of_one("generated", b"k" * 128)
GENERATED = {"slurm.jwks": SET, "slurm.key": b"k" * 128}
both_forms = pytest.mark.parametrize("file", GENERATED)


def generated(file: str) -> World:
    """An idle Cluster with a generated key: a key set, or what an earlier operator has made."""
    world = World()
    if file == "slurm.key":
        world.secrets[SLURM], world.owners[SLURM] = {file: GENERATED[file]}, "cluster-uid"
        world.sealed.add(SLURM)
    world.settle()
    assert world.raw["status"]["isReady"] is True
    assert world.secrets[SLURM] == {file: GENERATED[file]}
    assert (STAGED in world.secrets) is (file == "slurm.jwks")
    if file == "slurm.key":
        del world.raw["status"]["slurmKeyFile"]
    return world


def of_users(**spec: Any) -> World:
    secrets = {"mine": {"slurm.key": b"s" * 64, "jwt.key": b"j" * 32}}
    world = World(cluster_object({**OF_USERS, **spec}), secrets=secrets)
    world.add(node_set_object("compute"))
    world.settle()
    assert world.raw["status"]["isReady"] is True
    return world


def restarted(world: World) -> None:
    """Another operator, which remembers nothing."""
    world.memory, world.slurm = Memory("cluster-uid"), None


def events(done: list[Action]) -> list[tuple[str, str]]:
    told = [one.tell if isinstance(one, PutKeyBack) else one for one in done]
    return [(str(one.type), one.reason) for one in told if isinstance(one, EmitEvent)]


def of(kind: type, done: Any) -> list[Any]:
    return [one for one in map(subject, done) if isinstance(one, kind)]


def mounted(live: dict[str, Any]) -> tuple[str, str]:
    """Secret and file of the key of auth/slurm of a StatefulSet."""
    volumes = live["spec"]["template"]["spec"]["volumes"]
    (source,) = (one["secret"] for one in volumes[1]["projected"]["sources"] if "slurm." in str(one))
    return source["name"], source["items"][0]["path"]
