"""The simulation is effective: it detects each broken rule, in a history that the rules as they are live through."""

from __future__ import annotations

import logging
from asyncio import Runner
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import pytest

from tests.unit.nodeset.mutants.table import BEGINNINGS, MUTANTS, OF_CHECKS, OF_HEALTH, OF_MACHINES, ON_HOSTS
from tests.unit.nodeset.simulation import harness, settling
from tests.unit.nodeset.simulation.histories import HISTORIES, history
from tests.unit.nodeset.simulation.steps import Step
from tests.unit.nodeset.simulation.world import World

pytestmark = pytest.mark.thorough

AT_MOST = 400
"""Histories in which a mutant must be noticed; most are within twenty."""

FURTHER = 60 if HISTORIES >= 20_000 else 0
"""In a full run, how many histories more the rules as they are live through for each mutant."""


History = tuple[World, Sequence[Step]]


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    logging.disable(logging.ERROR)
    try:
        with Runner() as one:
            yield one
    finally:
        logging.disable(logging.NOTSET)


@cache
def begun(runner: Runner, *, keeps_instance: bool, on_hosts: bool) -> World:
    """The world in which histories begin, as the rules that are not broken have made it."""
    return runner.run(settling.begin(keeps_instance=keeps_instance, on_hosts=on_hosts))


def beginnings(runner: Runner, name: str) -> list[World]:
    """Where the histories for a mutant begin."""
    return [begun(runner, keeps_instance=keeps, on_hosts=name in ON_HOSTS) for keeps in (False, True)]


def histories(runner: Runner, name: str, count: int) -> Iterator[History]:
    """Histories in which the mistake of a mutant shows more often than in others, with the worlds they begin in."""
    favoured, beginning, on_hosts = MUTANTS[name][1], BEGINNINGS.get(name, ()), name in ON_HOSTS
    begins = beginnings(runner, name)
    yield from ((begin, beginning) for begin in begins if beginning)
    for seed in range(count):
        yield (
            begins[seed % 2],
            history(
                seed,
                favoured,
                beginning=beginning,
                on_hosts=on_hosts,
                of_health=name in {*OF_HEALTH, *OF_CHECKS, *OF_MACHINES},
                of_checks=name in OF_CHECKS,
                of_machines=name in OF_MACHINES,
            ),
        )


def noticed(runner: Runner, lives: Iterable[History]) -> History | None:
    """Live through histories until the model notices something, and return the one in which it did."""
    for begin, steps in lives:
        try:
            runner.run(settling.live(begin, steps))
        except harness.Violated:
            return begin, steps
    return None


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", MUTANTS)
def test_the_model_notices(runner: Runner, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _ = beginnings(runner, name)
    with monkeypatch.context() as broken:
        MUTANTS[name][0](broken)
        found = noticed(runner, histories(runner, name, AT_MOST))
    assert found is not None
    # It is the mutant that was noticed, not the history.
    for begin, steps in (found, *histories(runner, name, FURTHER)):
        runner.run(settling.live(begin, steps))
