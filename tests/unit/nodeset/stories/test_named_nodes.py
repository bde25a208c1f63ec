"""Records of nodes without a pod that jobs name: kept, reported, used again, deleted once nothing names them."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.nodeset.execute.queries import slurm_queries
from slinky_operator.nodeset.slurm_nodes import drains
from tests.unit.nodeset.simulation import harness, settling
from tests.unit.nodeset.simulation.harness import Run
from tests.unit.nodeset.simulation.state import WorldJob
from tests.unit.nodeset.simulation.world import World

ALL = ("a-0", "a-1", "a-2")
"""Of nodes that are named alike the one with the highest ordinal goes first."""


async def three() -> tuple[World, Run]:
    """Three idle nodes a-0 to a-2."""
    world = await settling.begin()
    return world, Run(world)


def submit(world: World, *required: str, excluded: tuple[str, ...] = ()) -> WorldJob:
    """A job that waits and names nodes."""
    job = WorldJob(world.next(), (), "PENDING", set(), required=required, excluded=excluded)
    world.jobs.append(job)
    return job


async def go_on(run: Run, passes: int = 12) -> None:
    """Kubelets, slurmds and the controller do what there is to do."""
    world = run.world
    for _ in range(passes):
        world.do_come_up(0)
        for index in range(3):
            world.do_kubelet_ends(index)
        world.do_claims_go(0)
        world.do_poll(0)
        run.see(len(world.log))
        run.hear_slurm()
        world.do_time(0)
        if run.awake:
            await run.one_pass()
        world.do_reconfigure(0)
        run.check()


def condition(world: World, kind: str) -> dict[str, Any]:
    assert world.nodeset is not None
    found = world.nodeset["status"]["conditions"]
    return next((one for one in found if one["type"] == kind), {})


async def test_the_record_of_a_named_node_stays_drained_and_goes_with_the_last_job_that_names_it() -> None:
    world, run = await three()
    jobs = [submit(world, *ALL), submit(world, excluded=ALL)]
    world.do_scale(2)

    await go_on(run)

    assert sorted(world.pods) == ["a-0", "a-1"]
    assert world.records["a-2"].drain
    told = f"a-2 (required by job {jobs[0].id}, excluded by job {jobs[1].id})"
    kept = condition(world, "RecordsKept")
    assert (kept["status"], kept["reason"]) == ("True", "NodesNamed")
    assert kept["message"].endswith(told)
    assert condition(world, "Degraded")["status"] == "False"
    assert condition(world, "Ready")["status"] == "True"
    jobs[0].end("COMPLETED")
    await go_on(run)
    assert "a-2" in world.records
    jobs[1].end("CANCELLED")
    await go_on(run)
    assert "a-2" not in world.records
    assert condition(world, "RecordsKept") == {}


async def test_a_pod_of_that_name_uses_the_record_and_is_undrained_once_it_has_registered() -> None:
    world, run = await three()
    submit(world, *ALL)
    world.do_scale(2)
    await go_on(run)
    before = world.records["a-2"]

    world.do_scale(3)
    run.see(len(world.log))
    world.do_poll(0)
    for _ in range(3):
        await run.one_pass()
        run.see(len(world.log))
    assert "a-2" in world.pods
    # Slurm would start jobs on a node without a slurmd.
    assert world.records["a-2"].drain
    await go_on(run)
    assert world.records["a-2"] is before
    assert not before.drain
    assert before.slurmd == world.uid_of("a-2")
    assert condition(world, "RecordsKept") == {}


async def test_the_record_of_a_lost_pod_is_drained_until_its_successor_is_there() -> None:
    world, run = await three()
    submit(world, "a-1")
    world.do_user_deletes_pod(1)
    reasons: list[str] = []
    drain = run.slurm.drain_nodes

    async def drained(names: Any, reason: str) -> None:
        reasons.append(reason)
        await drain(names, reason)

    run.slurm.drain_nodes = drained  # type: ignore[method-assign]
    await go_on(run)

    assert reasons == [drains.reason([drains.Cause.NO_POD], "ns/a")]
    assert sorted(world.pods) == ["a-0", "a-1", "a-2"]
    assert not world.records["a-1"].drain


async def test_of_idle_nodes_those_that_nothing_names_go_first() -> None:
    world, run = await three()
    submit(world, "a-2")
    submit(world, excluded=("a-1",))
    world.do_scale(2)

    await go_on(run)

    assert sorted(world.pods) == ["a-1", "a-2"]
    assert set(world.records) == {"a-1", "a-2", "a-b-0"}


async def test_an_update_replaces_pods_and_keeps_the_records_that_jobs_name() -> None:
    world, run = await three()
    submit(world, *ALL)
    before = dict(world.records)
    world.do_edit(0)

    await go_on(run, passes=60)

    assert {world.image_of(name) for name in world.pods} == {"v0"}
    assert all(world.records[name] is before[name] for name in ("a-0", "a-1", "a-2"))
    assert not any(one.drain for one in world.records.values())


async def test_a_nodeset_that_is_deleted_waits_for_the_jobs_that_name_its_nodes() -> None:
    world, run = await three()
    job = submit(world, "a-1")
    world.do_delete(0)

    await go_on(run)

    assert world.pods == {}
    assert set(world.records) == {"a-1", "a-b-0"}
    assert "no pod is left; records of nodes without a pod" in condition(world, "Progressing")["message"]
    assert run.awake
    job.end("CANCELLED")
    await go_on(run)
    assert world.nodeset is None
    assert set(world.records) == {"a-b-0"}


async def test_a_nodeset_whose_jobs_are_given_up_goes_and_leaves_the_records_that_jobs_of_others_name() -> None:
    world, run = await three()
    submit(world, "a-1")
    world.do_delete(0)
    world.do_give_up(0)
    warned: list[str] = []
    run.controller._recorder.warning = lambda obj, reason, message: warned.append(message)  # type: ignore[method-assign]

    await go_on(run)

    assert world.nodeset is None
    assert set(world.records) == {"a-1", "a-b-0"}
    assert "scontrol delete nodename=a-1" in warned[-1]


async def test_what_names_a_node_since_the_plan_was_made_keeps_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the plan and the deletion Slurm is asked again; and the NodeSet does not go without its record."""
    world, run = await three()
    real = slurm_queries.about_records

    async def about_records(slurm: Any, names: Any) -> slurm_queries.Answer:
        if not any(job.names("a-2") for job in world.jobs):
            submit(world, "a-2")
        return await real(slurm, names)

    monkeypatch.setattr(slurm_queries, "about_records", about_records)
    world.do_delete(0)

    await go_on(run)

    assert set(world.records) == {"a-2", "a-b-0"}
    assert world.nodeset is not None
    assert condition(world, "RecordsKept")["message"].endswith(f"a-2 (required by job {world.jobs[-1].id})")
    # Nobody makes the node again before the NodeSet has gone.
    told = condition(world, "Progressing")["message"]
    assert "A pending job that requires one of them waits for ever: 'scontrol update jobid=" in told


async def test_a_kept_record_causes_a_pass_every_half_minute_and_no_more() -> None:
    world, run = await three()
    submit(world, *ALL)
    world.do_scale(2)
    await go_on(run)

    result = await run.controller.reconcile(harness.OWN_KEY)

    assert result.requeue_after == 30.0


async def test_without_an_answer_of_slurm_the_condition_stays() -> None:
    world, run = await three()
    submit(world, *ALL)
    world.do_scale(2)
    await go_on(run)
    before = condition(world, "RecordsKept")

    world.do_fault(1)
    world.do_poll(0)
    run.hear_slurm()
    await run.one_pass()

    assert condition(world, "SlurmReachable")["status"] == "False"
    assert condition(world, "RecordsKept") == before != {}
