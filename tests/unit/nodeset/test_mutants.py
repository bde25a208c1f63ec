"""The model is worth something: it notices each rule that is made wrong."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.unit.nodeset.model import harness
from tests.unit.nodeset.model.histories import history
from tests.unit.nodeset.model.world import World
from tests.unit.nodeset.mutants import MUTANTS, ON_HOSTS

HISTORIES = 400
"""Most are found within twenty."""


def worlds(runner: asyncio.Runner, name: str) -> list[World]:
    """Where the histories of a mutant begin."""
    on_hosts = name in ON_HOSTS
    return [runner.run(harness.begin(keeps_instance=keeps, on_hosts=on_hosts)) for keeps in (False, True)]


def first_violation(name: str) -> str | None:
    """What the model first has to say, or None if it lives through all histories."""
    logging.disable(logging.ERROR)
    try:
        with asyncio.Runner() as runner:
            begins = [
                runner.run(harness.begin(keeps_instance=keeps, on_hosts=name in ON_HOSTS)) for keeps in (False, True)
            ]
            for seed in range(HISTORIES):
                runner.run(harness.live(begins[seed % 2], history(seed, MUTANTS[name][1], on_hosts=name in ON_HOSTS)))
    except harness.Violated as error:
        return str(error)
    finally:
        logging.disable(logging.NOTSET)
    return None


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", MUTANTS)
def test_the_model_notices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant, _ = MUTANTS[name]
    mutant(monkeypatch)

    assert first_violation(name) is not None


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", MUTANTS)
def test_the_rules_as_they_are_live_through_the_same(name: str) -> None:
    logging.disable(logging.ERROR)
    try:
        with asyncio.Runner() as runner:
            begins = [
                runner.run(harness.begin(keeps_instance=keeps, on_hosts=name in ON_HOSTS)) for keeps in (False, True)
            ]
            for seed in range(60):
                runner.run(harness.live(begins[seed % 2], history(seed, MUTANTS[name][1], on_hosts=name in ON_HOSTS)))
    finally:
        logging.disable(logging.NOTSET)
