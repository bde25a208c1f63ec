"""All stories, by chapter."""

from __future__ import annotations

from collections.abc import Mapping

from tests.unit.cluster.stories import daemons, lives, rollouts, seeded, specs
from tests.unit.cluster.stories.seeded import Story

TABLE: Mapping[str, Mapping[str, Story]] = {
    "rollouts": {**rollouts.STORIES, **seeded.STORIES},
    "lives": lives.STORIES,
    "daemons": daemons.STORIES,
    "specs": specs.STORIES,
}

FIRST = (("rollouts", "good"), ("lives", "everything"))
"""Stories that tell of objects in full, in this order."""
