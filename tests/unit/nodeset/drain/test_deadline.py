"""Drains that exceed their timeout: when it starts, and what is done about which jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from slinky_api.v1alpha1.nodeset.spec import Drain, OnTimeout
from slinky_operator.nodeset.drain import deadline
from slinky_operator.nodeset.drain.deadline import Overdue
from slinky_operator.nodeset.execute import end_jobs
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.report import troubles
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slurm_client import errors
from slurm_client.models import Job, Node
from slurm_client.models.job import JobState
from slurm_client.models.node import NodeState
from tests.unit.nodeset.builders import joined

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OWNER = "ns/a"
SCALE_IN = frozenset({Cause.SCALE_IN})
POD = Pod("a-0", "a-0", "u", host="host", slurmd=Slurmd.RUNNING, registered=True)


def node(*causes: Cause, age: float = 61, **values: Any) -> Node:
    given: dict[str, Any] = {
        "name": "a-0",
        "extra": OWNER,
        "instance_id": "u",
        "state": NodeState.from_words(["ALLOCATED", "DRAIN", "DYNAMIC_NORM"]),
        "reason": drains.reason(causes or SCALE_IN, OWNER),
        "reason_changed_at": NOW - timedelta(seconds=age),
    }
    return Node(**(given | values))


def job(number: int = 1, words: str = "RUNNING", **values: Any) -> Job:
    given: dict[str, Any] = {"nodes": ("a-0",), "batch": True, "requeue": True, **values}
    return Job(id=number, state=JobState.from_words(words.split("+")), **given)


def spec(on_timeout: OnTimeout = OnTimeout.WAIT, seconds: float | None = 60) -> Drain:
    return Drain(timeout=None if seconds is None else timedelta(seconds=seconds), on_timeout=on_timeout)


def late(record: Node, *jobs: Job, given: Drain, causes: frozenset[Cause] = SCALE_IN) -> list[Overdue]:
    return deadline.overdue([(joined(POD, record, *jobs), causes)], given, NOW)


def test_a_drain_counts_from_when_its_reason_was_written() -> None:
    assert deadline.left(node(age=59), SCALE_IN, spec(), NOW) == 2
    assert late(node(age=60), job(), given=spec()) == []
    (found,) = late(node(age=61), job(), given=spec())
    assert found.since == NOW - timedelta(seconds=61)
    assert not found.acts


@pytest.mark.parametrize("cause", sorted(drains.REMOVAL - {Cause.REPAIR}))
def test_every_removal_has_the_deadline(cause: Cause) -> None:
    assert late(node(cause), job(), given=spec(), causes=frozenset({cause}))


@pytest.mark.parametrize(
    ("record", "causes", "given"),
    [
        (node(Cause.CORDON), frozenset({Cause.CORDON}), spec(OnTimeout.FORCE)),
        (node(Cause.REPAIR), frozenset({Cause.REPAIR}), spec(OnTimeout.FORCE)),
        (node(Cause.REPAIR), SCALE_IN, spec(OnTimeout.FORCE)),
        # It was cordoned long ago and is to go since just now: the drain is written again first.
        (node(Cause.CORDON), SCALE_IN, spec(OnTimeout.FORCE)),
        (node(Cause.SCALE_IN), frozenset({Cause.CORDON}), spec(OnTimeout.FORCE)),
        (node(reason="an administrator's"), SCALE_IN, spec(OnTimeout.FORCE)),
        (node(extra="ns/a-b"), SCALE_IN, spec(OnTimeout.FORCE)),
        (node(reason_changed_at=None), SCALE_IN, spec(OnTimeout.FORCE)),
        (node(), SCALE_IN, spec(OnTimeout.FORCE, None)),
    ],
)
def test_nothing_else_has_one(record: Node, causes: frozenset[Cause], given: Drain) -> None:
    assert late(record, job(), given=given, causes=causes) == []


def test_a_drain_is_written_anew_when_what_it_is_for_changes_between_staying_and_going() -> None:
    cordon, both = frozenset({Cause.CORDON}), SCALE_IN | {Cause.CORDON}

    assert drains.needs_write(node(Cause.CORDON), SCALE_IN)
    assert drains.needs_write(node(Cause.SCALE_IN), cordon)
    assert not drains.needs_write(node(Cause.SCALE_IN), both)
    assert not drains.needs_write(node(Cause.SCALE_IN), frozenset({Cause.UPDATE}))
    assert not drains.needs_write(node(reason="an administrator's"), SCALE_IN)


def test_what_is_done_about_jobs() -> None:
    batch, interactive, fixed = job(1), job(2, batch=False), job(3, requeue=False)
    suspended, ending_already = job(4, "SUSPENDED"), job(5, "CANCELLED+COMPLETING")
    jobs = (batch, interactive, fixed, suspended, ending_already)

    (cancel,) = late(node(), *jobs, given=spec(OnTimeout.CANCEL))
    assert cancel.ends == (batch, interactive, fixed, suspended)
    (requeue,) = late(node(), *jobs, given=spec(OnTimeout.REQUEUE))
    assert (requeue.ends, requeue.stuck) == ((batch, suspended), (interactive, fixed))
    (force,) = late(node(), *jobs, given=spec(OnTimeout.FORCE))
    assert force.force
    assert not force.ends
    (over,) = late(node(), ending_already, given=spec(OnTimeout.CANCEL))
    assert not over.acts


@pytest.mark.parametrize(
    ("jobs", "downed"),
    [
        ([job(1), job(2)], True),
        ([job(1), job(2, requeue=False)], False),
        ([job(1), job(2, batch=False)], False),
        ([job(1), job(2, "COMPLETED+STAGE_OUT")], False),
        ([job(1), job(2, "CANCELLED+COMPLETING")], False),
    ],
)
def test_a_node_is_marked_down_only_if_that_requeues_every_job_on_it(jobs: list[Job], downed: bool) -> None:
    (found,) = late(node(), *jobs, given=spec(OnTimeout.REQUEUE))

    assert deadline.may_be_downed(found) is downed


class OldSlurm:
    """A slurmrestd before v0.0.45; notes the calls."""

    def __init__(self, error: errors.SlurmError | None = None) -> None:
        self.told: list[object] = []
        self.error = error or errors.NotSupported("no such call", available_in=["v0.0.45"])

    async def requeue_job(self, job: Job) -> None:
        raise self.error

    async def cancel_job(self, job: Job) -> None:
        self.told.append(job.alone)

    async def update_nodes(self, names: Any, *, state: str, reason: str | None = None) -> None:
        self.told.append((tuple(names), state, reason))


async def test_without_a_call_for_it_jobs_are_requeued_by_marking_their_node_down() -> None:
    old: Any = OldSlurm()
    found = late(node(), job(), given=spec(OnTimeout.REQUEUE))

    assert await end_jobs.end_jobs(old, OnTimeout.REQUEUE, found) == []
    assert old.told == [(("a-0",), "DOWN", None)]


async def test_without_a_call_for_it_nothing_is_done_where_another_job_would_die() -> None:
    old: Any = OldSlurm()
    found = late(node(), job(1), job(2, requeue=False), given=spec(OnTimeout.REQUEUE))

    (why,) = await end_jobs.end_jobs(old, OnTimeout.REQUEUE, found)

    assert "2" in why
    assert old.told == []


async def test_of_many_jobs_five_are_named_and_the_others_counted() -> None:
    old: Any = OldSlurm()
    many = [job(number) for number in range(1, 301)]
    stuck = [job(number, requeue=False) for number in range(301, 601)]
    (found,) = late(node(), *many, *stuck, given=spec(OnTimeout.REQUEUE))

    assert "jobs 1, 2, 3, 4, 5 and 295 more, since" in end_jobs.note(found, many)
    assert "jobs none known, since" in end_jobs.note(found, ())
    (why,) = await end_jobs.end_jobs(old, OnTimeout.REQUEUE, [found])
    assert why.endswith("others there: 301, 302, 303, 304, 305 and 295 more")
    told = troubles.overdue(found, spec(OnTimeout.REQUEUE))
    assert told.endswith("they are waited for: 301, 302, 303, 304, 305 and 295 more")
    kept = pod_state.why_kept(joined(POD, node(), *many), NOW)
    assert kept == "node a-0 holds jobs 1, 2, 3, 4, 5 and 295 more"


@pytest.mark.parametrize("error", [errors.InvalidRequest("batch jobs only"), errors.NotSupported("disabled")])
async def test_what_slurm_refuses_is_told(error: errors.SlurmError) -> None:
    slurm: Any = OldSlurm(error)
    found = late(node(), job(7), given=spec(OnTimeout.REQUEUE))

    (why,) = await end_jobs.end_jobs(slurm, OnTimeout.REQUEUE, found)

    assert "job 7 cannot be requeued" in why
    assert slurm.told == []


async def test_a_job_over_several_nodes_is_cancelled_once() -> None:
    slurm: Any = OldSlurm()
    other = Pod("a-1", "a-1", "v", host="host", slurmd=Slurmd.RUNNING, registered=True)
    wide = job(nodes=("a-0", "a-1"))
    members = joined(POD, node(), wide), joined(other, node(name="a-1", instance_id="v"), wide)
    found = deadline.overdue([(member, SCALE_IN) for member in members], spec(OnTimeout.CANCEL), NOW)

    await end_jobs.end_jobs(slurm, OnTimeout.CANCEL, found)

    assert slurm.told == ["1"]


async def test_of_an_array_only_the_task_is_ended_that_is_in_the_way() -> None:
    slurm: Any = OldSlurm()
    # Slurm gives the task that it starts last the id of the array.
    found = late(node(), job(7, array_job_id=7, array_task_id=3), given=spec(OnTimeout.CANCEL))

    await end_jobs.end_jobs(slurm, OnTimeout.CANCEL, found)

    assert slurm.told == ["7_3"]


async def test_a_job_that_is_gone_when_it_is_to_be_ended_is_none() -> None:
    slurm: Any = OldSlurm(errors.NotFound("job 1"))
    found = late(node(), job(), given=spec(OnTimeout.REQUEUE))

    assert await end_jobs.end_jobs(slurm, OnTimeout.REQUEUE, found) == []


async def test_a_job_that_runs_again_since_a_list_that_took_minutes_is_left_alone() -> None:
    first, second = NOW - timedelta(hours=1), NOW - timedelta(minutes=1)
    shown = {1: job(1, start_time=first), 2: job(2, start_time=second, nodes=("b-0",))}

    class Client:
        async def job(self, job_id: int, *, details: bool) -> Job:
            if job_id == 4:
                raise errors.Timeout("no answer")
            if job_id not in shown:
                raise errors.NotFound(f"job {job_id}")
            return shown[job_id]

    slurm: Any = SimpleNamespace(client=Client())
    listed = [job(number, start_time=first) for number in (1, 2, 3)]
    (found,) = await end_jobs.still_overdue(slurm, late(node(), *listed, given=spec(OnTimeout.CANCEL)))
    assert [one.id for one in found.ends] == [1]
    assert await end_jobs.still_overdue(slurm, late(node(), *listed[1:], given=spec(OnTimeout.CANCEL))) == []
    with pytest.raises(errors.Timeout):
        await end_jobs.still_overdue(slurm, late(node(), job(4), given=spec(OnTimeout.CANCEL)))


async def test_silence_is_no_answer() -> None:
    slurm: Any = OldSlurm(errors.Timeout("no answer"))
    found = late(node(), job(), given=spec(OnTimeout.REQUEUE))

    with pytest.raises(errors.Timeout):
        await end_jobs.end_jobs(slurm, OnTimeout.REQUEUE, found)
