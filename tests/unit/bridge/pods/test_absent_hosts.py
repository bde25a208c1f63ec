"""Kubernetes Nodes that are gone while Slurm still has their nodes: it asks no machine whether it is there."""

from __future__ import annotations

from typing import Any

import pytest
from typing_extensions import override

from slinky_operator.bridge.pods.absent_hosts import GONE_S, MOST_ASKED, REMEMBERED, VALID_S, AbsentHosts
from slinky_operator.bridge.pods.model.lift import WAITS_S
from slinky_operator.bridge.pods.model.membership import INDEX
from slinky_operator.bridge.pods.model.snapshot import Absent
from slinky_operator.bridge.pods.model.steps import AGAIN_S, ASK_S, FIRST_PAUSE_S, LONGEST_PAUSE_S
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import NODES
from tests.unit.bridge.pods.test_components import member, pod_group
from tests.unit.bridge.pods.worlds import REQUESTS, Kube, World, pins

GONE = "Slurm has given job 7 Kubernetes Nodes that do not exist: "


@pytest.fixture
def world() -> World:
    return World()


def others(world: World, known: Object) -> list[Object]:
    """SlurmJobs beside one."""
    return [one for one in world.slurmjobs() if one["metadata"]["name"] != known["metadata"]["name"]]


def index_of(pod: Object) -> int:
    return int(pod["metadata"]["annotations"][INDEX])


def evicted(world: World) -> list[str]:
    return [verb for verb in world.kube.writes if verb.startswith("evict")]


async def second_job(world: World, first: Object, pause: float = LONGEST_PAUSE_S) -> Object:
    """End a job in Slurm, and return the next one."""
    _ = world.slurm(first, "Failed")
    await world.settle(pause)
    (second,) = others(world, first)
    return second


async def test_a_job_on_a_node_that_is_gone_ends_and_the_next_one_places_the_pod(world: World) -> None:
    world.pod()
    await world.settle()
    first = world.slurmjob
    world.lose("k1")
    _ = world.runs(first, ("k1",))
    await world.settle()
    assert world.condition("p")["reason"] == "NodeGone"
    assert world.condition("p")["message"].startswith(f"{GONE}k1; ")
    # It may register again.
    await world.settle(GONE_S / 2)
    assert "ended" not in world.slurmjob["spec"]["external"]
    await world.settle(GONE_S / 2)
    assert world.slurmjob["spec"]["external"]["ended"]["comment"] == "Nodes do not exist: k1"
    assert not world.lifted()
    second = await second_job(world, first)
    _ = world.runs(second, ("k2",))
    await world.settle()
    assert pins(world.find("p")) == ["k2"]


async def test_a_node_that_comes_back_places_the_pod(world: World) -> None:
    world.pod()
    await world.settle()
    world.lose("k1")
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    await world.settle(GONE_S / 2)
    world.kube.put(NODES, {"metadata": {"name": "k1"}})
    await world.settle(ASK_S)
    assert pins(world.find("p")) == ["k1"]
    assert (world.condition("p")["reason"], world.condition("p")["status"]) == ("Placed", "True")


async def test_a_pod_whose_node_goes_before_it_is_bound_is_evicted(world: World) -> None:
    """Its pin is for ever, and Kubernetes deletes only those that a Node had."""
    world.kube.binds = False
    world.pod()
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    await world.settle(WAITS_S)
    assert not evicted(world)
    world.lose("k1")
    await world.settle(AGAIN_S)
    assert not evicted(world)
    await world.settle(GONE_S)
    assert world.find("p")["metadata"]["deletionTimestamp"]
    words = "Slurm has placed it on Kubernetes Node k1, which does not exist any more"
    assert world.events.all[-1] == ("p", "EvictedBySlurm", words)
    world.gone("p")
    await world.settle(AGAIN_S)
    assert "ended" in world.slurmjob["spec"]["external"]


async def test_a_pod_that_was_bound_meanwhile_is_not_evicted(world: World) -> None:
    world.kube.binds = False
    pod = world.pod()
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    world.lose("k1")
    await world.settle(WAITS_S)
    world.kube.is_late = True
    found = world.find("p")
    world.kube.put(world.kube._resources["pods"], {**found, "spec": {**found["spec"], "nodeName": "k1"}})
    world.tick(GONE_S)
    for key in world.every_key():
        _ = await world.look(key)
    assert not evicted(world)
    world.kube.is_late = False
    await world.settle(GONE_S)
    assert world.find("p")["metadata"]["uid"] == pod["metadata"]["uid"]
    assert not evicted(world)


@pytest.mark.parametrize("state", ["Running", "Suspended", "Unknown"])
async def test_a_pod_that_is_not_bound_is_looked_at_again_whatever_its_job_does(world: World, state: str) -> None:
    world.kube.binds = False
    world.pod()
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    _ = world.slurm(world.slurmjob, state)
    await world.settle()
    assert AGAIN_S in {(await world.look(key)).requeue_after for key in set(world.every_key())}


async def test_a_node_that_only_the_cache_lacks_and_one_of_a_pod_that_runs_change_nothing(world: World) -> None:
    world.pod("bound")
    await world.settle()
    first = world.slurmjob
    _ = world.runs(first, ("k1",))
    await world.settle()
    world.lose("k1")
    world.pod("waits")
    await world.settle()
    (second,) = others(world, first)
    _ = world.hosts.remove({"metadata": {"name": "k2"}})
    _ = world.runs(second, ("k2",))
    await world.settle()
    await world.settle(2 * WAITS_S)
    assert sorted(world.lifted()) == ["bound", "waits"]
    assert not evicted(world)


async def test_a_cache_that_is_behind_ends_no_job_whose_pods_were_placed_just_now(world: World) -> None:
    """The pods say so first, for this job: an earlier one may have had such a Node, too."""
    _ = world.job(pods=2)
    await world.settle()
    first = world.slurmjob
    world.lose("k1")
    _ = world.runs(first, ("k1", "k2"))
    await world.settle()
    await world.settle(GONE_S)
    second = await second_job(world, first, FIRST_PAUSE_S)
    for pod in world.kube.pods():
        # As it is where the first one ended quickly.
        about = {"reason": "NodeGone", "message": f"{GONE}k1; the job ends", "status": "False"}
        _ = world.set_pod(pod, conditions=[{**world.condition(pod["metadata"]["name"]), **about}])
    _ = world.runs(second, ("k2", "k3"))
    _ = world.slurm(second, "Running", jobId=8)
    world.kube.show_all()
    world.kube.is_late = True
    for key in world.every_key():
        _ = await world.look(key)
    assert len(world.lifted()) == 2
    world.lose("k3")
    world.kube.show("nodes")
    for _ in range(3):
        for key in world.every_key():
            _ = await world.look(key)
        world.tick(GONE_S)
    world.kube.is_late = False
    await world.settle()
    assert not any("ended" in one["spec"]["external"] for one in others(world, first))
    assert not evicted(world)


async def test_of_a_group_that_runs_no_pod_comes_to_a_node_that_is_gone(world: World) -> None:
    job = world.job(pods=2)
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1", "k2"))
    await world.settle()
    (lost,) = (one for one in world.kube.pods() if pins(one) == ["k2"])
    world.lose("k2")
    world.gone(lost)
    world.pod_of(job, index_of(lost), name="again")
    await world.settle()
    await world.settle(2 * GONE_S)
    assert world.condition("again")["message"] == f"{GONE}k2; the pod waits until that job ends"
    assert "ended" not in world.slurmjob["spec"]["external"]
    assert len(world.lifted()) == 1


@pytest.mark.parametrize("code", [0, 1])
async def test_a_group_of_which_no_pod_lives_any_more_gets_another_job(world: World, code: int) -> None:
    job = world.job(pods=2, backoffLimit=9)
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1", "k2"))
    await world.settle()
    (lost,) = (one for one in world.kube.pods() if pins(one) == ["k2"])
    (over,) = (one for one in world.kube.pods() if pins(one) == ["k1"])
    world.lose("k2")
    world.gone(lost)
    world.pod_of(job, index_of(lost), name="again")
    world.ends(over, code)
    await world.settle()
    await world.settle(GONE_S)
    assert world.slurmjob["spec"]["external"]["ended"]["comment"] == "Nodes do not exist: k2"


async def test_pods_of_which_any_may_be_any_task_get_those_on_nodes_that_are_there_first(world: World) -> None:
    pod_group(world, 4)
    for name in "abcd":
        member(world, name, REQUESTS)
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1", "k2"))
    await world.settle()
    for name, other in (("a", "e"), ("c", "f")):
        world.gone(name)
        member(world, other, REQUESTS)
    world.lose("k1")
    await world.settle()
    assert {name: world.condition(name)["reason"] for name in "ef"} == {"e": "Placed", "f": "NodeGone"}
    assert pins(world.find("e")) == ["k2"]


# Who is asked for


class Clock:
    at = 0.0

    def __call__(self) -> float:
        return self.at


class Counted(Kube):
    """Counts what is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    @override
    async def get(self, resource: Any, name: str, namespace: str | None = None) -> Object:
        self.asked.append(name)
        if name == "no/name":
            raise ValueError(name)
        return await super().get(resource, name, namespace)


@pytest.fixture
def kube() -> Counted:
    return Counted()


async def test_a_pass_asks_for_a_few_and_the_next_ones_for_the_others(kube: Counted) -> None:
    clock, names = Clock(), [f"k{number}" for number in range(10)]
    absent = AbsentHosts(kube, kube.cache(NODES), clock)
    found: list[Absent] = []
    for _ in range(3):
        found.append(await absent.find(names))
        clock.at += 1.0
    assert kube.asked == names
    assert [len(one.missing) for one in found] == [MOST_ASKED, 2 * MOST_ASKED, 10]
    assert [len(one.unsure) for one in found] == [6, 2, 0]
    assert all(one.all == set(names) for one in found)
    clock.at = GONE_S
    assert len((await absent.find(names)).gone) == MOST_ASKED
    assert kube.asked == names
    clock.at = VALID_S
    assert len((await absent.find(names)).gone) == 10
    assert kube.asked == [*names, *names[:MOST_ASKED]]


async def test_what_the_cache_lacks_and_the_api_server_has_is_there(kube: Counted) -> None:
    clock = Clock()
    store = kube.cache(NODES)
    absent = AbsentHosts(kube, store, clock)
    kube.is_late = True
    kube.put(NODES, {"metadata": {"name": "k1"}})
    assert await absent.find(["k1", "no/name"]) == Absent()
    clock.at = 2 * GONE_S
    kube.drop(NODES, {"metadata": {"name": "k1"}})
    assert (await absent.find(["k1"])) == Absent(missing=frozenset({"k1"}))


async def test_a_node_that_was_back_for_a_moment_is_waited_for_again(kube: Counted) -> None:
    clock = Clock()
    store = kube.cache(NODES)
    absent = AbsentHosts(kube, store, clock)
    assert (await absent.find(["k1"])).missing
    clock.at = GONE_S / 2
    kube.put(NODES, {"metadata": {"name": "k1"}})
    assert await absent.find(["k1"]) == Absent()
    kube.drop(NODES, {"metadata": {"name": "k1"}})
    clock.at = GONE_S
    assert await absent.find(["k1"]) == Absent(missing=frozenset({"k1"}))


async def test_answers_have_a_bound(kube: Counted) -> None:
    absent = AbsentHosts(kube, kube.cache(NODES), Clock())
    for number in range(REMEMBERED + 10):
        _ = await absent.find([f"k{number}"])
    assert len(absent._answers) == REMEMBERED
