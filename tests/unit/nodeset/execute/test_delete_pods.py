"""Deletes of pods: their preconditions, and for how long an answer from Slurm justifies one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from slinky_operator.kube.cache.expectations import Expectations
from slinky_operator.kube.cache.store import Store
from slinky_operator.metrics.changes import Changes
from slinky_operator.nodeset.execute import delete_pods
from slinky_operator.nodeset.execute.context import PassOutcome
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slurm_client import errors
from slurm_client.models import Job
from slurm_client.models.job import JobState

PODS = [Pod(f"a-{number}", f"a-{number}", f"uid-{number}") for number in range(3)]


class Kube:
    """An API server that notes deletes; each takes some time by the clock, or never ends."""

    def __init__(self, takes: float) -> None:
        self.takes = takes
        self.time = 100.0
        self.sent: list[str] = []

    async def delete(self, resource: Any, name: str, namespace: str, *, uid: str, resource_version: Any) -> None:
        self.sent.append(uid)
        self.time += self.takes

    def clock(self) -> float:
        return self.time


def means_with(kube: Any, clock: Any) -> Any:
    return SimpleNamespace(
        kube=kube,
        clock=clock,
        nodeset=SimpleNamespace(uid="set", namespace="ns"),
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
