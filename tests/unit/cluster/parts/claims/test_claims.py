"""What a change of `persistence` does to a claim that exists, and what becomes of claims and keys in the end."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from slinky_operator.cluster.actions import Action, AdoptKey, EmitEvent, GrowClaim, MakeKey, TearDown, Write
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.memory.writes import ClaimSize
from slinky_operator.cluster.parts.daemons import DAEMONS
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import World, cluster_object

CASES = {
    "controller": ("state-slurm-controller-0", "slurm-controller", "spec.controller.persistence"),
    "mariadb": ("data-slurm-database-0", "slurm-database", "spec.accounting.mariadb.persistence"),
}
FIRST = {"size": "4Gi", "storageClassName": "fast", "labels": {"a": "b"}}


def spec(daemon: str, **persistence: Any) -> dict[str, Any]:
    own = {"persistence": persistence}
    return {"controller": own} if daemon == "controller" else {"accounting": {"mariadb": own}}


def made(daemon: str, **persistence: Any) -> World:
    """A Cluster whose daemons run, with one that keeps its state as given."""
    world = World(cluster_object(spec(daemon, **persistence)))
    world.settle()
    for workload in ("slurm-database", "slurm-accounting"):
        if ("StatefulSet", workload) in world.children:
            world.children["StatefulSet", workload]["status"] = {"readyReplicas": 1}
            world.settle()
    assert world.condition("Degraded")["status"] == world.condition("Progressing")["status"] == "False"
    return world


def change(world: World, daemon: str, **persistence: Any) -> list[Action]:
    world.raw = {**world.raw, "spec": spec(daemon, **persistence)}
    return world.settle()


def rewritten(log: list[Action]) -> list[Write]:
    return [one for one in log if isinstance(one, Write) and one.child.resource.kind == "StatefulSet"]


@pytest.fixture(params=CASES)
def daemon(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def world(daemon: str) -> World:
    return made(daemon, **FIRST)


def test_every_daemon_that_keeps_state_is_tried_here() -> None:
    assert {one.persistence_field for one in DAEMONS if one.state_volume} == {field for _, _, field in CASES.values()}


def test_a_claim_is_looked_at_once_and_then_left_alone(world: World, daemon: str) -> None:
    looked = [one for one in change(world, daemon, **FIRST) if isinstance(one, GrowClaim)]
    assert looked == []
    assert world.condition("Degraded")["status"] == "False"
    # A claim that has been lost is made again with the first size.
    world.now += 601
    assert CASES[daemon][0] in {one.name for one in world.plan().actions if isinstance(one, GrowClaim)}


def test_a_larger_size_is_for_the_claim_and_restarts_nothing(world: World, daemon: str) -> None:
    claim, workload, _ = CASES[daemon]
    before = copy.deepcopy(world.children["StatefulSet", workload])
    log = change(world, daemon, **{**FIRST, "size": "8Gi"})
    assert {(one.name, one.size) for one in log if isinstance(one, GrowClaim)} == {(claim, "8Gi")}
    assert world.children["StatefulSet", workload] == before
    assert world.condition("Degraded")["status"] == "False"
    # An operator that has just started looks again, and finds it done.
    world.memory.writes.claims = {}
    assert not rewritten(world.settle())
    assert world.condition("Degraded")["status"] == "False"


def test_a_volume_that_has_not_grown_yet_is_progress(world: World, daemon: str) -> None:
    world.capacity = "4Gi"
    change(world, daemon, **{**FIRST, "size": "8Gi"})
    progressing = world.condition("Progressing")
    assert (progressing["status"], progressing["reason"]) == ("True", "ClaimGrowing")
    assert progressing["message"] == f"claim {CASES[daemon][0]} has 4Gi of 8Gi: it waits for the volume plugin"
    assert world.raw["status"]["summary"] == "Running, a claim grows"
    world.capacity, world.now = "", world.now + 61
    world.settle()
    assert world.condition("Progressing")["status"] == "False"


def test_what_the_api_server_says_against_it_is_shown_and_it_is_tried_again_later(world: World, daemon: str) -> None:
    claim, _, field = CASES[daemon]
    world.rigid = "storage class fast allows no expansion"
    log = change(world, daemon, **{**FIRST, "size": "8Gi"})
    assert len([one for one in log if isinstance(one, GrowClaim)]) == 1
    degraded = world.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "ClaimRefused")
    assert degraded["message"] == (
        f"{field}.size: claim {claim} has 4Gi, and cannot have 8Gi: storage class fast allows no expansion"
    )
    assert world.raw["status"]["summary"] == "Running, claim cannot be changed"
    assert world.condition("Ready")["status"] == "True"
    told = [one for one in log if isinstance(one, EmitEvent) and one.reason == "ClaimRefused"]
    assert len(told) == 1
    world.now, world.rigid = world.now + 61, ""
    world.settle()
    assert world.condition("Degraded")["status"] == "False"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("size", "1Gi", "has 4Gi, and a claim cannot shrink to 1Gi"),
        ("storageClassName", "slow", "was made with fast and keeps it"),
        ("storageClassName", None, "was made with fast and keeps it"),
        ("accessModes", ["ReadWriteMany"], "was made with ReadWriteOnce and keeps it"),
        ("labels", {"a": "c"}, "kubectl -n here label pvc"),
        ("annotations", {"x": "y"}, "kubectl -n here annotate pvc"),
    ],
)
def test_what_cannot_be_done_to_a_claim_is_reported_by_field_and_changes_nothing(
    world: World, daemon: str, field: str, value: object, words: str
) -> None:
    log = change(world, daemon, **{**FIRST, field: value})
    assert not rewritten(log)
    degraded = world.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "ClaimRefused")
    assert degraded["message"].startswith(f"{CASES[daemon][2]}.{field}: claim {CASES[daemon][0]} ")
    assert words in degraded["message"]
    change(world, daemon, **FIRST)
    assert world.condition("Degraded")["status"] == "False"


def test_a_size_that_the_operator_has_reached_is_the_least(world: World, daemon: str) -> None:
    change(world, daemon, **{**FIRST, "size": "8Gi"})
    change(world, daemon, **{**FIRST, "size": "6Gi"})
    assert "has 8Gi, and a claim cannot shrink to 6Gi" in world.condition("Degraded")["message"]


def test_a_claim_that_an_administrator_has_made_larger_is_no_trouble(world: World, daemon: str) -> None:
    claim = CASES[daemon][0]
    world.memory.writes.claims[claim] = ClaimSize("4Gi", "100Gi", world.now, "100Gi")
    change(world, daemon, **FIRST)
    assert world.condition("Degraded")["status"] == "False"


@pytest.mark.parametrize(
    ("before", "after", "field", "place"),
    [
        ({}, {"enabled": False}, "enabled", "claim {claim}"),
        ({}, {"existingClaim": "mine"}, "existingClaim", "claim {claim}"),
        ({"enabled": False}, {}, "enabled", "an emptyDir"),
        ({"existingClaim": "mine"}, {}, "existingClaim", "claim mine"),
        ({"existingClaim": "mine"}, {"enabled": False}, None, ""),
    ],
)
def test_state_stays_where_it_is_if_that_would_need_another_statefulset(
    daemon: str, before: dict[str, Any], after: dict[str, Any], field: str | None, place: str
) -> None:
    world = made(daemon, **before)
    log = change(world, daemon, **after)
    degraded = world.condition("Degraded")
    if field is None:
        # Only the pod template changes.
        assert rewritten(log)
        assert degraded["status"] == "False"
        return
    claim, workload, at = CASES[daemon]
    assert not rewritten([one for one in log if one_of(one) == workload and pod_of(one) != pod_of(world, workload)])
    assert degraded["message"].startswith(f"{at}.{field}: ")
    assert f"keeps its state where it is, on {place.format(claim=claim)}: " in degraded["message"]
    assert f"kubectl -n here delete statefulset {workload} --cascade=orphan" in degraded["message"]
    # What the message says leads there.
    del world.children["StatefulSet", workload]
    world.settle()
    assert world.condition("Degraded")["status"] == "False"


def one_of(action: Action) -> str:
    return action.child.name if isinstance(action, Write) else ""


def pod_of(found: Action | World, workload: str = "") -> Any:
    """The pod template and the claims that a StatefulSet has."""
    if isinstance(found, World):
        body = found.children["StatefulSet", workload]
    else:
        assert isinstance(found, Write)
        body = found.child.body
    return body["spec"]["template"], body["spec"].get("volumeClaimTemplates")


@pytest.mark.parametrize(
    ("settings", "deleted"),
    [
        ({}, False),
        ({"whenDeleted": "Retain"}, False),
        ({"whenDeleted": "Delete"}, True),
        ({"whenDeleted": "Delete", "existingClaim": "mine"}, False),
        ({"whenDeleted": "Delete", "enabled": False}, False),
    ],
)
def test_a_claim_goes_with_its_cluster_only_if_the_spec_says_so(
    daemon: str, settings: dict[str, Any], deleted: bool
) -> None:
    world = made(daemon, **settings)
    world.raw["metadata"]["deletionTimestamp"] = "2026-11-22T12:00:00Z"
    for _ in range(2):
        (end,) = [one for one in world.plan().actions if isinstance(one, TearDown)]
        assert [name for name, _ in end.claims] == ([CASES[daemon][0]] if deleted else [])
        assert all(labels["cluster.slinky.slurm.net/name"] == "slurm" for _, labels in end.claims)
        # The operator has died in the middle of it.
        world.children.clear()


@pytest.mark.parametrize(
    ("policy", "kept"), [(None, set()), ("Delete", set()), ("Retain", {"slurm", "jwt", "copy", "accepted"})]
)
def test_generated_keys_go_with_their_cluster_unless_the_spec_retains_them(policy: str | None, kept: set[str]) -> None:
    auth = {"keysWhenDeleted": policy} if policy else {}
    world = settled({"auth": auth})
    keys = copy.deepcopy(world.secrets)
    world.raw["metadata"]["deletionTimestamp"] = "2026-11-22T12:00:00Z"
    (end,) = [one for one in world.plan().actions if isinstance(one, TearDown)]
    gone = {name for resource, name, _ in end.children if resource.kind == "Secret"}
    assert {f"slurm-auth-{one}" for one in kept} == set(keys) - gone

    # The next Cluster of the name has what is left.
    world.children.clear()
    world.secrets = {name: value for name, value in world.secrets.items() if name not in gone}
    world.controller_pod, world.slurm, world.memory = None, None, Memory("next-uid")
    world.raw = cluster_object({"auth": auth}, uid="next-uid")
    log = world.settle()
    assert bool([one for one in log if isinstance(one, AdoptKey)]) is bool(kept)
    assert bool([one for one in log if isinstance(one, MakeKey)]) is not bool(kept)
    assert not kept or world.secrets == keys
    assert world.condition("Degraded")["status"] == "False"
