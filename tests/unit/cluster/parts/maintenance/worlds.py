"""Clusters with maintenance windows and nodes, as a pass sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from slinky_operator.cluster.actions import Ask, EmitEvent
from slinky_operator.cluster.parts.maintenance.question import ReservationsQuestion
from slurm_client.models import Node, NodeState
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import World, node_set_object

WALL = datetime(2026, 11, 28, 10, tzinfo=UTC)
NIGHT: Mapping[str, Any] = {"name": "night", "schedule": "0 2 * * *", "duration": "4h"}


def node(name: str, node_set: str, state: str = "IDLE", reason: str = "") -> Node:
    return Node(name=name, state=NodeState.from_words(state.split("+")), features=(node_set,), reason=reason)


NODES = (node("a-0", "a"), node("a-1", "a"), node("b-0", "b"))


def world(*windows: Mapping[str, Any], now: datetime = WALL, nodes: tuple[Node, ...] = NODES) -> World:
    """A Cluster that runs, with these windows and NodeSets `a` and `b`."""
    found = settled({"maintenance": {"windows": [dict(one) for one in windows]}} if windows else {})
    for name in ("a", "b"):
        found.add(node_set_object(name))
    found.wall = now
    found.settle()
    show(found, nodes)
    return found


def show(one: World, nodes: tuple[Node, ...]) -> None:
    """Slurm has these nodes."""
    assert one.slurm is not None
    one.slurm = replace(one.slurm, nodes={each.name: each for each in nodes})


def asked(one: World) -> ReservationsQuestion | None:
    """What Slurm is asked for in the next pass, if it is asked."""
    found = [each.question for each in one.plan().actions if isinstance(each, Ask)]
    return next((each for each in found if isinstance(each, ReservationsQuestion)), None)


def events(one: World) -> list[tuple[str, str]]:
    """Events about windows in the next pass."""
    found = [each for each in one.plan().actions if isinstance(each, EmitEvent)]
    return [(str(each.reason), each.message) for each in found if "aintenance" in each.reason]
