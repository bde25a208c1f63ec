"""A changed key of auth/jwt is kept beside the earlier one until slurmctld takes it."""

from __future__ import annotations

from slinky_operator.cluster.actions import (
    Action,
    Connect,
    Reload,
    TouchPod,
)
from slinky_operator.cluster.parts.keys.key_trial import KeyQuestion
from slinky_operator.slurm.connection.contact import Trouble
from slinky_operator.slurm.tokens.signing_keys import SigningKey
from tests.unit.cluster.parts.keys.lifecycle.worlds import COPY, JWT, of, of_users, restarted
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import World, cluster_object, subject


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


def test_a_new_operator_finds_the_earlier_key_in_a_copy_that_has_lost_its_label() -> None:
    world = settled()
    world.secrets[JWT] = {"jwt.key": b"n" * 32}
    world.accepts = b"k" * 32
    world.owners[COPY] = ""
    restarted(world)
    connected = of(Connect, world.step().actions)
    assert [one.keys for one in connected] == [(SigningKey(b"k" * 32), SigningKey(b"n" * 32))]
    del world.secrets[COPY], world.owners[COPY]
    world.step()
    world.step()
    assert world.secrets[COPY]["jwt.key"] == b"k" * 32
    world.accepts = b"n" * 32
    for _ in range(40):
        world.step()
    assert world.secrets[COPY]["jwt.key"] == b"n" * 32
    assert world.raw["status"]["isReady"] is True


def test_what_slurmctld_has_taken_is_put_back_although_the_copy_that_was_read_is_an_earlier_one() -> None:
    world = settled()
    earlier, new = world.secrets[JWT]["jwt.key"], b"n" * 32
    world.secrets[JWT] = {"jwt.key": new}
    world.accepts = new
    while (trial := world.memory.answers.of(KeyQuestion)) is None or not trial.accepted:
        world.step()
    del world.secrets[JWT]
    world.secrets[COPY]["jwt.key"] = earlier
    world.step()
    assert world.secrets[JWT]["jwt.key"] == new
    world.step()
    assert world.secrets[COPY]["jwt.key"] == new


def test_a_bare_copy_is_not_put_in_the_place_of_a_lost_secret() -> None:
    """Nobody keeps it up: it may be older than the key that slurmctld has."""
    world = settled()
    del world.secrets[JWT]
    world.owners[COPY] = ""
    restarted(world)
    world.step()
    assert JWT not in world.secrets
    assert world.condition("Degraded")["reason"] == "KeyLost"


def test_a_secret_that_is_not_the_copy_gives_no_key() -> None:
    world = settled()
    world.secrets[COPY] = {"jwt.key": b"x" * 32}
    del world.owners[COPY]
    restarted(world)
    connected = of(Connect, world.step().actions)
    assert [one.keys for one in connected] == [(SigningKey(b"k" * 32),)]


def test_a_slurmctld_that_refuses_all_tokens_is_told_with_what_to_do() -> None:
    world = settled()
    world.trouble(Trouble.UNAUTHORIZED, "in its own words")
    world.step()
    said = world.condition("TokenValid")
    assert (said["status"], said["reason"]) == ("False", "Unauthorized")
    words = "in its own words; if this lasts, clocks differ, or slurmctld has another key than jwt.key of Secret"
    assert said["message"].startswith(words)


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
