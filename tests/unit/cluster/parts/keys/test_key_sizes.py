"""A key that Slurm cannot use safely is refused before a daemon reads it; one that daemons run with is reported."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from slinky_operator.cluster.actions import Action, Reload, ReplacePod, Write
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.parts.keys.sets import key_sizes
from slinky_operator.slurm import naming
from slinky_operator.slurm.naming import KeySource
from tests.unit.cluster.world import World, cluster_object, node_set_object

COPY = "slurm-auth-copy"
SPEC = {"auth": {"slurmKeyRef": {"name": "mine"}, "jwtKeyRef": {"name": "mine", "key": "jwt.key"}}}
GOOD = {"slurm.key": b"s" * 64, "jwt.key": b"j" * 32}


def source(file: str, *, generated: bool = False) -> KeySource:
    return KeySource("mine", file, file, generated=generated)


@pytest.mark.parametrize(
    ("file", "size", "bounds"),
    [
        (naming.SLURM_KEY, 8, "spec.auth.slurmKeyRef: slurm.key of Secret mine has 8 bytes, and must have 16 to 16384"),
        (naming.SLURM_KEY, 15, "15 bytes"),
        (naming.SLURM_KEY, 16, ""),
        (naming.SLURM_KEY, 16_384, ""),
        (naming.SLURM_KEY, 16_385, "16385 bytes"),
        (naming.JWT_KEY, 31, "spec.auth.jwtKeyRef: jwt.key of Secret mine has 31 bytes, and must have 32 to 16384"),
        (naming.JWT_KEY, 32, ""),
        (naming.JWT_KEY, 1_000_000, "1000000 bytes"),
    ],
)
def test_bounds_of_a_key(file: str, size: int, bounds: str) -> None:
    found = key_sizes.why_not(source(file), b"k" * size)
    assert found.endswith(bounds) if bounds.startswith("spec") else bounds in found
    assert bool(found) == bool(bounds)
    assert not key_sizes.why_not(source(file, generated=True), b"k" * size)


def key(name: str, **fields: Any) -> dict[str, Any]:
    return {"kid": name, "kty": "oct", "alg": "HS256", "k": base64.b64encode(b"k" * 32).decode(), **fields}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ([key("a"), key("b", use="default", exp=1)], ""),
        ([key("a", k=base64.urlsafe_b64encode(b"\xff" * 16).decode().rstrip("="))], ""),
        ([key("a", k=base64.b64encode(b"k" * 15).decode())], "has a key a that has 15 bytes, and must have 16 to"),
        ([key("a", k="%%%%")], "has a key a whose k is no base64"),
        ([key("a", k="A")], "has a key a whose k is no base64"),
        ([key("a", k=5)], "has a key a whose k is no base64"),
        ([key("a", kty="RSA")], 'has a key a that is not "kty": "oct" with "alg": "HS256"'),
        ([key("a", alg=None)], 'has a key a that is not "kty": "oct" with "alg": "HS256"'),
        ([key("a", exp=[])], "has a key a whose exp is not a number"),
        ([key("a"), {"k": "a"}], "has no id (kid) in keys[1]"),
        ([key("a"), key("a")], "has two keys with the id a"),
        ([key("a", use="default"), key("b", use="Default")], "has more than one default key"),
        ([key(f"k{index}") for index in range(17)], "has 17 keys, and a key set may have 16"),
        ([], 'is not a key set: {"keys": [...]} with one key or more'),
        ([1], 'is not a key set: {"keys": [...]} with one key or more'),
    ],
)
def test_a_key_set_that_would_end_a_daemon(keys: list[Any], words: str) -> None:
    found = key_sizes.why_not(source(naming.SLURM_JWKS), json.dumps({"keys": keys}).encode())
    assert found.startswith(f"spec.auth.slurmKeyRef: slurm.jwks of Secret mine {words}" if words else "")
    assert bool(found) == bool(words)


@pytest.mark.parametrize("text", [b"{", b"[" * 60_000, b"[]", b"\xff\xfe", b" " * 70_000 + b"{}"])
def test_a_key_set_that_is_none(text: bytes) -> None:
    assert key_sizes.why_not(source(naming.SLURM_JWKS), text)


def world(secret: dict[str, bytes]) -> World:
    made = World(cluster_object(SPEC), secrets={"mine": secret})
    made.add(node_set_object("compute"))
    made.settle()
    return made


def restarts(done: list[Action]) -> list[Action]:
    """What lets slurmctld read its keys."""
    return [
        one
        for one in done
        if isinstance(one, Reload | ReplacePod) or (isinstance(one, Write) and one.child.resource.kind == "StatefulSet")
    ]


@pytest.mark.parametrize("bad", ["slurm.key", "jwt.key"])
def test_a_new_cluster_starts_nothing_with_such_a_key_and_starts_once_it_is_mended(bad: str) -> None:
    made = world({**GOOD, bad: b"too"})
    assert not [name for kind, name in made.children if kind == "StatefulSet"]
    degraded = made.condition("Degraded")
    assert degraded["reason"] == "SecretInvalid"
    assert f"{bad} of Secret mine has 3 bytes, and must have" in degraded["message"]
    assert "no daemon is started with it. Make one with head -c" in degraded["message"]
    # Another operator finds the same.
    made.memory, made.slurm = Memory("cluster-uid"), None
    made.settle()
    assert made.condition("Degraded")["reason"] == "SecretInvalid"
    assert made.secrets.get(COPY, {}).get(bad) is None
    made.secrets["mine"] = dict(GOOD)
    made.settle()
    assert made.raw["status"]["isReady"] is True
    assert made.condition("Degraded")["status"] == "False"
    assert made.secrets[COPY] == GOOD


@pytest.mark.parametrize("bad", ["slurm.key", "jwt.key"])
def test_running_daemons_are_not_made_to_read_such_a_key(bad: str) -> None:
    made = world(GOOD)
    assert made.raw["status"]["isReady"] is True
    made.pods, made.accepts = ["compute-0"], GOOD["jwt.key"]
    made.secrets["mine"] = {**GOOD, bad: b"too"}
    made.raw["spec"] = {**SPEC, "extraConf": "MaxJobCount=77"}
    made.raw["metadata"]["generation"] = 2
    done = [action for _ in range(60) for action in made.step().actions]
    assert not restarts(done)
    assert made.secrets[COPY] == GOOD
    degraded = made.condition("Degraded")
    assert degraded["reason"] == "SecretInvalid"
    assert f"{bad} of Secret mine has 3 bytes, and must have" in degraded["message"]
    assert f"Put the earlier one back, which is {bad} of Secret {COPY}" in degraded["message"]
    made.secrets["mine"] = dict(GOOD)
    made.settle()
    assert made.condition("Degraded")["status"] == "False"
    assert made.condition("ConfigApplied")["status"] == "True"


@pytest.mark.parametrize("bad", ["slurm.key", "jwt.key"])
@pytest.mark.parametrize("copy", [True, False], ids=["copy", "copy-lost"])
def test_a_site_that_has_run_with_such_a_key_goes_on_and_is_told(bad: str, copy: bool) -> None:
    made = world(GOOD)
    weak = {**GOOD, bad: b"weak"}
    made.secrets["mine"] = dict(weak)
    made.secrets[COPY] = dict(weak)
    del made.secrets["slurm-auth-accepted"]
    if not copy:
        del made.secrets[COPY]
    # Another operator, for which this key is the one that it finds.
    made.memory, made.slurm = Memory("cluster-uid"), None
    made.raw["spec"] = {**SPEC, "extraConf": "MaxJobCount=77"}
    made.raw["metadata"]["generation"] = 2
    made.settle()
    assert made.raw["status"]["isReady"] is True
    assert made.condition("ConfigApplied")["status"] == "True"
    degraded = made.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "SecretInvalid")
    assert f"{bad} of Secret mine has 4 bytes, and must have" in degraded["message"]
    assert "The daemons run with it, and go on. Give another one" in degraded["message"]
    assert made.secrets[COPY] == weak


def test_a_slurmctld_that_has_read_such_a_key_by_itself_is_still_reached() -> None:
    made = world(GOOD)
    made.secrets["mine"] = {**GOOD, "jwt.key": b"weak"}
    made.accepts = b"weak"
    for _ in range(60):
        made.step()
    assert made.secrets[COPY]["jwt.key"] == b"weak"
    assert made.raw["status"]["isReady"] is True
    assert made.condition("Degraded")["reason"] == "SecretInvalid"
