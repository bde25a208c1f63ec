"""Drains that exceed their timeout, on a real API server; Slurm and the machines are simulated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from slinky_operator.kube.resources import EVENTS
from tests.integration.nodeset.conftest import Site, reason, up
from tests.integration.nodeset.machines import Machines


def gone(site: Site) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        return await site.names() == []

    return check


async def told(site: Site, *words: str) -> bool:
    events = (await site.kube.list(EVENTS, site.namespace)).items
    return any(
        event["reason"] == "DrainTimedOut" and all(word in event["message"] for word in words) for event in events
    )


@pytest.mark.parametrize(
    ("on_timeout", "words", "end"),
    [("Cancel", "are cancelled", "CANCELLED"), ("Requeue", "are requeued", "PENDING")],
)
async def test_jobs_that_have_had_their_time_are_ended_as_asked_for(
    site: Site, machines: Machines, on_timeout: str, words: str, end: str
) -> None:
    await up(site, 1)
    job = site.slurm.add_job(nodes=["a-0"])
    await site.apply(0, drain={"timeout": "1s", "onTimeout": on_timeout})

    await site.until(gone(site), "the pod is gone")

    assert site.slurm.jobs[job.id].state.base == end
    await site.until(lambda: not site.slurm.nodes, "and its record")
    await site.until(lambda: told(site, "a-0", f"jobs {job.id}", words), "an Event names node and job")


async def test_the_default_waits_and_says_so(site: Site, machines: Machines) -> None:
    await up(site, 1)
    job = site.slurm.add_job(nodes=["a-0"])
    await site.apply(0, drain={"timeout": "1s"})

    async def late() -> bool:
        condition = await site.condition("Draining")
        return condition.get("reason") == "DrainTimedOut" and f"job {job.id} " in condition["message"]

    await site.until(late, "the condition says so")
    assert site.slurm.jobs[job.id].is_running
    assert await site.names() == ["a-0"]
    site.slurm.finish_job(job.id)
    await site.until(gone(site), "it goes when its job has ended")


async def test_force_gives_the_pod_up_with_its_jobs(site: Site, machines: Machines) -> None:
    await up(site, 1)
    job = site.slurm.add_job(nodes=["a-0"], requeue=False)
    await site.apply(0, drain={"timeout": "1s", "onTimeout": "Force"})

    await site.until(gone(site), "the pod is gone")
    await site.until(lambda: not site.slurm.nodes, "and its record, after the job was taken back")
    assert site.slurm.jobs[job.id].state.base == "NODE_FAIL"
    await site.until(lambda: told(site, "a-0", "deleted with the jobs"), "an Event says so")


async def test_a_job_that_cannot_be_requeued_is_waited_for_and_told(site: Site, machines: Machines) -> None:
    await up(site, 1)
    fixed = site.slurm.add_job(nodes=["a-0"], requeue=False, cpus=1)
    interactive = site.slurm.add_job(nodes=["a-0"], batch=False, cpus=1)
    await site.apply(0, drain={"timeout": "1s", "onTimeout": "Requeue"})

    async def late() -> bool:
        condition = await site.condition("Draining")
        return "waited for" in condition.get("message", "") and condition["reason"] == "DrainTimedOut"

    await site.until(late, "the condition names them")
    assert site.slurm.jobs[fixed.id].is_running
    assert site.slurm.jobs[interactive.id].is_running
    assert await site.names() == ["a-0"]


async def test_the_time_goes_on_while_the_operator_is_away(site: Site, machines: Machines) -> None:
    await up(site, 1)
    job = site.slurm.add_job(nodes=["a-0"])
    await site.apply(0, drain={"timeout": "1h", "onTimeout": "Cancel"})
    await site.until(lambda: reason(site, "a-0"), "it drains")

    await site.crash()
    # What is left of its time is less than any test waits.
    pass_by(site, "a-0", timedelta(minutes=59, seconds=58))
    begun = site.slurm.nodes["a-0"].reason_changed_at
    await site.start()

    await site.until(lambda: not site.slurm.jobs[job.id].is_running, "the job is cancelled")
    node = site.slurm.nodes.get("a-0")
    assert node is None or node.reason_changed_at == begun


def pass_by(site: Site, name: str, time: timedelta) -> None:
    """Let time pass since a node was drained."""
    begun = site.slurm.nodes[name].reason_changed_at
    assert begun is not None
    site.slurm.update_node(name, reason_changed_at=begun - time)


async def test_the_drain_of_an_administrator_has_no_deadline_of_ours(site: Site, machines: Machines) -> None:
    await up(site, 2)
    job = site.slurm.add_job(nodes=["a-0"])
    site.slurm.update_node("a-0", state="ALLOCATED+DRAIN+DYNAMIC_NORM", reason="mine")
    ours = site.slurm.add_job(nodes=["a-1"])
    await site.apply(0, drain={"timeout": "1s", "onTimeout": "Cancel"})

    await site.until(lambda: not site.slurm.jobs[ours.id].is_running, "the other one's job is cancelled")

    assert site.slurm.jobs[job.id].is_running
    assert reason(site, "a-0") == "mine"
    assert await site.names() in (["a-0"], ["a-0", "a-1"])


async def test_by_a_clock_that_is_fast_no_job_loses_its_time(site: Site, machines: Machines) -> None:
    await up(site, 1)
    await site.crash()
    site.ahead = timedelta(hours=2)
    await site.start()
    job = site.slurm.add_job(nodes=["a-0"])
    before = asked_for_the_time(site)

    await site.apply(0, drain={"timeout": "1h", "onTimeout": "Cancel"})

    await site.until(lambda: asked_for_the_time(site) > before + 1, "Slurm was asked for its time")
    assert site.slurm.jobs[job.id].is_running
    pass_by(site, "a-0", timedelta(hours=1, seconds=1))
    await site.until(gone(site), "by Slurm's clock its time has come")
    assert site.slurm.jobs[job.id].state.base == "CANCELLED"


def asked_for_the_time(site: Site) -> int:
    return sum(1 for request in site.slurm.requests if "/diag" in request.path)
