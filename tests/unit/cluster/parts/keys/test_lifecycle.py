"""Keys are created once; then a missing or changed one is restored or reported, and no daemon reads another."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.cluster.status import JobCounts
from slinky_operator.cluster import adoption
from slinky_operator.cluster.actions import (
    Action,
    Connect,
    EmitEvent,
    KeepKeys,
    MakeKey,
    PutKeyBack,
    ReadKeys,
    Reload,
    Remove,
    ReplacePod,
    SealKey,
    TouchPod,
    Write,
)
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.memory.writes import Denied
from slinky_operator.cluster.parts.job_counts.question import Jobs, JobsQuestion
from slinky_operator.cluster.parts.keys import stored_keys
from slinky_operator.cluster.parts.keys.key_trial import KeyQuestion
from slinky_operator.cluster.parts.keys.sets import key_sets
from slinky_operator.kube.resources import SECRETS
from slinky_operator.slurm.tokens.signing_keys import SigningKey
from tests.unit.cluster.rollout_stories import settled, until
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


# Generated keys


def test_what_daemons_are_given_is_written_down_before_slurmctld_is_made() -> None:
    world = World()
    done = world.settle()
    order = [type(one).__name__ for one in done]
    made = next(i for i, one in enumerate(done) if isinstance(one, Write) and one.child.resource.kind == "StatefulSet")
    assert order.index("MakeKey") < order.index("KeepKeys") < made
    assert {name: world.secrets[COPY][name] for name in ("slurm.key", "jwt.key")} == {
        "slurm.key": SET,
        "jwt.key": b"k" * 32,
    }
    assert world.secrets[SLURM] == world.secrets[STAGED] == {"slurm.jwks": SET}
    assert world.sealed == {SLURM}
    assert world.raw["status"]["slurmKeyFile"] == "slurm.jwks"
    live = world.children["StatefulSet", "slurm-controller"]
    assert live["metadata"]["annotations"][stored_keys.ANNOTATION_KEY] == f"{SLURM}:{stored_keys.fingerprint(SET)}"
    container = live["spec"]["template"]["spec"]["containers"][0]
    assert container["env"] == [{"name": "SLURM_SACK_JWKS", "value": "/etc/slurm-keys/slurm.jwks"}]
    assert mounted(live) == (STAGED, "slurm.jwks")


@pytest.mark.parametrize("lost", [[SLURM], [JWT], [SLURM, JWT]], ids="+".join)
@pytest.mark.parametrize("restart", [False, True], ids=["same-operator", "another"])
@both_forms
def test_a_lost_key_is_put_back_and_told(lost: list[str], restart: bool, file: str) -> None:
    world = generated(file)
    before = dict(world.secrets)
    for name in lost:
        del world.secrets[name]
    if restart:
        restarted(world)
    done = world.settle()
    assert world.secrets == before
    assert not of(MakeKey, done)
    assert [one for one in events(done) if one[1] == "KeyRestored"] == [("Warning", "KeyRestored")] * len(lost)
    assert world.raw["status"]["isReady"] is True


@both_forms
def test_with_the_copy_lost_too_the_operator_that_saw_the_keys_puts_them_back(file: str) -> None:
    world = generated(file)
    before = dict(world.secrets)
    world.secrets.clear()
    assert not of(MakeKey, world.settle())
    # Whether daemons have a key set is asked again.
    before[COPY] = {name: before[COPY][name] for name in ("slurm.key", "jwt.key")}
    assert world.secrets == before


@both_forms
def test_with_everything_lost_nothing_is_made_up_and_it_says_what_to_do(file: str) -> None:
    world = generated(file)
    world.secrets.clear()
    restarted(world)
    done = world.settle()
    assert not of(MakeKey, done)
    assert not world.secrets
    ready = world.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("False", "KeyLost")
    assert f"exec slurm-controller-0 -c slurmctld -- cat /etc/slurm-keys/{file} > {file}" in ready["message"]
    assert world.condition("Degraded")["reason"] == "KeyLost"
    assert ("Warning", "KeyLost") in events(done)
    # What the message says is done, with a wrong key first.
    world.secrets[SLURM], world.secrets[JWT] = {file: b"x" * 128}, {"jwt.key": b"k" * 32}
    world.settle()
    assert world.condition("Degraded")["reason"] == "KeyChanged"
    world.secrets[SLURM] = {file: GENERATED[file]}
    world.settle()
    assert world.raw["status"]["isReady"] is True
    assert world.secrets[COPY]["slurm.key"] == GENERATED[file]


def with_container(world: World, container: str, state: str) -> dict[str, Any]:
    """slurmctld's pod, or one of slurmdbd, whose container is in this state."""
    assert world.controller_pod is not None
    shown = {"containerStatuses": [{"name": container, "state": {state: {}}}], "phase": "Running"}
    return {**world.controller_pod, "status": {**world.controller_pod["status"], **shown}}


def lost(*names: str) -> World:
    """A Cluster whose Secrets of these names are gone, with another operator, and a slurmctld that waits for them."""
    world = settled({"accounting": {}})
    for name in names:
        del world.secrets[name]
    restarted(world)
    world.controller_pod = with_container(world, "slurmctld", "waiting")
    return world


def told(world: World) -> str:
    world.step()
    found = world.condition("Degraded")
    assert found["reason"] == "KeyLost"
    return str(found["message"])


@pytest.mark.parametrize(
    "pod",
    [
        None,
        {"status": {"phase": "Pending"}},
        {"status": {"phase": "Pending", "containerStatuses": [{"name": "slurmctld", "state": {"waiting": {}}}]}},
        {"status": {"phase": "Running", "containerStatuses": [{"name": "agent", "state": {"running": {}}}]}},
    ],
)
def test_a_lost_key_of_tokens_that_no_daemon_has_is_made_anew_by_the_user(pod: dict[str, Any] | None) -> None:
    world = lost(JWT, COPY)
    if pod is None:
        world.controller_pod = None
    else:
        assert world.controller_pod is not None
        world.controller_pod = {**world.controller_pod, **pod}
    message = told(world)
    assert "no running daemon is known to have it, and no new pod can start. Restore Secret slurm-auth-jwt" in message
    assert "head -c 32 /dev/urandom > jwt.key; kubectl -n here delete secret slurm-auth-jwt" in message
    assert " exec " not in message
    assert not of(MakeKey, list(world.step().actions))
    # What the message says is done.
    world.secrets[JWT] = {"jwt.key": b"n" * 32}
    for _ in range(4):
        world.step()
    assert world.condition("Degraded")["reason"] != "KeyLost"
    assert world.secrets[COPY]["jwt.key"] == b"n" * 32


def test_a_lost_key_is_taken_from_slurmdbd_if_slurmctld_has_no_container() -> None:
    world = lost(JWT, COPY)
    pod = with_container(world, "slurmdbd", "running")
    world.daemon_pods["accounting"] = ({**pod, "metadata": {"name": "slurm-accounting-0", "uid": "dbd"}},)
    assert "exec slurm-accounting-0 -c slurmdbd -- cat /etc/slurm-keys/jwt.key > jwt.key; " in told(world)
    world.controller_pod = with_container(world, "slurmctld", "running")
    assert "exec slurm-controller-0 -c slurmctld -- cat /etc/slurm-keys/jwt.key > jwt.key; " in told(world)


def test_a_lost_key_of_slurm_is_taken_from_a_slurmd_or_a_backup() -> None:
    world = lost(SLURM, COPY, STAGED)
    assert "Restore Secret slurm-auth-slurm from a backup, or with the key that a login pod" in told(world)
    slurmd = with_container(world, "slurmd", "running")
    world.running = [{**slurmd, "metadata": {"name": "compute-0", "namespace": "here", "uid": "slurmd"}}]
    message = told(world)
    assert "exec compute-0 -c slurmd -- cat /etc/slurm/slurm.jwks > slurm.jwks; " in message
    assert "running daemons still have the key, and no new pod can start" in message


def test_another_key_of_slurm_is_used_once_the_fingerprint_of_the_lost_one_is_taken_off() -> None:
    world = lost(SLURM, COPY, STAGED)
    another = key_sets.of_one("another", b"a" * 128)
    world.secrets[SLURM] = {"slurm.jwks": another}
    world.step()
    assert world.condition("Degraded")["reason"] == "KeyChanged"
    notes = world.children["StatefulSet", "slurm-controller"]["metadata"]["annotations"]
    del notes[stored_keys.ANNOTATION_KEY]
    for _ in range(4):
        world.step()
    assert world.condition("Degraded")["reason"] not in {"KeyChanged", "KeyLost"}
    assert world.secrets[COPY]["slurm.key"] == another


@pytest.mark.parametrize(
    "left", [("StatefulSet", "slurm-controller"), ("ConfigMap", "slurm-config-good"), "status", "slurmd"]
)
def test_whatever_shows_that_slurmctld_has_existed_keeps_keys_from_being_made(left: Any) -> None:
    old = settled()
    world = World()
    match left:
        case "status":
            world.raw["status"] = old.raw["status"]
        case "slurmd":
            world.pods = ["compute-0"]
        case _:
            world.children[left] = old.children[left]
    assert not of(MakeKey, world.plan().actions)
    world.step()
    assert world.condition("Degraded")["reason"] == "KeyLost"


@both_forms
@pytest.mark.parametrize("other", ["slurm.jwks", "slurm.key"])
def test_a_slurm_key_of_ours_that_was_replaced_is_put_back(file: str, other: str) -> None:
    world = generated(file)
    world.secrets[SLURM] = {other: b"other" * 20}
    done = world.settle()
    assert world.secrets[SLURM] == {file: GENERATED[file]}
    assert ("Warning", "KeyRestored") in events(done)
    assert of(PutKeyBack, done)[0].replaces == f"uid-of-{SLURM}"


def test_a_slurm_key_that_somebody_has_put_in_its_place_is_theirs_and_nothing_loads_it() -> None:
    world = generated("slurm.key")
    world.secrets[SLURM], world.owners[SLURM] = {"slurm.key": b"other" * 20}, ""
    world.add(node_set_object("compute"))
    world.raw["spec"]["controller"] = {"template": {"metadata": {"annotations": {"a": "b"}}}}
    done = world.settle()
    assert not of(Reload, done)
    assert not of(PutKeyBack, done)
    assert not [one for one in of(Write, done) if one.child.resource.kind == "StatefulSet"]
    degraded = world.condition("Degraded")
    assert degraded["reason"] == "KeyChanged"
    assert "Delete it" in degraded["message"]
    assert world.condition("Ready")["status"] == "True", "Slurm serves all the same"
    assert ("Warning", "KeyChanged") in events(done)
    del world.secrets[SLURM]
    world.settle()
    assert world.raw["status"]["isReady"] is True
    assert world.raw["status"]["config"]["nodeSets"] == ["compute"]


def test_both_put_back_from_an_old_backup_are_noticed_by_the_mark_on_the_stateful_set() -> None:
    world = generated("slurm.key")
    world.secrets[SLURM] = {"slurm.key": b"o" * 128}
    world.secrets[COPY] = {"slurm.key": b"o" * 128, "jwt.key": b"k" * 32}
    restarted(world)
    world.settle()
    assert world.condition("Degraded")["reason"] == "KeyChanged"
    assert world.secrets[COPY]["slurm.key"] == b"o" * 128


def test_a_cluster_of_an_earlier_operator_keeps_its_keys_and_nothing_restarts() -> None:
    world = generated("slurm.key")
    del world.secrets[COPY]
    world.sealed.clear()
    world.children["StatefulSet", "slurm-controller"]["metadata"].pop("annotations")
    template = world.children["StatefulSet", "slurm-controller"]["spec"]["template"]
    restarted(world)
    done = world.settle()
    assert of(KeepKeys, done)
    assert of(SealKey, done)
    assert not of(Reload, done)
    assert "Warning" not in dict(events(done))
    assert world.secrets[COPY] == {"slurm.key": b"k" * 128, "jwt.key": b"k" * 32}
    assert world.children["StatefulSet", "slurm-controller"]["spec"]["template"] == template
    assert world.secrets[SLURM] == {"slurm.key": b"k" * 128}
    assert world.raw["status"]["slurmKeyFile"] == "slurm.key"
    assert STAGED not in world.secrets


# Keys of the user's


@pytest.mark.parametrize(("key", "reason"), [("slurm.key", "SecretKeyNotFound"), ("jwt.key", "SecretKeyNotFound")])
def test_a_key_of_the_users_that_is_gone_is_told_and_slurm_is_asked_all_the_same(key: str, reason: str) -> None:
    world = of_users()
    del world.secrets["mine"][key]
    restarted(world)
    done = world.settle()
    degraded = world.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", reason)
    assert f"it is {key} of Secret {COPY}" in degraded["message"]
    assert ("Warning", reason) in events(done)
    assert not of(PutKeyBack, done)
    assert world.condition("TokenValid")["status"] == "True"


def test_a_changed_slurm_key_of_the_users_is_not_loaded_while_slurmds_have_the_earlier_one() -> None:
    world = of_users()
    world.pods = ["compute-0"]
    world.secrets["mine"]["slurm.key"] = b"n" * 64
    world.add(node_set_object("more"))
    done = world.settle()
    assert not of(Reload, done)
    assert world.condition("Degraded")["reason"] == "KeyChanged"
    assert world.secrets[COPY]["slurm.key"] == b"s" * 64
    # The way out that the message names.
    world.pods = []
    done = world.settle()
    removed = of(Remove, done)[0]
    assert removed.name == "slurm-controller-0"
    # What its successor mounts is there before it; and the copy is the last, so that nothing of this is forgotten.
    staged, copied = (
        next(one for one in of(KeepKeys, done) if one.body["metadata"]["name"] == name) for name in (STAGED, COPY)
    )
    assert done.index(staged) < done.index(removed) < done.index(copied)
    assert world.secrets[STAGED] == {"slurm.key": b"n" * 64}
    assert ("Normal", "KeyReplaced") in events(done)
    assert world.secrets[COPY]["slurm.key"] == b"n" * 64
    assert world.raw["status"]["isReady"] is True


def test_static_nodes_may_have_jobs_with_the_earlier_key() -> None:
    world = of_users(nodes=[{"name": "outside"}])
    world.secrets["mine"]["slurm.key"] = b"n" * 64
    world.memory.answers.note(JobsQuestion, Jobs(world.now, 0.0, JobCounts(running=1)))
    world.step()
    assert world.condition("Degraded")["reason"] == "KeyChanged"
    world.memory.answers.note(JobsQuestion, Jobs(world.now, 0.0, JobCounts()))
    world.settle()
    assert world.raw["status"]["isReady"] is True


def test_a_key_that_slurmctld_has_never_run_with_may_be_mended() -> None:
    world = of_users()
    world.raw.pop("status")
    del world.children["ConfigMap", "slurm-config-good"]
    world.secrets["mine"]["slurm.key"] = b"n" * 64
    world.settle()
    assert world.secrets[COPY]["slurm.key"] == b"n" * 64


def test_another_ref_is_another_key() -> None:
    world = generated("slurm.key")
    world.pods = ["compute-0"]
    world.secrets["mine"] = {"slurm.key": b"n" * 64}
    world.raw["spec"] = {"auth": {"slurmKeyRef": {"name": "mine"}}}
    done = world.settle()
    assert not [one for one in of(Write, done) if one.child.resource.kind == "StatefulSet"]
    assert world.condition("Degraded")["reason"] == "KeyChanged"
    # With the same key in it nothing stands against it.
    world.secrets["mine"] = {"slurm.key": b"k" * 128}
    done = world.settle()
    assert [one for one in of(Write, done) if one.child.resource.kind == "StatefulSet"]
    assert world.raw["status"]["isReady"] is True


def test_a_generated_key_gives_way_to_a_key_set_once_no_slurmd_is_left() -> None:
    world = generated("slurm.key")
    world.pods = ["compute-0"]
    jwk = {"kid": "a", "kty": "oct", "alg": "HS256", "k": base64.b64encode(b"a" * 32).decode()}
    key_set = json.dumps({"keys": [jwk]}).encode()
    world.secrets["mine"] = {"slurm.jwks": key_set}
    world.raw["spec"] = {"auth": {"slurmKeyRef": {"name": "mine", "key": "slurm.jwks"}}}
    done = world.settle()
    assert not [one for one in of(Write, done) if one.child.resource.kind == "StatefulSet"]
    assert not of(Remove, done)
    assert world.condition("Degraded")["reason"] == "KeyChanged"
    assert world.secrets[COPY]["slurm.key"] == b"k" * 128
    # Pods that start meanwhile have the key that the others have, as the file that they have.
    assert world.secrets[STAGED] == {"slurm.key": b"k" * 128}
    assert world.raw["status"]["slurmKeyFile"] == "slurm.key"
    world.pods = []
    done = world.settle()
    assert of(Remove, done)[0].name == "slurm-controller-0"
    assert world.secrets[STAGED] == {"slurm.jwks": key_set}
    assert world.raw["status"]["slurmKeyFile"] == "slurm.jwks"
    assert mounted(world.children["StatefulSet", "slurm-controller"]) == (STAGED, "slurm.jwks")
    assert [one for one in of(Write, done) if one.child.resource.kind == "StatefulSet"]
    assert world.secrets[COPY]["slurm.key"] == key_set
    assert world.condition("Degraded")["status"] == "False"


# The key of auth/jwt


def test_a_changed_jwt_key_is_kept_beside_the_earlier_one_until_slurmctld_takes_it() -> None:
    world = settled()
    world.secrets[JWT] = {"jwt.key": b"n" * 32}
    world.accepts = b"k" * 32
    connected = of(Connect, world.step().actions)
    assert [one.keys for one in connected] == [(SigningKey(b"k" * 32), SigningKey(b"n" * 32))]
    under_way = world.condition("Progressing")
    assert (under_way["status"], under_way["reason"]) == ("True", "KeyPending")
    assert world.condition("Degraded")["status"] == "False"
    assert world.secrets[COPY]["jwt.key"] == b"k" * 32

    done: list[Action] = []
    for _ in range(12):
        done += world.step().actions
    order = [type(one) for one in map(subject, done) if isinstance(one, KeyQuestion | TouchPod | Reload)]
    assert order == [TouchPod, Reload, KeyQuestion]

    world.accepts = b"n" * 32
    done = [action for _ in range(40) for action in world.step().actions]
    assert world.secrets[COPY]["jwt.key"] == b"n" * 32
    assert of(Connect, done)[-1].keys == (SigningKey(b"n" * 32),)
    assert world.raw["status"]["isReady"] is True


def test_slurmctld_is_not_told_again_and_again_to_read_a_key_that_it_does_not_take() -> None:
    world = settled()
    world.secrets[JWT] = {"jwt.key": b"n" * 32}
    world.accepts = b"k" * 32
    done: list[Action] = []
    for _ in range(600):
        done += world.step().actions
    assert 3 <= len(of(Reload, done)) <= 10


def test_a_jwt_key_that_waits_is_not_loaded_along_with_another_slurm_key() -> None:
    world = of_users()
    world.pods = ["compute-0"]
    world.accepts = b"j" * 32
    world.secrets["mine"] = {"slurm.key": b"n" * 64, "jwt.key": b"n" * 32}
    done: list[Action] = []
    for _ in range(40):
        done += world.step().actions
    assert of(KeyQuestion, done)
    assert not of(Reload, done)
    assert not of(TouchPod, done)


def test_elsewhere_both_keys_are_tried_and_the_taken_one_is_remembered() -> None:
    spec = {"server": "http://there:6820", "auth": {"jwtKeyRef": {"name": "mine", "key": "k"}}}
    world = World(cluster_object(spec), secrets={"mine": {"k": b"a" * 32}}, meant_for={"mine": "http://there:6820"})
    world.settle()
    world.accepts = b"a" * 32
    world.secrets["mine"] = {"k": b"b" * 32}
    world.step()
    world.step()
    assert world.condition("Progressing")["reason"] == "KeyPending"
    assert world.memory.keys.known == {"jwt.key": b"a" * 32}
    assert COPY not in world.secrets
    world.accepts = b"b" * 32
    world.now += 120
    world.settle()
    assert world.memory.keys.known == {"jwt.key": b"b" * 32}
    assert world.raw["status"]["isReady"] is True


# Before slurmctld reads its keys


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
