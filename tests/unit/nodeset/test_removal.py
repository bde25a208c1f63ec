"""Deletes of pods: what they are sent with, and for how long an answer of Slurm's is a reason for one."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from slinky_operator.kube.expectations import Expectations
from slinky_operator.kube.store import Store
from slinky_operator.nodeset import removal
from slinky_operator.nodeset.facts import Pod
from slinky_operator.nodeset.means import Outcome

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
        outcome=Outcome(),
        say=lambda *words: None,
    )


async def test_nothing_is_deleted_by_an_answer_that_has_become_old() -> None:
    kube = Kube(takes=8.0)
    means = means_with(kube, kube.clock)

    done = await removal.delete(means, [(pod, None) for pod in PODS], until=kube.time + 10.0)

    assert kube.sent == ["uid-0", "uid-1"]
    assert done == PODS[:2]
    (why,) = means.outcome.kept
    assert "a-2" in why
    assert not means.outcome.errors


async def test_a_delete_is_not_repeated_beyond_the_time_of_its_answer() -> None:
    class Stuck:
        async def delete(self, *given: Any, **named: Any) -> None:
            await asyncio.Event().wait()

    means = means_with(Stuck(), lambda: 100.0)

    assert await removal.delete(means, [(PODS[0], None)], until=100.01) == []
    assert len(means.outcome.kept) == 1
    # The next pass does not wait for an end that may never come.
    assert means.expectations.satisfied("set")


async def test_what_needs_no_answer_has_no_end() -> None:
    kube = Kube(takes=1000.0)
    means = means_with(kube, kube.clock)

    assert await removal.delete(means, [(pod, None) for pod in PODS]) == PODS
