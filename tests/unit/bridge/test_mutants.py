"""The tests of the bridge's nodes are effective: each broken rule is caught by the test that the table names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import pytest

from slinky_operator.bridge.nodes import execute, observation, pod_requests
from slinky_operator.bridge.nodes.model import plan
from tests.unit.bridge.nodes import test_passes, test_random
from tests.unit.bridge.nodes.worlds import external

pytestmark = pytest.mark.thorough

Break = Callable[[pytest.MonkeyPatch], None]


def every_external_node_is_ours(patch: pytest.MonkeyPatch) -> None:
    """The mark is not looked at: nodes of another Kubernetes cluster on the same Slurm go."""
    for module in (plan, execute, observation):
        patch.setattr(module, "is_ours", lambda node, mark: node.is_external)


def slurmds_are_ours(patch: pytest.MonkeyPatch) -> None:
    """A name is enough."""
    for module in (plan, execute, observation):
        patch.setattr(module, "is_ours", lambda node, mark: True)


def jobs_are_not_asked_for(patch: pytest.MonkeyPatch) -> None:
    """What the list of nodes shows is believed, and Slurm's refusal is relied on."""
    patch.setattr(execute, "held_nodes", lambda jobs: frozenset())


def drains_of_others_are_ours(patch: pytest.MonkeyPatch) -> None:
    """Any drain is undone, and any drained node deleted."""
    patch.setattr(plan, "is_others_drain", lambda node: False)


def whatever_is_drained_is_undrained(patch: pytest.MonkeyPatch) -> None:
    """The reason of a drain is not read."""
    patch.setattr(plan, "DRAINED", "")
    patch.setattr(execute, "DRAINED", "")


def another_size_counts_at_once(patch: pytest.MonkeyPatch) -> None:
    """A device plugin starts again, and the node is deleted and made."""
    patch.setattr(plan, "SETTLED_S", 0.0)


def silence_counts_at_once(patch: pytest.MonkeyPatch) -> None:
    """Slurm gets no time to reach its own address."""
    patch.setattr(plan, "SILENT_S", 0.0)


def pods_are_listed_without_a_bound(patch: pytest.MonkeyPatch) -> None:
    """All Nodes at once."""
    patch.setattr(pod_requests, "AT_ONCE", 5_000)


MUTANTS: Final[Mapping[str, tuple[Break, Callable[..., Awaitable[None]], Mapping[str, Any]]]] = {
    "every external node is ours": (
        every_external_node_is_ours,
        test_passes.test_a_node_of_slurm_that_is_not_ours_is_told_and_never_touched,
        {"theirs": external("kn-1", "bridge")},
    ),
    "slurmds are ours": (
        slurmds_are_ours,
        test_passes.test_a_node_of_slurm_that_is_not_ours_is_told_and_never_touched,
        {"theirs": test_random.THEIRS_OF_A_NODESET},
    ),
    "jobs are not asked for": (
        jobs_are_not_asked_for,
        test_passes.test_a_job_that_the_list_of_nodes_does_not_show_keeps_its_node,
        {},
    ),
    "drains of others are ours": (
        drains_of_others_are_ours,
        test_passes.test_drains_of_others_stay_and_keep_their_nodes,
        {"reason": "memory is broken"},
    ),
    "whatever is drained is undrained": (
        whatever_is_drained_is_undrained,
        test_passes.test_drains_of_others_stay_and_keep_their_nodes,
        {"reason": "memory is broken"},
    ),
    "another size counts at once": (
        another_size_counts_at_once,
        test_passes.test_a_size_that_comes_and_goes_changes_nothing,
        {},
    ),
    "silence counts at once": (
        silence_counts_at_once,
        test_passes.test_a_node_that_responds_again_by_itself_stays,
        {},
    ),
    "pods are listed without a bound": (
        pods_are_listed_without_a_bound,
        test_passes.test_nodes_are_made_one_by_one_and_pods_are_listed_at_a_bounded_rate,
        {},
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
async def test_a_test_tells_of_the_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    break_rule, test, given = MUTANTS[name]
    break_rule(monkeypatch)
    with pytest.raises((AssertionError, KeyError)):
        await test(**given)
