"""Passes of autoscaling: what is asked, written and shown, and what keeps it from acting."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from slinky_api.conditions import LONGEST_AS_EXPECTED
from slinky_operator.autoscaling import controller
from slinky_operator.autoscaling.rules import demand
from slinky_operator.autoscaling.rules.effort import Effort
from slinky_operator.runtime import threads
from slinky_operator.slurm.connection.contact import Contact, ContactState
from slurm_client import errors
from tests.unit.autoscaling.worlds import START, World, node, partition, pending, running

DELAY, IDLE = 120.0, 60.0


@pytest.fixture
def world() -> World:
    made = World()
    made.nodeset("cpu", replicas=0)
    return made


async def test_an_array_scales_from_zero_and_says_why(world: World) -> None:
    world.slurm.jobs = [pending(7, array_job_id=7, array_tasks="0-5", cpus=2)]
    await world.step()
    assert world.replicas() == 3
    shown = world.status()
    assert (shown["active"], shown["wanted"], shown["reason"]) == (True, 3, "NodesWanted")
    assert "counted: pending jobs 7" in shown["message"]
    assert world.events.told == [("Normal", "Autoscaled", "replicas 0 -> 3: for pending jobs 7 (6 in all)")]
    assert world.kube.objects["nodesets", "ns", "cpu"]["metadata"]["annotations"] == {
        "nodeset.slinky.slurm.net/autoscaled-replicas": "3"
    }


async def test_unset_replicas_begin_at_the_minimum() -> None:
    world = World()
    world.nodeset("cpu", autoscaling={"minReplicas": 1, "maxReplicas": 4})
    await world.step()
    assert world.replicas() == 1
    assert world.events.told == [("Normal", "Autoscaled", "replicas unset -> 1: minReplicas, headroom")]


async def test_one_look_at_the_jobs_serves_all_nodesets_and_comes_in_turn(world: World) -> None:
    world.nodeset("gpu", replicas=0, gres="gpu:2")
    due = await world.step()
    assert world.slurm.asked == 1
    assert due is not None
    assert await world.step(due / 2) == pytest.approx(due / 2)
    assert world.slurm.asked == 1
    await world.step(due / 2)
    assert world.slurm.asked == 2


async def test_nodes_go_after_the_idle_time_and_not_before_the_delay(world: World) -> None:
    world.slurm.jobs = [pending(1, node_count=2, max_nodes=2)]
    await world.step()
    assert world.replicas() == 2
    world.run(node("cpu-0"), node("cpu-1"))
    world.slurm.jobs = []
    await world.step(10)
    await world.step(IDLE + 1)
    assert world.replicas() == 2
    await world.step(DELAY)
    assert world.replicas() == 0
    assert world.events.told[-1] == ("Normal", "Autoscaled", "replicas 2 -> 0: 0 wanted, the others had no job")


async def test_replicas_that_were_set_are_counted_by_direction(world: World) -> None:
    assert world.changed() == (0, 0)
    world.slurm.jobs = [pending(1, node_count=3, max_nodes=3)]
    await world.step()
    assert world.changed() == (3, 0)
    world.run(*(node(f"cpu-{number}") for number in range(3)))
    world.slurm.jobs = [running(1, "cpu-0")]
    for _ in range(3):
        await world.step(DELAY)
    assert world.replicas() == 1
    assert world.changed() == (3, 2)
    # What others set is not counted.
    world.change(replicas=4)
    await world.step(5)
    assert world.changed() == (3, 2)


async def test_the_time_of_the_last_look_stays_while_slurm_does_not_answer(world: World) -> None:
    looks = [world.slurm.queue_at]
    for fails in (None, errors.ClientClosed("gone"), None):
        world.slurm.fails = fails
        await world.step(100)
        looks.append(world.slurm.queue_at)
    first = world.seconds - 200
    assert looks == [None, first, first, first + 200]


async def test_without_a_nodeset_to_scale_there_is_no_last_look(world: World) -> None:
    await world.step()
    world.change(autoscaling=None)
    await world.step(100)
    assert world.slurm.queue_at is None


async def test_a_wall_clock_that_jumps_removes_nothing(world: World) -> None:
    world.slurm.jobs = [pending(1)]
    await world.step()
    world.slurm.jobs = []
    world.run(node("cpu-0"))
    await world.step(5)
    world.wall += timedelta(days=1)
    await world.step(5)
    world.wall -= timedelta(days=2)
    await world.step(5)
    assert world.replicas() == 1


@pytest.mark.parametrize("state", [ContactState.UNREACHABLE, ContactState.CONNECTING])
async def test_without_slurm_nothing_scales_and_it_says_so(world: World, state: ContactState) -> None:
    world.change(replicas=2)
    world.slurm.contact = Contact(state, START, "connection refused")
    for _ in range(5):
        await world.step(1000)
    assert world.replicas() == 2
    assert world.slurm.asked == 0
    shown = world.status()
    assert shown["active"] is False
    assert "nothing is scaled" in shown["message"]


async def test_an_answer_that_fails_scales_nothing(world: World) -> None:
    world.change(replicas=2)
    world.slurm.fails = errors.ClientClosed("half an answer")
    for _ in range(3):
        await world.step(1000)
    assert world.replicas() == 2
    assert (world.status()["reason"], world.status().get("wanted")) == ("SlurmUnreachable", None)
    assert "half an answer" in world.status()["message"]


async def test_replicas_that_somebody_sets_stay_for_the_delay_and_autoscaling_goes_on_from_there(world: World) -> None:
    world.slurm.jobs = [pending(1)]
    await world.step()
    world.change(replicas=3)
    await world.step(5)
    assert world.replicas() == 3
    assert (world.status()["active"], world.status()["reason"]) == (False, "ScaledByOthers")
    assert "someone else set replicas to 3, which is kept for 120s" in world.status()["message"]
    assert world.events.told[-1][:2] == ("Warning", "ScaledByOthers")
    await world.step(DELAY - 10)
    assert world.replicas() == 3
    await world.step(11)
    await world.step(5)
    assert (world.replicas(), world.status()["active"]) == (3, True)
    await world.step(IDLE + 1)
    assert world.replicas() == 1


async def test_zero_set_by_hand_is_not_raised_at_once(world: World) -> None:
    world.slurm.jobs = [pending(1)]
    await world.step()
    world.change(replicas=0)
    await world.step(5)
    await world.step(30)
    assert world.replicas() == 0
    await world.step(DELAY)
    await world.step(5)
    await world.step(5)
    assert world.replicas() == 1


def written_by(manager: str, subresource: str = "scale") -> dict[str, Any]:
    return {
        "manager": manager,
        "subresource": subresource,
        "operation": "Update",
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
    }


async def test_an_autoscaler_of_pods_beside_it_stops_it(world: World) -> None:
    await world.step()
    world.slurm.jobs = [pending(1)]
    world.change(replicas=2)
    world.kube.objects["nodesets", "ns", "cpu"]["metadata"]["managedFields"] = [written_by("kube-controller-manager")]
    for _ in range(4):
        await world.step(DELAY)
    assert world.replicas() == 2
    assert (world.status()["active"], world.status()["reason"]) == (False, "OtherAutoscaler")
    assert "delete the HorizontalPodAutoscaler" in world.status()["message"]
    world.kube.objects["nodesets", "ns", "cpu"]["metadata"]["managedFields"] = [written_by("kubectl")]
    world.change(replicas=0)
    for _ in range(3):
        await world.step(DELAY + 1)
    assert world.replicas() == 1


async def test_a_change_at_the_same_moment_is_not_overwritten(world: World) -> None:
    world.slurm.jobs = [pending(1)]
    put = world.kube.merge_patch

    async def raced(*arguments: Any, **options: Any) -> Any:
        world.kube.merge_patch = put  # type: ignore[method-assign]
        world.change(replicas=3)
        return await put(*arguments, **options)

    world.kube.merge_patch = raced  # type: ignore[method-assign]
    due = await world.step()
    assert world.replicas() == 3
    assert due is not None
    assert due <= 1
    assert not world.events.told


async def test_on_each_node_it_is_not_supported(world: World) -> None:
    world.nodeset("every", status={"scalingMode": "DaemonSet"})
    world.slurm.jobs = [pending(1, where="every")]
    await world.step()
    assert world.replicas("every") is None
    assert world.status("every")["reason"] == "NotSupported"


async def test_a_job_that_can_never_run_is_named_once(world: World) -> None:
    world.slurm.jobs = [pending(9, node_count=5, max_nodes=5), pending(10, features="other")]
    await world.step()
    assert world.replicas() == 0
    assert world.status()["reason"] == "JobsImpossible"
    assert "jobs 9, 10 can never run" in world.status()["message"]
    await world.step(10)
    assert [reason for _, reason, _ in world.events.told] == ["JobsImpossible"]


async def test_a_job_beyond_the_maximum_waits(world: World) -> None:
    world.slurm.jobs = [pending(1, node_count=3, max_nodes=3, cpus=12), pending(2, node_count=2, max_nodes=2, cpus=8)]
    await world.step()
    assert world.replicas() == 3
    assert world.status()["reason"] == "MaximumReached"
    assert "at maxReplicas 4 there is no room yet for job 2" in world.status()["message"]


async def test_left_out_jobs_are_counted_by_reason(world: World) -> None:
    held = pending(1, hold=True, state_reason="JobHeldUser")
    later = pending(2, eligible_time=START + timedelta(hours=1), state_reason="BeginTime")
    others = [
        pending(3 + place, state_reason=why) for place, why in enumerate(("Dependency", "QOSMaxJobsPerUserLimit"))
    ]
    world.slurm.jobs = [
        held,
        later,
        *others,
        pending(9, reservation="maintenance"),
        pending(10, licenses="x", state_reason="Licenses"),
    ]
    await world.step()
    assert world.replicas() == 0
    assert "not counted, by reason: BeginTime 1, Dependency 1, JobHeldUser 1, Licenses 1" in world.status()["message"]


@pytest.mark.parametrize(
    ("words", "replicas"),
    [
        ("ReqNodeNotAvail, Reserved for maintenance", 0),
        ("ReqNodeNotAvail,_Reserved_for_maintenance", 0),
        ("ReqNodeNotAvail, UnavailableNodes:x", 1),
    ],
)
async def test_a_job_that_reaches_into_a_maintenance_window_needs_no_nodes(
    world: World, words: str, replicas: int
) -> None:
    world.slurm.jobs = [pending(1, state_reason="ReqNodeNotAvail", state_description=words)]
    await world.step()
    assert world.replicas() == replicas
    assert ("not counted, by reason: Reserved for maintenance 1" in world.status()["message"]) is (replicas == 0)


async def test_what_is_as_expected_is_told_in_a_sentence(world: World) -> None:
    """It becomes the condition `Autoscaling`, which is read most often when nothing is wrong."""
    world.slurm.jobs = [pending(number, hold=True, state_reason=f"{number}{'x' * 300}") for number in range(1, 9)]
    await world.step()
    assert world.status()["reason"] == "AsExpected"
    assert world.status()["message"].startswith("0 replicas wanted; 0 nodes have jobs; not counted, by reason: ")
    assert len(world.status()["message"]) <= LONGEST_AS_EXPECTED


async def test_headroom_and_cost(world: World) -> None:
    world.nodeset("cheap", replicas=0)
    world.change("cheap", annotations={"nodeset.slinky.slurm.net/cost": "1.5"})
    world.change("cpu", annotations={"nodeset.slinky.slurm.net/cost": "2"})
    world.slurm.all_partitions = [partition("both", "cpu,cheap")]
    world.slurm.jobs = [pending(1, where="both")]
    await world.step()
    assert (world.replicas("cheap"), world.replicas("cpu")) == (1, 0)
    world.change(
        "cpu", annotations={"nodeset.slinky.slurm.net/cost": "little"}, autoscaling={"maxReplicas": 4, "headroom": 2}
    )
    await world.step(5)
    assert world.replicas("cpu") == 2
    assert "is not a number" in world.status()["message"]


async def test_nodes_with_jobs_and_nodes_that_start_count_before_new_ones(world: World) -> None:
    world.change(replicas=2)
    world.run(node("cpu-0", base="MIXED", alloc_cpus=2))
    world.slurm.jobs = [running(1, "cpu-0"), pending(2, cpus=2), pending(3, cpus=4), pending(4, cpus=1)]
    await world.step()
    assert world.replicas() == 3


async def test_a_node_that_leaves_when_its_job_has_ended_is_not_called_back(world: World) -> None:
    reason = "slurm-operator: scale-in (ns/cpu)"
    world.run(node("cpu-0", "DRAIN", base="ALLOCATED", alloc_cpus=4, reason=reason))
    world.slurm.jobs = [running(1, "cpu-0")]
    await world.step()
    assert (world.replicas(), world.status()["wanted"]) == (0, 0)
    world.slurm.jobs = [running(1, "cpu-0"), pending(2)]
    await world.step(5)
    assert world.replicas() == 1


async def test_a_partition_of_all_nodes_has_those_that_may_come(world: World) -> None:
    world.slurm.all_partitions = [partition("all", "ALL")]
    world.slurm.jobs = [pending(1, where="all")]
    await world.step()
    assert world.replicas() == 1


async def test_nodes_out_of_service_are_replaced_when_they_are_missed(world: World) -> None:
    world.change(replicas=2)
    world.run(node("cpu-0", base="DOWN"), node("cpu-1"))
    world.slurm.jobs = [pending(1, node_count=2, max_nodes=2)]
    await world.step()
    assert world.replicas() == 3


async def test_a_stream_of_texts_is_not_a_stream_of_writes(world: World) -> None:
    world.change(replicas=1)
    world.run(node("cpu-0"))
    versions = set()
    for number in range(20):
        world.slurm.jobs = [pending(number + 1)]
        await world.step(3)
        versions.add(world.status()["message"])
    assert len(versions) <= 3


async def test_a_cluster_that_goes_is_forgotten(world: World) -> None:
    await world.step()
    world.kube.objects["nodesets", "ns", "cpu"]["spec"].pop("autoscaling")
    world.change()
    assert await world.step(10) is None


async def test_a_count_that_was_cut_short_lowers_nothing_raises_and_says_why(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "Effort", partial(Effort, steps=100))
    world.change(replicas=2)
    world.run(node("cpu-0"), node("cpu-1"))
    world.slurm.jobs = [pending(number, user="eve", memory_per_node_mib=2000 + number) for number in range(1, 500)]
    for _ in range(4):
        assert await world.step(DELAY + IDLE) is not None
    assert world.replicas() == 2
    shown = world.status()
    assert (shown["active"], shown["reason"]) == (True, "CountIncomplete")
    assert "not counted: the count was ended after 100 steps; replicas are not lowered until all" in shown["message"]
    assert [event[:2] for event in world.events.told] == [("Warning", "CountIncomplete")]
    # The jobs of others are counted all the same, and nodes are made for them.
    world.slurm.jobs = [*world.slurm.jobs, pending(900, user="alice", cpus=12, priority=5)]
    await world.step(DELAY)
    assert world.replicas() == 3
    assert world.status()["reason"] == "CountIncomplete"
    # Idle time begins once all jobs have been counted.
    world.slurm.jobs = []
    await world.step(DELAY)
    assert world.replicas() == 3
    await world.step(IDLE + 1)
    assert world.replicas() == 0


async def test_a_count_that_was_given_up_is_not_begun_again_before_it_has_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end, counts = threading.Event(), threading.Event(), []
    real = demand.count

    def slow(*given: Any) -> Any:
        counts.append(1)
        begun.set()
        assert may_end.wait(60)
        return real(*given)

    monkeypatch.setattr(controller, "SMALL", -1)
    monkeypatch.setattr(demand, "count", slow)
    world.slurm.jobs = [pending(1)]
    given_up = asyncio.create_task(world.step())
    assert await asyncio.get_running_loop().run_in_executor(None, begun.wait, 60)
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    for _ in range(5):
        due = await world.step(60)
        assert due is not None
        assert due >= controller.RETRY_S
    assert (len(counts), world.slurm.asked, world.replicas()) == (1, 1, 0)
    assert world.status()["message"].startswith("an earlier count of the jobs of this Cluster still runs")
    may_end.set()
    while threads.COUNTS.has(("ns", "cluster-uid")):  # noqa: ASYNC110 - a thread sets no event of the loop
        await asyncio.sleep(0)
    await world.step(60)
    assert (len(counts), world.replicas()) == (2, 1)
