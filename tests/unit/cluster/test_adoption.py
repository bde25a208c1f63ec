"""A recreated Cluster: what the former one of its name has left is taken over unchanged."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster import adoption
from slinky_operator.cluster.actions import (
    Action,
    AdoptKey,
    MakeKey,
    Reload,
    Remove,
    ReplacePod,
    StartPreflight,
    TearDown,
    Write,
)
from slinky_operator.cluster.daemons import shared_objects
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.reconcile.writes.children import is_current
from tests.unit.cluster.world import World, cluster_object, node_set_object

SPEC = {"extraConf": "SchedulerType=sched/builtin"}


def readied(world: World) -> World:
    assert world.controller_pod is not None
    world.controller_pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return world


def left() -> World:
    """A world after its managed Cluster has lost its finalizer, and was deleted while pods live."""
    world = World()
    world.add(node_set_object("compute"))
    world.settle()
    world.pods = ["compute-0"]
    return readied(world)


def restarted(world: World) -> World:
    """The same with another operator, which remembers nothing."""
    world.memory, world.slurm = Memory(world.raw["metadata"]["uid"]), None
    return world


def succeeded(world: World, spec: dict[str, Any] | None = None) -> World:
    """The same with the next Cluster of the name."""
    world.raw = cluster_object(spec, uid="next-uid")
    return restarted(world)


def uids(world: World) -> set[str]:
    children = {one["metadata"]["labels"][labels.LABEL_CLUSTER_UID] for one in world.children.values()}
    return children | set(world.owners.values())


def test_everything_is_taken_over_and_nothing_is_made_or_ended() -> None:
    world = left()
    keys, pod, before = copy.deepcopy(world.secrets), world.controller_pod, set(world.children)
    template = copy.deepcopy(world.children["StatefulSet", "slurm-controller"]["spec"])

    done = succeeded(world).settle()

    assert uids(world) == {"next-uid"}
    assert world.raw["status"]["isReady"] is True
    assert world.raw["status"]["config"]["nodeSets"] == ["compute"]
    assert (world.secrets, set(world.children)) == (keys, before)
    assert world.controller_pod is pod
    assert world.children["StatefulSet", "slurm-controller"]["spec"] == template
    assert not [one for one in done if isinstance(one, MakeKey | ReplacePod | Remove | StartPreflight)]


def test_nothing_selects_by_the_uid_of_a_cluster() -> None:
    first, second = (Cluster.parse(cluster_object(uid=uid)) for uid in ("one", "two"))
    for make in (shared_objects.node_service, shared_objects.disruption_budget):
        assert make(first)["spec"] == make(second)["spec"]


def test_a_selector_that_somebody_has_narrowed_is_put_right() -> None:
    world = left()
    budget = world.children["PodDisruptionBudget", "slurm-jobs"]
    budget["spec"]["selector"]["matchLabels"]["more"] = "label"
    assert not is_current(shared_objects.disruption_budget(Cluster.parse(world.raw)), budget)
    world.settle()
    assert "more" not in world.children["PodDisruptionBudget", "slurm-jobs"]["spec"]["selector"]["matchLabels"]


@pytest.mark.parametrize("good", [True, False])
def test_a_slurmctld_that_was_left_counts_as_running(good: bool) -> None:
    world = left()
    if not good:
        del world.children["ConfigMap", "slurm-config-good"]
    world.refuses = lambda text: "no such plugin" if "sched/builtin" in text else ""
    before = world.slurm_conf

    done = succeeded(world, SPEC).settle()

    assert [one for one in done if isinstance(one, StartPreflight)]
    assert world.slurm_conf == before
    assert world.condition("ConfigApplied")["reason"] == "ConfigRefused"


def test_what_runs_is_told_though_the_new_spec_is_refused() -> None:
    world = succeeded(left(), {"extraConf": "Include /etc/passwd"})

    world.settle()

    config = world.raw["status"]["config"]
    assert config["nodeSets"] == ["compute"]
    assert config["appliedHash"] != ""
    assert world.condition("ConfigApplied")["reason"] == "ConfigRefused"


def test_a_partition_with_jobs_is_closed_before_it_goes_here_too() -> None:
    world = World(cluster_object({"partitions": [{"name": "both", "nodeSets": ["compute"]}]}))
    world.add(node_set_object("compute"))
    world.settle()

    done = succeeded(readied(world)).settle()

    texts = [one.child.body["data"]["slurm.conf"] for one in configs(done)]
    assert any("PartitionName=both Nodes=compute State=INACTIVE" in one for one in texts)
    assert "PartitionName=both" not in world.slurm_conf


def configs(actions: Iterable[Action]) -> list[Write]:
    """Writes of the configuration that slurmctld mounts."""
    return [one for one in actions if isinstance(one, Write) and one.child.key == ("ConfigMap", "slurm-config")]


def test_nodesets_are_in_what_runs_at_every_moment() -> None:
    world = succeeded(left())
    for _ in range(20):
        world.step()
        assert "NodeSet=compute" in world.slurm_conf
    assert world.raw["status"]["config"]["nodeSets"] == ["compute"]


def test_an_operator_that_dies_after_any_step_leaves_what_the_next_one_completes() -> None:
    steps = [one for one in succeeded(left()).settle() if isinstance(one, AdoptKey | Write | Reload)]
    for lived in range(len(steps)):
        world = succeeded(left())
        count = 0
        while count < lived:
            for action in world.plan().actions:
                world.happen(action)
                count += isinstance(action, AdoptKey | Write | Reload)
                if count >= lived:
                    break
            world.now += 0.5
        restarted(world).settle()
        assert uids(world) == {"next-uid"}, lived
        assert world.raw["status"]["isReady"] is True, lived


def test_a_cluster_elsewhere_takes_over_service_and_budget() -> None:
    spec = {"server": "http://there:6820", "token": {"secretRef": "mine"}}
    token = {"mine": {"auth-token": b"SLURM_JWT=abc"}}
    world = World(cluster_object(spec), secrets=token, meant_for={"mine": "http://there:6820"})
    world.settle()
    succeeded(world, spec).settle()
    assert set(world.children) == {("Service", "slurm-nodes"), ("PodDisruptionBudget", "slurm-jobs")}
    assert uids(world) == {"next-uid"}


def test_deletion_takes_along_what_was_left_and_not_yet_taken_over() -> None:
    world = succeeded(left())
    world.raw["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [labels.FINALIZER_CLUSTER]}
    assert not any(isinstance(one, TearDown) for one in world.plan().actions)
    world.pods = []
    (tear_down,) = world.plan().actions
    assert isinstance(tear_down, TearDown)
    names = {name for _, name, _ in tear_down.children}
    assert {"slurm-controller", "slurm-config", "slurm-jobs", "slurm-auth-slurm", "slurm-auth-jwt"} <= names


def changed(**own: str | None) -> Callable[[], dict[str, Any]]:
    given = {
        labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY,
        labels.LABEL_CLUSTER_NAME: "slurm",
        labels.LABEL_CLUSTER_UID: "former",
    }
    return lambda: {key: value for key, value in {**given, **own}.items() if value is not None}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (changed(), True),
        (changed(**{labels.LABEL_CLUSTER_NAME: "slurm-2"}), False),
        (changed(**{labels.LABEL_CLUSTER_NAME: None}), False),
        (changed(**{labels.LABEL_CLUSTER_UID: None}), False),
        (changed(**{labels.LABEL_CLUSTER_UID: "cluster-uid"}), False),
        (changed(**{labels.LABEL_APP_MANAGED_BY: "Helm"}), False),
        (dict, False),
    ],
)
def test_what_was_left_is_told_by_all_of_our_labels(own: Callable[[], dict[str, Any]], expected: bool) -> None:
    obj = {"metadata": {"name": "slurm-nodes", "labels": own()}}
    assert adoption.is_left(obj, Cluster.parse(cluster_object())) is expected


def test_an_event_names_some_and_counts_the_rest() -> None:
    words = adoption.told(tuple(f"ConfigMap c-{number}" for number in range(12)))
    assert words.endswith("ConfigMap c-8, ConfigMap c-9 and 2 more")
