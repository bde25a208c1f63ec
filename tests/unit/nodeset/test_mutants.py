"""The simulation is effective: it detects each broken rule."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

import pytest

from tests.unit.nodeset.mutants.table import BEGINNINGS, MUTANTS, OF_CHECKS, OF_HEALTH, OF_MACHINES, ON_HOSTS
from tests.unit.nodeset.simulation import harness, settling
from tests.unit.nodeset.simulation.histories import HISTORIES, history

pytestmark = pytest.mark.thorough

AT_MOST = 400
"""Histories in which a mutant must be noticed; most are within twenty."""

AS_THEY_ARE = max(15, HISTORIES * 60 // 20_000)
"""Of the same histories, how many the rules as they are live through: 60 in a full run."""


def live_through(name: str, count: int) -> None:
    """Live through histories in which the mistake of a mutant shows; raises `Violated` if it is noticed."""
    favoured, beginning, on_hosts = MUTANTS[name][1], BEGINNINGS.get(name, ()), name in ON_HOSTS
    of = {
        "of_health": name in {*OF_HEALTH, *OF_CHECKS, *OF_MACHINES},
        "of_checks": name in OF_CHECKS,
        "of_machines": name in OF_MACHINES,
    }
    logging.disable(logging.ERROR)
    try:
        with asyncio.Runner() as runner:
            begins = [runner.run(settling.begin(keeps_instance=keeps, on_hosts=on_hosts)) for keeps in (False, True)]
            for begin in begins if beginning else ():
                runner.run(settling.live(begin, beginning))
            for seed in range(count):
                steps = history(seed, favoured, beginning=beginning, on_hosts=on_hosts, **of)
                runner.run(settling.live(begins[seed % 2], steps))
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", MUTANTS)
def test_the_model_notices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant, _ = MUTANTS[name]
    mutant(monkeypatch)

    with pytest.raises(harness.Violated):
        live_through(name, AT_MOST)


def told_apart(names: Iterable[str]) -> list[str]:
    """Leave out mutants whose histories are those of another one."""
    found = {
        (tuple(MUTANTS[name][1]), tuple(BEGINNINGS.get(name, ())), name in ON_HOSTS, name in OF_HEALTH): name
        for name in names
    }
    return list(found.values())


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", told_apart(MUTANTS))
def test_the_rules_as_they_are_live_through_the_same(name: str) -> None:
    live_through(name, AS_THEY_ARE)
