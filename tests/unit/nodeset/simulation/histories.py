"""Random histories: each from a seed, so that a failing one can be repeated."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

from tests.unit.nodeset.simulation.steps import (
    STEPS,
    STEPS_OF_CHECKS,
    STEPS_OF_HEALTH,
    STEPS_OF_MACHINES,
    STEPS_ON_HOSTS,
    Step,
)

HISTORIES = int(os.environ.get("NODESET_HISTORIES", "240"))
"""How many are lived through from seeds. `make test-full` asks for 20,000; another number is set for a short run."""


def history(
    seed: int,
    favoured: Sequence[Step] = (),
    *,
    beginning: Sequence[Step] = (),
    on_hosts: bool = False,
    of_health: bool = False,
    of_checks: bool = False,
    of_machines: bool = False,
) -> list[Step]:
    """A history of 20 to 80 steps.

    Parameters
    ----------
    favoured
        Steps that happen more often than others.
    beginning
        Steps that come before them all.
    on_hosts
        Whether it is for a world with one pod on each Node.
    of_health
        Whether conditions of Nodes come and go, and the rules for them.
    of_checks
        Whether nodes run health checks.
    of_machines
        Whether machines of bad nodes are rebooted and deleted.
    """
    known = (
        *(STEPS_ON_HOSTS if on_hosts else STEPS),
        *(STEPS_OF_HEALTH if of_health else ()),
        *(STEPS_OF_CHECKS if of_checks else ()),
        *(STEPS_OF_MACHINES if of_machines else ()),
    )
    rng = random.Random(seed)  # noqa: S311 - to be repeated
    steps = list(beginning)
    for _ in range(rng.randrange(20, 80)):
        if favoured and rng.random() < 0.4:
            steps.append(rng.choice(favoured))
        else:
            steps.append((rng.choice(known), rng.randrange(8)))
    return steps
