"""What is stored of the configuration is parsed once, however many NodeSets are looked up in it."""

from __future__ import annotations

import pytest

from slinky_operator.cluster.rollout.config import stored
from slinky_operator.slurm.conf import Parsed, parse
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import node_set_object


def parses(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often slurm.conf is parsed in a pass after the status was lost."""
    world = settled({})
    world.add(*(node_set_object(f"c{number}") for number in range(count)))
    world.settle()
    world.raw = {**world.raw, "status": {}}
    calls = []

    def counted(text: str) -> Parsed:
        calls.append(text)
        return parse(text)

    with monkeypatch.context() as patch:
        patch.setattr(stored, "parse", counted)
        world.plan()
    return len(calls)


def test_more_node_sets_do_not_parse_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = parses(2, monkeypatch), parses(20, monkeypatch)
    assert 0 < few == many
