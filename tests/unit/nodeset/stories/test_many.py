"""Passes over many pods: they are fewer, and their rules do not block the event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from slinky_operator.nodeset import controller
from slinky_operator.nodeset.planning import plan
from slinky_operator.nodeset.report import status
from tests.unit.nodeset.simulation import harness, settling
from tests.unit.nodeset.simulation.histories import history
from tests.unit.nodeset.simulation.objects import NAMESPACE, NODESET


async def test_changes_are_gathered_for_longer_the_more_pods_there_are() -> None:
    world = await settling.begin(keeps_instance=False)
    run = harness.Run(world)
    result = await run.controller.reconcile((NAMESPACE, NODESET))
    assert world.pods
    assert result.rest == pytest.approx(controller.GATHERING * len(world.pods))


@pytest.mark.parametrize(("long", "elsewhere"), [(1, True), (controller.THREAD_THRESHOLD_PODS, False)])
async def test_rules_over_many_pods_are_left_to_a_thread(
    monkeypatch: pytest.MonkeyPatch, long: int, elsewhere: bool
) -> None:
    world = await settling.begin(keeps_instance=False)
    seen: dict[str, int] = {}

    def watched(name: str, rules: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            seen[name] = threading.get_ident()
            return rules(*args)

        return call

    monkeypatch.setattr(controller, "THREAD_THRESHOLD_PODS", long)
    monkeypatch.setattr(controller, "plan", watched("plan", plan.plan))
    monkeypatch.setattr(status, "report", watched("status", status.report))
    await harness.Run(world).controller.reconcile((NAMESPACE, NODESET))

    assert seen.keys() == {"plan", "status"}
    assert {one != threading.get_ident() for one in seen.values()} == {elsewhere}


async def test_histories_with_rules_in_a_thread_settle_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "THREAD_THRESHOLD_PODS", 1)
    world = await settling.begin(keeps_instance=False)
    for seed in range(20):
        await settling.live(world, history(seed))
