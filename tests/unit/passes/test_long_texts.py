"""No user text blocks the event loop: the work of a pass there does not grow with the text.

Measured in lines of Python that run in the event loop's thread, which are the same on every machine. The time of such
passes is measured in tests/bench.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tests.support.from_schema import Path, Schema, filled, text_fields
from tests.support.hostile_texts import repeated
from tests.support.passes import Operator, operator
from tests.unit.passes.test_any_spec import CLUSTERS, NODESETS, conditions

pytestmark = pytest.mark.thorough

LINES = 60_000
"""Lines more than for a plain object: 20 ms on a machine that runs three lines in a microsecond."""

UNBOUNDED = 200_000
"""Characters in fields whose length the schema leaves open: an object has a megabyte and a half."""

WHOLE = 262_144
"""Characters of one object, in all its items together: linear rules would be as quick with more."""

PIECES = ("a", "\\\n", "a=1 ", "[", "n[0-9],", '"#=', "A=1\n", "a{}=1 ", "a{},")
"""What a text repeats; braces are filled with the number of the repetition."""

Field = tuple[str, Path, Schema]
FIELDS: list[Field] = [
    *(("Cluster", path, schema) for path, schema in text_fields(CLUSTERS["spec"])),
    *(("NodeSet", path, schema) for path, schema in text_fields(NODESETS["spec"])),
]


def spec_with(field: Field, piece: str, *, short: bool = False) -> dict[str, Any]:
    """The smallest spec with that field as long, and as often, as may be; or once, with one piece."""
    kind, path, schema = field
    longest = len(piece) if short else schema.get("maxLength", UNBOUNDED)
    text = repeated(piece, longest)
    root = CLUSTERS["spec"] if kind == "Cluster" else NODESETS["spec"]
    spec: dict[str, Any] = filled(root, path, lambda number: text, items=1 if short else max(1, WHOLE // longest))
    if kind == "NodeSet" and path != ("clusterName",):
        spec["clusterName"] = "a"
    if path[0] in {"server", "token", "caBundle"}:
        spec = {"server": "http://slurm:6820", "token": {"secretRef": "t"}, **spec}
    return spec


SLURMD: dict[str, Callable[[str], dict[str, Any]]] = {
    "args": lambda text: {"args": [text]},
    "conf": lambda text: {"args": ["--conf", text]},
    "command": lambda text: {"command": ["slurmd", text]},
    "environment": lambda text: {"env": [{"name": "A", "value": text}]},
    "cpu": lambda text: {"resources": {"limits": {"cpu": text}}},
    "image": lambda text: {"image": text},
}
"""What a template may say of slurmd's container, which the schema leaves open."""


async def lines_of_pass(kind: str, spec: dict[str, Any]) -> tuple[int, Operator]:
    """Lines that run in this thread during two passes."""
    count = 0

    def line(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return line

    async with operator() as at_hand:
        if kind == "NodeSet":
            at_hand.add("Cluster", {}, {"isReady": True, "config": {"nodeSets": ["a"]}})
        at_hand.add(kind, spec)
        before = sys.gettrace()
        sys.settrace(line)
        try:
            for _ in range(2):
                await at_hand.pass_over(kind)
        finally:
            sys.settrace(before)
        assert conditions(at_hand.status(kind))
        return count, at_hand


@pytest.fixture(scope="module")
def plain() -> dict[str, int]:
    """Lines of a plain object's passes."""
    return {
        "Cluster": asyncio.run(lines_of_pass("Cluster", {}))[0],
        "NodeSet": asyncio.run(lines_of_pass("NodeSet", {"clusterName": "a"}))[0],
    }


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: f"{field[0]}-{'.'.join(field[1])}")
def test_the_largest_hostile_text_costs_the_event_loop_next_to_nothing(field: Field, plain: dict[str, int]) -> None:
    # Some fields are of a part that an object has only with them, such as accounting.
    short = asyncio.run(lines_of_pass(field[0], spec_with(field, "a", short=True)))[0]
    costs = {piece: asyncio.run(lines_of_pass(field[0], spec_with(field, piece)))[0] for piece in PIECES}
    assert {piece: cost for piece, cost in costs.items() if cost > max(short, plain[field[0]]) + LINES} == {}


@pytest.mark.parametrize("place", SLURMD)
def test_nor_does_a_text_in_a_template(place: str, plain: dict[str, int]) -> None:
    costs = {}
    for piece in PIECES:
        text = repeated(piece, UNBOUNDED)
        container = {"name": "slurmd", **SLURMD[place](text)}
        spec = {"clusterName": "a", "replicas": 1, "template": {"spec": {"containers": [container]}}}
        costs[piece] = asyncio.run(lines_of_pass("NodeSet", spec))[0]
    assert {piece: cost for piece, cost in costs.items() if cost > plain["NodeSet"] + LINES} == {}
