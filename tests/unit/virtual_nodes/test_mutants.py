"""The tests of virtual Nodes are effective: each broken rule is caught by the test that the table names."""

from __future__ import annotations

import inspect
from typing import Any, Final

import pytest

from tests.unit.virtual_nodes.mutants.table import MUTANTS, Mutant
from tests.unit.virtual_nodes.pods.worlds import PodWorld, pod_world

pytestmark = pytest.mark.thorough

TELLS: Final = (AssertionError, KeyError, ValueError)
"""How a test fails: what it compares differs, or is not there."""

MOST_PASSES: Final = 300
"""Passes after which what a test waits for does not come."""


def bounded(patch: pytest.MonkeyPatch) -> None:
    """Let a test that waits for ever fail: passes are counted, not seconds."""
    real, count = PodWorld.passes, 0

    async def passes(self: PodWorld) -> None:
        nonlocal count
        count += 1
        assert count < MOST_PASSES
        await real(self)

    patch.setattr(PodWorld, "passes", passes)


async def run(mutant: Mutant, given: dict[str, Any], *, needs_world: bool) -> None:
    if needs_world:
        async with pod_world() as world:
            running = mutant.test(world, **given)
            if running is not None:
                await running
    elif (running := mutant.test(**given)) is not None:
        await running


@pytest.mark.parametrize("name", MUTANTS)
async def test_a_test_tells_of_the_mutant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    wants = inspect.signature(mutant.test).parameters
    given: dict[str, Any] = {**mutant.given, **({"monkeypatch": monkeypatch} if "monkeypatch" in wants else {})}
    bounded(monkeypatch)
    mutant.break_rule(monkeypatch)
    with pytest.raises(TELLS):
        await run(mutant, given, needs_world="world" in wants)
