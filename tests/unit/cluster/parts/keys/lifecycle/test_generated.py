"""Generated keys are created once; then a missing or changed one is put back or reported."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.cluster.actions import (
    KeepKeys,
    MakeKey,
    PutKeyBack,
    Reload,
    SealKey,
    Write,
)
from slinky_operator.cluster.parts.keys import stored_keys
from slinky_operator.cluster.parts.keys.sets import key_sets
from tests.unit.cluster.parts.keys.lifecycle.worlds import (
    COPY,
    GENERATED,
    JWT,
    SET,
    SLURM,
    STAGED,
    both_forms,
    events,
    generated,
    mounted,
    of,
    restarted,
)
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import World, node_set_object


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
