"""The tests of groups whose pods differ are effective: each broken rule is caught by the test that the table names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

import pytest

from slinky_operator.bridge.pods.model import components, group_owners, slurmjobs
from tests.unit.bridge.pods import test_components
from tests.unit.bridge.pods.worlds import World

pytestmark = pytest.mark.thorough

Break = Callable[[pytest.MonkeyPatch], None]


def every_component_fits(patch: pytest.MonkeyPatch) -> None:
    """What a pod asks for is not compared."""
    patch.setattr(components, "fitting", lambda request, job: tuple(range(len(job.parts))))


def components_share_their_nodes(patch: pytest.MonkeyPatch) -> None:
    """The nodes of the whole job are given out from the first on."""

    def slots(job: Any) -> list[str]:
        return [one.node for one in job.status.allocation or () for _ in range(one.cpus)][: job.tasks]

    patch.setattr(slurmjobs, "slots", slots)


def pods_without_the_label_are_waited_for(patch: pytest.MonkeyPatch) -> None:
    """Every Job of a JobSet counts."""
    patch.setattr(group_owners, "_has_label", lambda _: False)


def any_order_will_do(patch: pytest.MonkeyPatch) -> None:
    """That pods come one after the other is not seen."""
    patch.setattr(group_owners, "_order", lambda *_: None)


MUTANTS: Final[Mapping[str, tuple[Break, Callable[[World], Awaitable[None]]]]] = {
    "every component fits": (
        every_component_fits,
        test_components.test_pods_without_ranks_are_placed_in_their_own_components,
    ),
    "components share their nodes": (
        components_share_their_nodes,
        test_components.test_a_driver_and_its_workers_are_one_job_of_two_components,
    ),
    "pods without the label are waited for": (
        pods_without_the_label_are_waited_for,
        test_components.test_jobs_that_run_without_slurm_are_not_waited_for,
    ),
    "any order will do": (
        any_order_will_do,
        partial(
            test_components.test_pods_that_come_only_once_others_run_are_refused,
            spec={"startupPolicy": {"startupPolicyOrder": "InOrder"}},
            workers={},
            path="spec.startupPolicy",
        ),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
async def test_a_test_tells_of_the_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    break_rule, test = MUTANTS[name]
    await test(World())
    break_rule(monkeypatch)
    with pytest.raises((AssertionError, ValueError)):
        await test(World())
