"""For a Slurm that runs elsewhere each field of a Cluster acts, is refused, or is named by the condition `Degraded`.

`tests/unit/test_every_field_acts.py` takes a Secret that is read, or a connection that is made again, for an effect.
Here only this counts: what is sent to that Slurm, what is written to Kubernetes, and what is in pods of NodeSets.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import Action, Connect, EmitEvent
from slinky_operator.cluster.status.not_supported import NOT_SUPPORTED, not_supported
from tests.unit.api.test_models import certificate
from tests.unit.cluster.world import World, cluster_object, node_set_object
from tests.unit.test_every_field_acts import GRANTS, LEAVES, SECRETS, Leaf, plain, slurmd_pod

KEY = {"name": "key", "key": "file"}
EXPORTER = {"exporter": {"enabled": True, "tokenRef": KEY, "serviceMonitor": {"enabled": True}}}
NODES: dict[str, Any] = {"auth": {"slurmKeyRef": KEY}, "controller": {"external": {"host": "there"}}}
TOKEN: dict[str, Any] = {"token": {"secretRef": KEY}}
SIGNED: dict[str, Any] = {**NODES, "auth": {**NODES["auth"], "jwtKeyRef": KEY}}
TLS: dict[str, Any] = {"server": "https://there:6820", "caBundle": certificate(), "metrics": EXPORTER}
PLACES: Mapping[str, dict[str, Any]] = {
    "token": {"server": "http://there:6820", **TOKEN, **NODES, "metrics": EXPORTER},
    "key": {"server": "http://there:6820", **SIGNED, "metrics": EXPORTER},
    "token, TLS": {**TOKEN, **NODES, **TLS},
    "key, TLS": {**SIGNED, **TLS},
}
"""Clusters elsewhere with all that they may have."""

WAYS, HOSTS = ("http", "https"), ("there", "elsewhere")
"""Servers that the Secrets are meant for."""

PASSES = 6
"""After which everything has been written."""


def changed(place: str, path: str) -> dict[str, Any]:
    """The Cluster of a place with another value in a field."""
    base = PLACES[place]
    if path in GRANTS:
        return {**base, "auth": {**base["auth"], "tokens": [{path.rpartition(".")[2]: GRANTS[path]}]}}
    spec = Leaf(path).changed_in(base)
    return {**spec, "server": base["server"].replace("there", "elsewhere")} if path == "server" else spec


def told(action: Action, *, https: bool) -> object:
    """An action; of a connection only what reaches the server."""
    if not isinstance(action, Connect):
        return action
    lifetime = action.lifetime if action.keys else None
    endpoint = action.endpoint if https else replace(action.endpoint, ca_pem=None)
    return (endpoint, action.token, action.keys, str(lifetime))


@cache
def effect_of(text: str) -> str:
    """Whether the Cluster serves, and what comes of it, but for what is said of it."""
    raw = cluster_object(json.loads(text))
    https = raw["spec"]["server"].startswith("https:")
    servers = dict.fromkeys(SECRETS, " ".join(f"{way}://{host}:6820" for way in WAYS for host in HOSTS))
    world = World(raw, secrets=copy.deepcopy(SECRETS), meant_for=servers)
    world.add(node_set_object("compute"))
    log: list[object] = []
    for _ in range(PASSES):
        world.log = []
        world.step()
        log += [told(action, https=https) for action in world.log if not isinstance(action, EmitEvent)]
    serves = world.condition("Ready")["status"]
    return json.dumps(plain([serves, log, slurmd_pod(Cluster.parse(world.raw))]), sort_keys=True)


def effect(spec: Mapping[str, Any]) -> str:
    return effect_of(json.dumps(spec, sort_keys=True))


def is_valid(spec: Mapping[str, Any]) -> bool:
    """Whether the API takes it."""
    try:
        _ = Cluster.parse(cluster_object(spec))
    except InvalidObjectError:
        return False
    return True


def named(spec: Mapping[str, Any]) -> list[str]:
    """Fields that are said to have no effect."""
    said = not_supported(Cluster.parse(cluster_object(spec)).spec)
    return [field for field in NOT_SUPPORTED if f"spec.{field} (" in said]


def of_field(path: str, field: str) -> bool:
    """Whether a leaf is a field or in it."""
    return path == field or path.startswith((f"{field}.", f"{field}[]"))


@pytest.mark.parametrize("place", PLACES)
def test_the_places_serve_and_have_nothing_in_vain(place: str) -> None:
    assert named(PLACES[place]) == []
    assert json.loads(effect(PLACES[place]))[0] == "True"


@pytest.mark.parametrize(("place", "path"), [(place, path) for place in PLACES for path in LEAVES])
def test_a_field_acts_or_is_refused_or_is_named(place: str, path: str) -> None:
    spec = changed(place, path)
    if is_valid(spec) and not any(of_field(path, field) for field in named(spec)):
        assert effect(spec) != effect(PLACES[place])


@pytest.mark.parametrize("field", NOT_SUPPORTED)
def test_a_field_that_is_named_has_no_effect(field: str) -> None:
    paths = [path for path in LEAVES if of_field(path, field)]
    tried = [(place, changed(place, path)) for place in PLACES for path in paths]
    in_vain = [(place, spec) for place, spec in tried if is_valid(spec) and field in named(spec)]
    assert in_vain
    for place, spec in in_vain:
        assert effect(spec) == effect(PLACES[place])
