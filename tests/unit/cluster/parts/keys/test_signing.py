"""A private key of tokens is added, switched to, and dropped; what is wrong with it stops nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

from slinky_operator.cluster.actions import Connect, KeepKeys, Reload, Write
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.parts.accounting import stored as accounting
from slinky_operator.cluster.parts.accounting.mariadb import ANNOTATION_MOUNTS
from slinky_operator.cluster.parts.keys import signing
from slinky_operator.slurm.conf.sources.gather import TextSource
from slinky_operator.slurm.conf.syntax.parsed import parse
from slinky_operator.slurm.tokens import key_set, signing_keys
from slinky_operator.slurm.tokens.signing_keys import SigningKey
from tests.support.rsa_keys import rsa_key
from tests.unit.cluster.world import WALL, World, cluster_object, node_set_object

COPY, PEM = "slurm-auth-copy", "signing.pem"
REF = {"auth": {"signingKeyRef": {"name": "site"}}}


def kid(name: str) -> str:
    return signing_keys.private(rsa_key(name)).key_id


def shown(world: World) -> list[str]:
    """Ids of the keys that slurmctld has."""
    data = world.children["ConfigMap", "slurm-config"]["data"]
    return [one["kid"] for one in json.loads(data[key_set.FILE])["keys"]] if key_set.FILE in data else []


def in_use(world: World) -> Any:
    return world.raw["status"].get("signingKeyId")


def with_key(name: str = "a", **spec: Any) -> World:
    world = World(cluster_object({**REF, **spec}), secrets={"site": {PEM: rsa_key(name)}})
    world.add(node_set_object("compute"))
    world.settle()
    assert world.raw["status"]["isReady"] is True
    assert in_use(world) == kid(name)
    return world


def test_a_key_is_used_once_slurmctld_has_its_public_half() -> None:
    world = World(cluster_object())
    world.settle()
    assert "jwks=" not in world.slurm_conf
    world.secrets["site"] = {PEM: rsa_key("a")}
    world.raw["spec"] = REF
    log: list[Any] = []
    for _ in range(30):
        made = world.step()
        log += made.actions
        if any(isinstance(one, Write) and one.child.name == "slurm-config" for one in made.actions):
            assert world.condition("Progressing")["reason"] == "KeyPending"
        if not made.actions:
            break
    order = [
        type(one).__name__
        for one in log
        if isinstance(one, Reload | KeepKeys | Connect) or (isinstance(one, Write) and one.child.name == "slurm-config")
    ]
    assert order == ["Write", "Reload", "KeepKeys", "Connect"]
    assert parse(world.slurm_conf).value("AuthAltParameters") == (
        "jwt_key=/etc/slurm-keys/jwt.key,jwks=/etc/slurm/jwt.jwks"
    )
    assert (shown(world), in_use(world)) == ([kid("a")], kid("a"))
    (connect,) = [one for one in log if isinstance(one, Connect)]
    assert connect.keys == (signing_keys.private(rsa_key("a")), SigningKey(b"k" * 32))
    assert rsa_key("a").decode().splitlines()[5] not in repr(log)


def test_another_key_is_added_switched_to_and_the_earlier_one_dropped_when_its_tokens_have_ended() -> None:
    world = with_key("a")
    world.secrets["site"] = {PEM: rsa_key("b")}
    sets = []
    for _ in range(30):
        made = world.step()
        sets.append((frozenset(shown(world)), in_use(world)))
        if not made.actions:
            break
    both = frozenset({kid("a"), kid("b")})
    assert list(dict.fromkeys(sets)) == [
        (frozenset({kid("a")}), kid("a")),
        (both, kid("a")),
        (both, kid("b")),
    ]
    assert world.secrets[COPY][PEM] == rsa_key("b")
    snapshot = world.snapshot()
    before, after = (signing.look(snapshot, WALL + timedelta(hours=hours)) for hours in (24, 25))
    assert {one.kid for one in before.public} == both
    assert [one.kid for one in after.public] == [kid("b")]
    assert after.kept[signing.FORMER] == b""


def test_a_longer_life_that_was_granted_keeps_the_earlier_key_longer() -> None:
    world = with_key("a", auth={**REF["auth"], "tokens": [{"usernames": ["a"], "maxLifetime": "72h"}]})
    world.secrets["site"] = {PEM: rsa_key("b")}
    world.settle()
    assert len(signing.look(world.snapshot(), WALL + timedelta(hours=72)).public) == 2
    assert len(signing.look(world.snapshot(), WALL + timedelta(hours=73)).public) == 1


def test_another_operator_goes_on_where_the_last_one_died() -> None:
    world = with_key("a")
    world.secrets["site"] = {PEM: rsa_key("b")}
    for _ in range(30):
        made = world.step()
        world.memory, world.slurm = Memory("cluster-uid"), None
        if in_use(world) == kid("b") and not any(isinstance(one, Write | KeepKeys) for one in made.actions):
            break
    world.settle()
    assert in_use(world) == kid("b")
    assert set(shown(world)) == {kid("a"), kid("b")}


def test_back_to_an_earlier_key_and_to_none() -> None:
    world = with_key("a")
    for name in ("b", "a"):
        world.secrets["site"] = {PEM: rsa_key(name)}
        world.settle()
        assert (in_use(world), shown(world)[0]) == (kid(name), kid(name))
    assert sorted(shown(world)) == sorted([kid("a"), kid("b")])
    world.raw["spec"] = {}
    world.settle()
    assert in_use(world) is None
    assert PEM not in world.secrets[COPY]
    # Tokens that were signed before are still taken.
    assert sorted(shown(world)) == sorted([kid("a"), kid("b")])


def test_a_key_that_is_gone_or_unusable_is_reported_and_the_one_in_use_goes_on() -> None:
    world = with_key("a")
    for given, reason, words in (
        (None, "SecretNotFound", "there is no Secret site"),
        ({"other": b"x"}, "SecretKeyNotFound", "has no key signing.pem"),
        ({PEM: rsa_key("short", 1024)}, "SecretInvalid", "it has 1024 bits, and must have 2048 to 4096"),
        ({PEM: b"x" * 32}, "SecretInvalid", "it must be a private key in PEM form"),
    ):
        world.secrets.pop("site", None)
        world.secrets |= {"site": given} if given is not None else {}
        world.memory, world.slurm = Memory("cluster-uid"), None
        world.settle()
        degraded = world.condition("Degraded")
        assert (degraded["status"], degraded["reason"]) == ("True", reason)
        assert words in degraded["message"]
        assert f"the key in use, {kid('a')}, which is signing.pem of Secret {COPY}" in degraded["message"]
        assert (in_use(world), shown(world)) == (kid("a"), [kid("a")])
        assert world.condition("Ready")["status"] == "True"
        assert world.condition("ConfigApplied")["status"] == "True"
    world.secrets["site"] = {PEM: rsa_key("a")}
    world.settle()
    assert world.condition("Degraded")["status"] == "False"


def test_a_new_cluster_starts_without_a_key_that_is_not_there() -> None:
    world = World(cluster_object(REF))
    world.settle()
    assert world.condition("Ready")["status"] == "True"
    assert "tokens are signed with the key of auth/jwt meanwhile" in world.condition("Degraded")["message"]


def test_a_copy_that_somebody_has_edited_or_deleted_loses_no_key() -> None:
    world = with_key("a")
    world.secrets[COPY] = {**world.secrets[COPY], PEM: b"nonsense", signing.FORMER: b'{"keys": [{"kid": 1}]}'}
    world.settle()
    assert world.secrets[COPY].keys() == {"slurm.key", "slurm-keys-loaded", "jwt.key", PEM}
    assert world.secrets[COPY][PEM] == rsa_key("a")
    del world.secrets[COPY]
    world.settle()
    assert (in_use(world), world.secrets[COPY][PEM]) == (kid("a"), rsa_key("a"))


def test_a_bad_set_of_another_issuer_is_refused_and_what_runs_goes_on() -> None:
    world = with_key("a")
    before = dict(world.children["ConfigMap", "slurm-config"]["data"])
    world.raw["spec"] = {"auth": {**REF["auth"], "jwksRef": {"name": "issuer"}}}
    world.texts["issuer"] = TextSource("issuer", exists=True, texts={"jwks.json": '{"keys": []}'})
    world.settle()
    applied = world.condition("ConfigApplied")
    assert (applied["status"], applied["reason"]) == ("False", "ConfigRefused")
    assert "spec.auth.jwksRef: jwks.json of ConfigMap issuer: it has no RSA key" in applied["message"]
    assert world.children["ConfigMap", "slurm-config"]["data"] == before
    assert world.condition("Ready")["status"] == "True"
    public = signing_keys.public_of(rsa_key("b"))
    text = json.dumps({"keys": [{"kty": "RSA", "kid": "theirs", "n": public.n, "e": public.e}]})
    world.texts["issuer"] = TextSource("issuer", exists=True, texts={"jwks.json": text})
    world.settle()
    assert shown(world) == [kid("a"), "theirs"]


def test_with_accounting_the_key_waits_until_slurmdbd_runs_with_it_too() -> None:
    world, public = with_key("a"), signing_keys.public_of(rsa_key("a"))
    world.raw["spec"] = {**REF, "accounting": {}}
    del world.secrets[COPY][PEM]
    world.memory = Memory("cluster-uid")
    world.secrets["slurm-database-password"] = {"password": b"p" * 48}
    secret = accounting.contents(world.snapshot()).secrets["slurm-accounting"]
    assert f"jwks=/etc/slurmdbd-conf/{key_set.FILE}" in secret["slurmdbd.conf"].decode()
    assert key_set.has(secret[key_set.FILE].decode(), public)
    world.secrets["slurm-accounting"] = dict(secret)
    snapshot = world.snapshot()
    digest = accounting.slurmdbd_digest(snapshot)
    is_ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    current = {"metadata": {"annotations": {ANNOTATION_MOUNTS: digest}}, "status": is_ready}
    earlier = {"metadata": {"annotations": {ANNOTATION_MOUNTS: "another"}}, "status": is_ready}
    for pods, used in (((), False), ((earlier,), False), (({**current, "status": {}},), False), ((current,), True)):
        found = signing.look(replace(snapshot, pods=replace(snapshot.pods, daemons={"accounting": pods})), WALL)
        assert (found.in_use is not None) is used
        assert found.public == (public,)


def test_tokens_are_good_until_the_last_pod_of_a_cluster_that_is_deleted_has_gone() -> None:
    world = with_key("a")
    world.pods = ["compute-0"]
    world.raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world.settle()
    assert not world.torn_down
    assert (in_use(world), shown(world)) == (kid("a"), [kid("a")])
