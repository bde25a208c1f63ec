"""Random histories: each from a seed, so that one that fails can be lived through again."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.unit.nodeset.model.harness import STEPS, Step


def history(seed: int, favoured: Sequence[Step] = ()) -> list[Step]:
    """A history of 20 to 80 steps.

    Parameters
    ----------
    favoured
        Steps that happen more often than others.
    """
    rng = random.Random(seed)  # noqa: S311 - to be repeated
    steps: list[Step] = []
    for _ in range(rng.randrange(20, 80)):
        if favoured and rng.random() < 0.4:
            steps.append(rng.choice(favoured))
        else:
            steps.append((rng.choice(STEPS), rng.randrange(8)))
    return steps
