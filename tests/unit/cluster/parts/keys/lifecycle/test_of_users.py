"""Keys of the user's: a changed or missing one is reported, and not loaded while others have the earlier one."""

from __future__ import annotations

import base64
import json

import pytest

from slinky_api.v1alpha1.cluster.status import JobCounts
from slinky_operator.cluster.actions import (
    KeepKeys,
    PutKeyBack,
    Reload,
    Remove,
    Write,
)
from slinky_operator.cluster.parts.job_counts.question import Jobs, JobsQuestion
from tests.unit.cluster.parts.keys.lifecycle.worlds import (
    COPY,
    STAGED,
    events,
    generated,
    mounted,
    of,
    of_users,
    restarted,
)
from tests.unit.cluster.world import node_set_object


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


def test_a_job_of_a_pod_that_has_lost_its_labels_keeps_the_earlier_key() -> None:
    """Its slurmd has the earlier key, and is not among the pods that are seen."""
    world = of_users()
    world.pods = []
    world.secrets["mine"]["slurm.key"] = b"n" * 64
    world.memory.answers.note(JobsQuestion, Jobs(world.now, 0.0, JobCounts(running=1)))
    assert not of(Remove, world.step().actions)
    assert world.condition("Degraded")["reason"] == "KeyChanged"
    world.memory.answers.note(JobsQuestion, Jobs(world.now, 0.0, JobCounts()))
    world.settle()
    assert world.secrets[COPY]["slurm.key"] == b"n" * 64


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
