"""Secrets with keys are read again right before slurmctld reads them, and never shown."""

from __future__ import annotations

import base64
import json

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster import adoption
from slinky_operator.cluster.actions import (
    Action,
    ReadKeys,
    Reload,
    ReplacePod,
)
from slinky_operator.cluster.memory.writes import Denied
from slinky_operator.kube.resources import SECRETS
from tests.unit.cluster.parts.keys.lifecycle.worlds import COPY, generated, of, of_users
from tests.unit.cluster.rollout_stories import settled, until
from tests.unit.cluster.world import World, cluster_object, node_set_object


def test_secrets_are_read_again_right_before_slurmctld_reads_its_keys() -> None:
    world = settled()
    world.add(node_set_object("compute"))
    done: list[Action] = []
    for _ in range(30):
        if not world.read_before and not done:
            world.read_before = 30.0
        made = world.plan()
        if of(ReadKeys, made.actions):
            assert not of(Reload, made.actions)
            break
        done += world.step().actions
        world.read_before = 30.0
    assert of(ReadKeys, world.plan().actions)
    assert not of(Reload, done)
    world.settle()
    assert world.raw["status"]["config"]["nodeSets"] == ["compute"]


def test_secrets_that_take_long_to_read_are_read_once_for_each_purpose() -> None:
    world = settled()
    world.add(node_set_object("compute"))
    world.read_before = 30.0
    found = until(world, ReadKeys)
    # Each is some seconds old when the others have been read.
    world.memory.keys.asked, world.read_before = (found.purpose, world.now - 9.0), 8.0
    assert not of(ReadKeys, world.plan().actions)
    assert of(Reload, world.plan().actions)
    world.memory.keys.asked = "another", world.now - 9.0
    assert of(ReadKeys, world.plan().actions)
    assert not of(Reload, world.plan().actions)


def test_a_pod_that_waits_is_not_replaced_while_its_keys_are_not_there() -> None:
    world = of_users()
    del world.secrets["mine"]
    assert world.controller_pod is not None
    waiting = {"name": "slurmctld", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    world.controller_pod["status"]["containerStatuses"] = [waiting]
    world.raw["spec"]["extraConf"] = "KillWait=7"
    done: list[Action] = []
    for _ in range(20):
        done += world.step().actions
    assert not of(ReplacePod, done)


def test_no_key_is_ever_in_what_is_told_or_printed() -> None:
    world = of_users()
    world.secrets["mine"] = {"slurm.key": b"geheim-1" * 8, "jwt.key": b"geheim-2" * 8}
    world.pods = ["compute-0"]
    world.settle(60)
    world.secrets.pop("mine")
    world.settle(60)
    texts = [repr(one) for one in world.log] + [repr(world.memory), repr(world.snapshot()), repr(world.raw)]
    assert not any("geheim" in text or "Z2VoZWlt" in text for text in texts)


def test_a_secret_of_the_users_with_our_label_stays_when_the_cluster_goes() -> None:
    world = of_users()
    world.owners["mine"] = "cluster-uid"
    world.raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    (gone,) = world.plan().actions
    names = {name for _, name, _ in gone.children}  # type: ignore[union-attr]
    assert COPY in names
    assert "mine" not in names


def test_a_key_set_that_signs_with_a_key_nobody_has_is_not_used_and_says_the_order() -> None:
    def key_set(*keys: dict[str, str]) -> bytes:
        return json.dumps({"keys": [{"kty": "oct", "alg": "HS256", **one} for one in keys]}).encode()

    a, b = ({"kid": name, "k": base64.b64encode(name.encode() * 32).decode()} for name in "ab")
    ref = {"auth": {"slurmKeyRef": {"name": "mine", "key": "slurm.jwks"}}}
    world = World(cluster_object(ref), secrets={"mine": {"slurm.jwks": key_set(a)}})
    world.add(node_set_object("compute"))
    world.settle()
    world.pods = ["compute-0"]

    world.secrets["mine"] = {"slurm.jwks": key_set(a, {**b, "use": "default"})}
    world.settle()
    degraded = world.condition("Degraded")
    assert degraded["reason"] == "KeyChanged"
    assert "Its default key b is not in the set that they have: first add it" in degraded["message"]
    assert world.secrets[COPY]["slurm.key"] == key_set(a)

    for one in (key_set(a, b), key_set(a, {**b, "use": "default"})):
        world.secrets["mine"] = {"slurm.jwks": one}
        world.settle()
        assert world.condition("Degraded")["status"] == "False"
        assert world.secrets[COPY]["slurm.key"] == one


def test_a_copy_that_is_assigned_again_is_not_named_any_longer() -> None:
    world = generated("slurm.jwks")
    cluster = Cluster.parse(world.raw)
    world.memory.writes.denied["Secret", COPY] = Denied("", adoption.not_ours(SECRETS, COPY, cluster), world.now)
    del world.owners[COPY]
    world.now += 120
    _ = world.step()
    assert f"Secret {COPY}: one exists already" in world.condition("Degraded")["message"]
    world.owners[COPY] = "cluster-uid"
    _ = world.step()
    assert world.condition("Degraded")["status"] == "False"
    world.memory.writes.denied["Secret", COPY] = Denied("", "refused by a quota", world.now)
    _ = world.step()
    assert f"Secret {COPY}: refused by a quota" in world.condition("Degraded")["message"]
