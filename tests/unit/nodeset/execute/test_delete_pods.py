"""Deletes of pods: their preconditions, and for how long an answer from Slurm justifies one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from typing_extensions import override

from slinky_api.v1alpha1.nodeset.spec import Drain, OnTimeout
from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.cache.expectations import Expectations
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.errors import Target
from slinky_operator.kube.resources import NODESETS
from slinky_operator.metrics.changes import Changes
from slinky_operator.nodeset.execute import delete_pods, slurm_writes
from slinky_operator.nodeset.execute.context import PassOutcome
from slinky_operator.nodeset.execute.queries import slurm_queries
from slinky_operator.nodeset.model.actions import EndDrains
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.slurm_nodes import drains
from slurm_client import errors
from slurm_client.models import Diag, Job, Node, Reservation
from slurm_client.models.job import JobState
from slurm_client.models.node import NodeState
from tests.unit.nodeset.builders import ANSWERS

PODS = [Pod(f"a-{number}", f"a-{number}", f"uid-{number}") for number in range(3)]
OF_NODESET = Target("get", "nodesets", "ns", "a")


class Kube:
    """An API server that notes deletes; each takes some time by the clock, or never ends."""

    def __init__(self, takes: float) -> None:
        self.takes = takes
        self.time = 100.0
        self.sent: list[str] = []
        self.nodeset: Any = {"metadata": {"uid": "set"}}

    async def get(self, resource: Any, name: str, namespace: str) -> Any:
        assert (resource, name, namespace) == (NODESETS, "a", "ns")
        if isinstance(self.nodeset, Exception):
            raise self.nodeset
        return self.nodeset

    async def delete(self, resource: Any, name: str, namespace: str, *, uid: str, resource_version: Any) -> None:
        self.sent.append(uid)
        self.time += self.takes

    def clock(self) -> float:
        return self.time


def means_with(kube: Any, clock: Any) -> Any:
    return SimpleNamespace(
        kube=kube,
        clock=clock,
        nodeset=SimpleNamespace(uid="set", name="a", namespace="ns"),
        expectations=Expectations(Store()),
        outcome=PassOutcome(),
        changes=Changes(),
        say=lambda *words: None,
    )


async def test_nothing_is_deleted_by_an_answer_that_has_become_old() -> None:
    kube = Kube(takes=8.0)
    context = means_with(kube, kube.clock)

    done = await delete_pods.delete(context, [(pod, None) for pod in PODS], until=kube.time + 10.0)

    assert kube.sent == ["uid-0", "uid-1"]
    assert done == PODS[:2]
    (why,) = context.outcome.kept
    assert "a-2" in why
    assert not context.outcome.errors


async def test_a_delete_is_not_repeated_beyond_the_time_of_its_answer() -> None:
    class Stuck:
        async def delete(self, *given: Any, **named: Any) -> None:
            await asyncio.Event().wait()

    context = means_with(Stuck(), lambda: 100.0)

    assert await delete_pods.delete(context, [(PODS[0], None)], until=100.01) == []
    assert len(context.outcome.kept) == 1
    # The next pass does not wait for an end that may never come.
    assert context.expectations.satisfied("set")


async def test_what_needs_no_answer_has_no_end() -> None:
    kube = Kube(takes=1000.0)
    context = means_with(kube, kube.clock)

    assert await delete_pods.delete(context, [(pod, None) for pod in PODS]) == PODS


async def test_what_the_kubelet_says_of_an_eviction_is_told() -> None:
    kube, told = Kube(takes=0.0), list[tuple[Any, str]]()
    context = means_with(kube, kube.clock)
    context.warn = lambda *words: told.append(words)
    evicted = replace(PODS[0], host="w", eviction="The node was low on resource: ephemeral-storage.")

    await delete_pods.delete_idle(context, [evicted, PODS[1]])

    assert kube.sent == ["uid-0", "uid-1"]
    ((reason, message),) = told
    assert reason == "PodsEvicted"
    assert message == (
        "evicted by the kubelet, with their jobs: a-0 on Node w (The node was low on resource: ephemeral-storage.); "
        "their nodes are set DOWN, and Slurm requeues or fails the jobs"
    )


# jobs that are given up


class DrainCondition:
    """Means with a Slurm that holds these jobs, or does not answer."""

    def __init__(self, jobs: list[Job] | None) -> None:
        self.kube = Kube(takes=0.0)
        self.warnings: list[tuple[str, str]] = []
        self.context = means_with(self.kube, self.kube.clock)
        self.context.warn = lambda reason, words: self.warnings.append((reason, words))

        async def ask() -> list[Job]:
            if jobs is None:
                raise errors.Timeout("no answer " * 1000)
            return jobs

        self.context.reach = lambda: SimpleNamespace(jobs_with_nodes=ask)


def running(number: int, node: str) -> Job:
    return Job(id=number, nodes=(node,), state=JobState.from_words(("RUNNING",)))


async def test_jobs_that_are_given_up_are_named_before_their_pods_go() -> None:
    told = DrainCondition(
        [running(7, "a-0"), running(8, "a-1"), running(9, "elsewhere"), *(running(n, "a-1") for n in range(99))]
    )
    await delete_pods.give_up(told.context, PODS, "")
    ((reason, words),) = told.warnings
    assert reason == "JobsGivenUp"
    assert "a-0 (jobs 7), a-1 (jobs 8, 0, 1, 2, 3 and 95 more); once" in words
    assert "9" not in words.replace("95", "")
    assert "a-2" not in words
    assert told.kube.sent == [pod.uid for pod in PODS]


async def test_a_warning_about_many_nodes_is_bounded() -> None:
    pods = [Pod(f"a-{number}", f"a-{number}", f"uid-{number}") for number in range(3000)]
    told = DrainCondition([running(10**9 + number, f"a-{number}") for number in range(3000)])
    await delete_pods.give_up(told.context, pods, "")
    ((_, words),) = told.warnings
    assert "and 2990 more" in words
    assert len(words) < 1024


@pytest.mark.parametrize("blind", ["", "Slurm is away"])
async def test_a_slurm_that_cannot_be_asked_holds_up_nothing_and_that_is_told(blind: str) -> None:
    told = DrainCondition(None)
    pods = [*(replace(pod, registered=True) for pod in PODS[:2]), PODS[2]]
    await delete_pods.give_up(told.context, pods, blind)
    ((reason, words),) = told.warnings
    assert reason == "JobsGivenUp"
    assert "whatever jobs they hold: a-0, a-1; Slurm cannot be asked" in words
    assert (blind or "no answer") in words
    assert len(words) < 1024
    assert told.kube.sent == [pod.uid for pod in pods]


async def test_pods_without_jobs_are_no_warning() -> None:
    told = DrainCondition([running(7, "elsewhere")])
    await delete_pods.give_up(told.context, PODS, "")
    assert not told.warnings
    assert told.kube.sent == [pod.uid for pod in PODS]


# answers that take long


class SlowSlurm:
    """A Slurm whose jobs are read for minutes; the nodes change meanwhile."""

    contact = ANSWERS

    def __init__(self, before: dict[str, str], after: dict[str, str], jobs: tuple[Job, ...] = ()) -> None:
        self.kube = Kube(takes=0.0)
        self.answers = [before, after]
        self.jobs = jobs
        self.asked: list[float] = []
        self.context = means_with(self.kube, self.kube.clock)
        self.context.reach = lambda: self
        self.context.owner = "ns/a"
        self.context.now = lambda: datetime(2026, 1, 1, 12, tzinfo=UTC)
        self.context.changes = Changes()

    async def refresh(self, names: list[str]) -> dict[str, Node | None]:
        self.asked.append(self.kube.time)
        shown = self.answers[len(self.asked) - 1]
        return {name: slurm_node(name, shown[name]) if name in shown else None for name in names}

    async def jobs_with_nodes(self) -> tuple[Job, ...]:
        self.kube.time += 180.0
        return self.jobs


def slurm_node(name: str, words: str) -> Node:
    state = NodeState.from_words([*words.split("+"), "DYNAMIC_NORM"])
    reason = drains.reason((drains.Cause.SCALE_IN,), "ns/a") if "DRAIN" in words else ""
    return Node(name=name, state=state, extra="ns/a", instance_id=f"uid-{name[-1]}", reason=reason)


def started(number: int, **values: Any) -> Pod:
    name = f"a-{number}"
    given: dict[str, Any] = {"host": "host", "slurmd": Slurmd.RUNNING, "registered": True}
    return Pod(name, name, f"uid-{number}", ordinal=number, resource_version="7", **(given | values))


async def test_a_pod_is_deleted_although_the_jobs_are_read_for_minutes() -> None:
    slurm = SlowSlurm({"a-0": "IDLE+DRAIN"}, {"a-0": "IDLE+DRAIN"})
    await delete_pods.delete_checked(slurm.context, [started(0)])
    assert slurm.kube.sent == ["uid-0"]
    assert slurm.asked == [100.0, 280.0]


async def test_a_drain_that_was_lifted_while_jobs_were_read_keeps_the_pod() -> None:
    states = {"a-0": "IDLE+DRAIN", "a-1": "IDLE", "a-2": "IDLE+DRAIN"}
    later = {"a-0": "MIXED", "a-1": "IDLE+DRAIN", "a-2": "MIXED+DRAIN"}
    slurm = SlowSlurm(states, later)
    await delete_pods.delete_checked(slurm.context, [started(number) for number in range(3)])
    assert slurm.kube.sent == []
    assert len(slurm.context.outcome.kept) == 3


async def test_a_slurmd_that_registers_while_jobs_are_read_is_not_repaired() -> None:
    """Its job may have begun after the list of jobs."""
    since = datetime(2026, 1, 1, 11, tzinfo=UTC)
    pod = started(0, registered=False, slurmd_started_at=since, created_at=since)
    slurm = SlowSlurm({}, {"a-0": "MIXED"})
    await delete_pods.repair(slurm.context, [pod])
    assert slurm.kube.sent == []
    gone = SlowSlurm({}, {})
    gone.context.warn = lambda *_: None
    await delete_pods.repair(gone.context, [pod])
    assert gone.kube.sent == ["uid-0"]


# what the cache does not show


def unregistered(number: int, **values: Any) -> Pod:
    since = datetime(2026, 1, 1, 11, tzinfo=UTC)
    return started(number, registered=False, slurmd_started_at=since, created_at=since, **values)


def recording(ordinals: str) -> Any:
    """The NodeSet, whose status records pods as registered."""
    own = {"ordinals": ordinals, "createdUntil": "2026-01-01T11:00:00Z"}
    return {"metadata": {"uid": "set"}, "status": {"registered": own}}


async def deleted(nodeset: Any, what: str, *pods: Pod) -> list[str]:
    """Pods that are deleted; slurmctld has lost all nodes, and another operator was the leader a moment ago."""
    slurm = SlowSlurm({}, {})
    slurm.context.warn, slurm.context.steps, slurm.kube.nodeset = (lambda *_: None), {}, nodeset
    await getattr(delete_pods, what)(slurm.context, pods)
    assert len(slurm.kube.sent) + len(slurm.context.outcome.kept) <= len(pods)
    return slurm.kube.sent


@pytest.mark.parametrize("what", ["repair", "delete_checked", "delete_idle"])
async def test_a_pod_that_another_leader_has_recorded_as_registered_is_not_deleted(what: str) -> None:
    given: dict[str, Any] = {"slurmd": Slurmd.NEVER, "stuck": "ErrImagePull"} if what == "delete_idle" else {}
    pods = [unregistered(number, **given) for number in range(3)]

    assert await deleted(recording("1-2"), what, *pods) == ["uid-0"]
    assert await deleted(recording(""), what, *pods) == ["uid-0", "uid-1", "uid-2"]


@pytest.mark.parametrize("what", ["repair", "delete_checked", "delete_idle"])
async def test_nothing_is_deleted_without_the_nodesets_own_word(what: str) -> None:
    given: dict[str, Any] = {"slurmd": Slurmd.NEVER, "stuck": "ErrImagePull"} if what == "delete_idle" else {}
    gone = kube_errors.NotFound(OF_NODESET, "there is none", status=404)

    for nodeset in (gone, {"metadata": {"uid": "another"}}, recording("0" * 10_000)):
        assert await deleted(nodeset, what, unregistered(0, **given)) == []
    with pytest.raises(kube_errors.Unavailable):
        await deleted(
            kube_errors.Unavailable(OF_NODESET, "no connection", maybe_done=False), what, unregistered(0, **given)
        )


class Overdue(SlowSlurm):
    """A drain that has lasted too long, and a job that may have started again while jobs were read."""

    def __init__(self, listed: Job, now: Job) -> None:
        super().__init__({"a-0": "MIXED+DRAIN"}, {"a-0": "MIXED+DRAIN"}, (listed,))
        self.client = self
        self.now = now
        self.cancelled: list[int] = []
        spec = Drain(timeout=timedelta(minutes=1), on_timeout=OnTimeout.CANCEL)
        self.context.nodeset = SimpleNamespace(uid="set", namespace="ns", spec=SimpleNamespace(drain=spec))
        self.context.warn = lambda *_: None

    @override
    async def refresh(self, names: list[str]) -> dict[str, Node | None]:
        self.answers.append(self.answers[-1])
        found = await super().refresh(names)
        since = datetime(2026, 1, 1, 11, tzinfo=UTC)
        return {name: node and replace(node, reason_changed_at=since) for name, node in found.items()}

    async def diag(self) -> Diag:
        return Diag(now=datetime(2026, 1, 1, 12, tzinfo=UTC))

    async def job(self, job_id: int, *, details: bool) -> Job:
        return self.now

    async def cancel_job(self, job: Job) -> None:
        self.cancelled.append(job.id)


async def test_a_job_that_starts_again_while_jobs_are_read_is_not_cancelled() -> None:
    listed = Job(id=7, nodes=("a-0",), state=JobState("RUNNING"), start_time=datetime(2026, 1, 1, 10, tzinfo=UTC))
    action = EndDrains(((started(0), frozenset({drains.Cause.SCALE_IN})),))
    again = replace(listed, nodes=("b-0",), start_time=datetime(2026, 1, 1, 11, 59, tzinfo=UTC))
    for now, cancelled in ((listed, [7]), (again, [])):
        slurm = Overdue(listed, now)
        await slurm_writes.end_drains(slurm.context, action)
        assert slurm.cancelled == cancelled


class Reserving(SlowSlurm):
    """Somebody reserves a node while jobs are read."""

    namespace, name = "ns", "c"

    def __init__(self) -> None:
        super().__init__({"a-0": "IDLE"}, {})
        self.client = self
        self.reserved: list[Reservation] = []

    async def fresh_jobs(self) -> tuple[Job, ...]:
        self.reserved.append(Reservation(name="next", node_list="a-0", flags=frozenset({"SPEC_NODES"})))
        return await self.jobs_with_nodes()

    async def reservations(self) -> list[Reservation]:
        return list(self.reserved)


async def test_a_reservation_that_is_made_while_jobs_are_read_keeps_the_record() -> None:
    slurm: Any = Reserving()
    answer = await slurm_queries.about_records(slurm, ["a-0"])
    assert set(answer.named) == {"a-0"}
