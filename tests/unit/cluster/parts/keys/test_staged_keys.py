"""Pods mount the accepted key of auth/slurm from a Secret of the operator's; those of earlier operators stay."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import Action, KeepKeys, TearDown, Write
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.memory.writes import Denied
from slinky_operator.cluster.parts.keys import stored_keys
from slinky_operator.slurm import naming
from tests.unit.cluster.parts.accounting.test_accounting import DBD, started
from tests.unit.cluster.parts.keys.key_model import COPY, MINE, OURS, STAGED, key_set
from tests.unit.cluster.parts.keys.lifecycle.worlds import generated
from tests.unit.cluster.world import World, cluster_object

CONTROLLER = ("StatefulSet", "slurm-controller")
SET = {"auth": {"slurmKeyRef": {"name": MINE, "key": "slurm.jwks"}}}


def begun(spec: dict[str, Any] | None = None) -> World:
    return World(cluster_object(spec or SET), secrets={MINE: {"slurm.jwks": key_set("A")}})


def names(done: list[Action]) -> list[str]:
    """What was written, in order: Secrets with keys and workloads."""
    found = []
    for one in done:
        if isinstance(one, KeepKeys):
            found.append(str(one.body["metadata"]["name"]))
        elif isinstance(one, Write) and one.child.resource.kind == "StatefulSet":
            found.append(one.child.name)
    return found


def mounted(world: World, key: tuple[str, str]) -> str:
    """Everything in the pod template of a workload."""
    return str(world.children[key]["spec"]["template"])


def as_an_earlier_operator_made_it(world: World, key: tuple[str, str]) -> None:
    """Let a workload mount the user's own Secret."""
    template = world.children[key]["spec"]["template"]
    for volume in template["spec"]["volumes"]:
        for one in (volume.get("projected") or {}).get("sources") or ():
            if one["secret"]["name"] == STAGED:
                one["secret"] = {"name": MINE, "items": [{"key": "slurm.jwks", "path": "slurm.jwks"}]}
    assert STAGED not in str(template)


def test_the_copy_comes_first_then_what_pods_mount_then_slurmctld() -> None:
    world = begun()
    done = names(world.settle())
    assert done.index(COPY) < done.index(STAGED) < done.index("slurm-controller")
    assert world.secrets[STAGED] == {"slurm.jwks": key_set("A")}
    assert world.owners[STAGED] == "cluster-uid"
    assert STAGED in mounted(world, CONTROLLER)
    assert MINE not in mounted(world, CONTROLLER)


def test_a_generated_set_is_staged_too_so_that_no_pod_changes_when_it_becomes_the_users() -> None:
    world = started({"accounting": {}}, {})
    given = world.secrets[OURS]["slurm.jwks"]
    before = {key: copy.deepcopy(world.children[key]["spec"]["template"]) for key in (CONTROLLER, DBD)}
    assert all(STAGED in str(one) and OURS not in str(one) for one in before.values())
    world.pods = ["compute-0"]
    world.secrets[MINE] = {"slurm.jwks": given}
    world.raw["spec"] = {**world.raw["spec"], **SET}
    world.settle()
    assert {key: world.children[key]["spec"]["template"] for key in before} == before
    assert world.secrets[STAGED] == {"slurm.jwks": given}
    assert world.condition("Degraded")["status"] == "False"
    about = world.children[CONTROLLER]["metadata"]["annotations"]
    assert stored_keys.ANNOTATION_KEY not in about, "a set that is rotated has no fixed fingerprint"
    cluster = Cluster.parse(world.raw)
    mounted_key = naming.mounted_key(cluster)
    del world.raw["spec"]["auth"]
    assert naming.mounted_key(Cluster.parse(world.raw)) == mounted_key


def test_a_generated_single_key_is_mounted_as_it_is() -> None:
    world = generated("slurm.key")
    assert STAGED not in world.secrets
    assert STAGED not in mounted(world, CONTROLLER)


def test_pods_keep_the_form_that_daemons_have_whatever_the_spec_names() -> None:
    world = generated("slurm.jwks")
    world.pods = ["compute-0"]
    world.secrets[MINE] = {"slurm.key": b"n" * 64}
    world.raw["spec"] = {"auth": {"slurmKeyRef": {"name": MINE}}}
    done = world.settle()
    assert not names(done)
    assert world.condition("Degraded")["reason"] == "KeyChanged"
    assert naming.mounted_key(Cluster.parse(world.raw)) == naming.KeySource(
        STAGED, "slurm.jwks", "slurm.jwks", generated=True
    )
    # The same text under the name of a single key is another key for Slurm.
    world.secrets[MINE] = {"slurm.key": world.secrets[OURS]["slurm.jwks"]}
    assert not names(world.settle())
    assert "is what daemons have as slurm.jwks" in world.condition("Degraded")["message"]
    assert world.raw["status"]["slurmKeyFile"] == "slurm.jwks"
    world.secrets[MINE], world.pods = {"slurm.key": b"n" * 64}, []
    world.settle()
    assert world.secrets[STAGED] == {"slurm.key": b"n" * 64}
    assert "SLURM_SACK_KEY" in mounted(world, CONTROLLER)
    assert world.raw["status"]["slurmKeyFile"] == "slurm.key"
    assert world.condition("Degraded")["status"] == "False"


@pytest.mark.parametrize("status", ["kept", "lost"])
@pytest.mark.parametrize("left", ["all", "Secret", "copy"])
@pytest.mark.parametrize("file", ["slurm.jwks", "slurm.key"])
def test_the_form_of_a_generated_key_is_found_again(file: str, left: str, status: str) -> None:
    world = generated(file)
    world.memory = Memory("cluster-uid")
    kept = {"all": {OURS, COPY}, "Secret": {OURS}, "copy": {COPY}}[left]
    world.secrets = {name: data for name, data in world.secrets.items() if name in {*kept, "slurm-auth-jwt"}}
    if status == "lost":
        world.raw.pop("status")
    if left != "all":
        # As from a backup of Secrets alone.
        world.children.clear()
    world.settle()
    assert list(world.secrets[OURS]) == [file]
    assert world.raw["status"]["slurmKeyFile"] == file
    assert world.condition("Degraded")["status"] == "False"


def test_a_slurm_elsewhere_mounts_what_the_user_gives() -> None:
    cluster = Cluster.parse(cluster_object({"server": "http://there:6820", "token": {"secretRef": "t"}, **SET}))
    assert naming.mounted_key(cluster) == naming.slurm_key(cluster)


def test_nothing_starts_with_somebody_elses_secret_of_the_name() -> None:
    world = begun()
    world.step()
    world.memory.writes.denied["Secret", STAGED] = Denied("", "it belongs to somebody else", world.now)
    done = names([action for _ in range(5) for action in world.step().actions])
    assert "slurm-controller" not in done
    assert STAGED not in done
    assert "Secret slurm-auth-accepted: it belongs to somebody else" in world.condition("Degraded")["message"]
    world.now += 60
    world.settle()
    assert CONTROLLER in world.children


def test_pods_of_an_earlier_operator_are_not_replaced_and_change_with_their_next_template() -> None:
    world = started({**SET, "accounting": {}}, {MINE: {"slurm.jwks": key_set("A")}})
    for key in (CONTROLLER, DBD):
        as_an_earlier_operator_made_it(world, key)
    before = [copy.deepcopy(world.children[key]["spec"]["template"]) for key in (CONTROLLER, DBD)]
    del world.secrets[STAGED]
    done = world.settle()
    assert names(done) == [STAGED]
    assert [world.children[key]["spec"]["template"] for key in (CONTROLLER, DBD)] == before
    # slurmdbd is restarted for the next step anyway, and slurmctld for what somebody asks for.
    world.secrets[MINE] = {"slurm.jwks": key_set("A", "b")}
    world.settle()
    assert STAGED in mounted(world, DBD)
    assert STAGED not in mounted(world, CONTROLLER)
    world.raw["spec"] = {**world.raw["spec"], "controller": {"template": {"metadata": {"annotations": {"a": "b"}}}}}
    world.settle()
    assert STAGED in mounted(world, CONTROLLER)


def test_a_deletion_takes_it_and_leaves_the_users() -> None:
    world = begun()
    world.settle()
    world.raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    torn_down = [one for one in world.plan().actions if isinstance(one, TearDown)]
    removed = [name for one in torn_down for _, name, _ in one.children]
    assert STAGED in removed
    assert MINE not in removed
