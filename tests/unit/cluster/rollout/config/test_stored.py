"""What is stored of the configuration is read once for the rollout, however many NodeSets are looked up in it."""

from __future__ import annotations

import pytest

from slinky_operator.cluster.rollout.plan import plan_rollout
from slinky_operator.cluster.view import View
from slinky_operator.slurm.conf import Parsed, parse
from slinky_operator.slurm.conf.syntax import parsed
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import ENVIRONMENT, node_set_object


@pytest.mark.parametrize("count", [2, 20])
def test_what_runs_is_parsed_once(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a pass after the status was lost, which looks up each NodeSet."""
    world = settled({})
    world.add(*(node_set_object(f"c{number}") for number in range(count)))
    world.settle()
    world.raw = {**world.raw, "status": {}}
    texts = []

    def counted(text: str) -> Parsed:
        texts.append(text)
        return parse(text)

    with monkeypatch.context() as patch:
        patch.setattr(parsed, "parse", counted)
        plan_rollout(View(world.snapshot(), ENVIRONMENT.images, world.now, world.wall))
    assert texts == [world.slurm_conf]
