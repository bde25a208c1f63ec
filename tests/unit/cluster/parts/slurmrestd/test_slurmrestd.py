"""slurmrestd with several pods: where they run, which of them are called, and what is said of one that hangs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import Connect, UseReplicas
from slinky_operator.cluster.parts.slurmrestd.manifests import SLOW
from slinky_operator.slurm import naming
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import WALL, World

BUDGET = ("PodDisruptionBudget", "slurm-restapi")


def pod(
    name: str, address: str = "", *, ready: bool = True, phase: str = "Running", since: Any = WALL
) -> dict[str, Any]:
    return {
        "metadata": {"name": f"slurm-restapi-{name}", "namespace": "here", "creationTimestamp": "2025-01-01T00:00:00Z"},
        "status": {
            "phase": phase,
            "podIP": address,
            "conditions": [
                {"type": "Ready", "status": str(ready), "lastTransitionTime": since.isoformat()},
            ],
            "containerStatuses": [{"name": "slurmrestd", "started": True, "state": {"running": {}}}],
        },
    }


def with_pods(world: World, *pods: dict[str, Any]) -> World:
    world.daemon_pods = {naming.COMPONENT_RESTAPI: pods}
    return world


def routes(world: World) -> frozenset[str]:
    world.settle()
    assert world.slurm is not None
    return world.slurm.replicas


def test_several_pods_are_apart_and_evicted_one_at_a_time() -> None:
    world = settled({"restapi": {"replicas": 3}})
    budget = world.children[BUDGET]["spec"]
    deployment = world.children["Deployment", "slurm-restapi"]["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    own = deployment["template"]["metadata"]["labels"]
    assert budget["selector"]["matchLabels"].items() <= own.items()
    (node, zone) = deployment["template"]["spec"]["affinity"]["podAntiAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert node["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    assert zone["weight"] < node["weight"]
    assert node["podAffinityTerm"]["labelSelector"]["matchLabels"].items() <= own.items()


@pytest.mark.parametrize("replicas", [0, 1])
def test_a_single_pod_keeps_nobody_from_draining_its_node(replicas: int) -> None:
    world = settled({"restapi": {"replicas": 2}})
    assert BUDGET in world.children
    world.raw = {**world.raw, "spec": {"restapi": {"replicas": replicas}}}
    world.settle()
    assert BUDGET not in world.children
    # That of slurmd pods stays.
    assert [kind for kind, _ in world.children].count(BUDGET[0]) == 1


def test_what_the_template_says_of_places_wins() -> None:
    template = {"spec": {"affinity": {"podAntiAffinity": {"$patch": "replace"}}}}
    world = settled({"restapi": {"replicas": 2, "template": template}})
    affinity = world.children["Deployment", "slurm-restapi"]["spec"]["template"]["spec"]["affinity"]
    assert not affinity.get("podAntiAffinity")


def test_its_pods_are_called_and_not_the_service() -> None:
    world = with_pods(settled(), pod("a", "10.0.0.1"), pod("b", "fd00::7"))
    assert routes(world) == {"http://10.0.0.1:6820", "http://[fd00::7]:6820"}
    # Another key: the connection is made again, and goes there from the start.
    world.slurm = None
    made = world.plan()
    (connect,) = [one for one in made.actions if isinstance(one, Connect)]
    assert len(connect.replicas) == 2
    assert not [one for one in made.actions if isinstance(one, UseReplicas)]


def test_one_that_is_not_ready_is_called_only_if_none_is() -> None:
    world = with_pods(settled(), pod("a", "10.0.0.1", ready=False), pod("b", "10.0.0.2"))
    assert routes(world) == {"http://10.0.0.2:6820"}
    with_pods(world, pod("a", "10.0.0.1", ready=False), pod("b", "10.0.0.2", ready=False))
    assert routes(world) == {"http://10.0.0.1:6820", "http://10.0.0.2:6820"}


def test_the_address_of_a_pod_that_has_ended_may_be_anybodys() -> None:
    world = with_pods(settled(), pod("a", "10.0.0.1", phase="Failed"), pod("b"), pod("c", "10.0.0.3", phase="Pending"))
    assert routes(world) == frozenset()


def test_an_external_slurmrestd_is_called_at_its_url() -> None:
    world = settled()
    world.raw = {**world.raw, "spec": {"server": "http://there:6820", "auth": {"jwtKeyRef": {"name": "key"}}}}
    assert Cluster.parse(world.raw).spec.external
    world.secrets["key"] = {"jwt.key": b"k" * 32}
    with_pods(world, pod("a", "10.0.0.1"))
    made = world.plan()
    assert not [one for one in made.actions if isinstance(one, UseReplicas)]
    assert not any(one.replicas for one in made.actions if isinstance(one, Connect))


def test_one_that_hangs_is_reported_with_what_to_do() -> None:
    world = with_pods(
        settled({"restapi": {"replicas": 2}}),
        pod("a", "10.0.0.1", ready=False, since=WALL - SLOW - timedelta(seconds=1)),
        pod("b", "10.0.0.2"),
    )
    world.settle()
    degraded = world.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "DaemonStuck")
    assert "slurmrestd's pod slurm-restapi-a has not answered since" in degraded["message"]
    assert "kubectl -n here delete pod slurm-restapi-a" in degraded["message"]
    assert world.condition("Ready")["status"] == "True"


@pytest.mark.parametrize(
    "pods",
    [
        (pod("a", "10.0.0.1", ready=False, since=WALL - SLOW / 2), pod("b", "10.0.0.2")),
        # All of them: slurmctld is silent, and that is reported.
        (pod("a", "10.0.0.1", ready=False, since=WALL - 2 * SLOW),),
    ],
    ids=["for a moment", "all"],
)
def test_one_that_is_unready_for_another_reason_is_not(pods: tuple[dict[str, Any], ...]) -> None:
    world = with_pods(settled({"restapi": {"replicas": 2}}), *pods)
    world.settle()
    assert world.condition("Degraded")["status"] == "False"
