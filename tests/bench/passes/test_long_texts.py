"""The cost of the longest text of each field: for the event loop, and the thread of rules. Prints, asserts nothing.

The longest turn is CPU time of the event loop's thread; a plain object's passes are the reference of the same run. All
waits of a pass end at once here, so that a turn may be a whole pass. Run it alone: ``pytest tests/bench/passes
--capture=no --override-ini=testpaths=tests/bench``.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from tests.support.passes import operator
from tests.support.turns import Turns
from tests.unit.passes.test_long_texts import FIELDS, PIECES, spec_with

SHOWN = 10


@dataclass(frozen=True)
class Cost:
    field: str
    piece: str
    turn_ms: float
    """CPU of the loop's thread in its longest turn."""
    process_ms: float
    """CPU of the whole process for two passes."""


async def cost(kind: str, spec: dict[str, Any]) -> tuple[float, float]:
    turns = Turns()
    async with operator() as at_hand:
        if kind == "NodeSet":
            at_hand.add("Cluster", {}, {"isReady": True, "config": {"nodeSets": ["a"]}})
        at_hand.add(kind, spec)
        await asyncio.sleep(0)
        turns.begin()
        began = time.process_time()
        for _ in range(2):
            await at_hand.pass_over(kind)
        await asyncio.sleep(0)
        return turns.longest() * 1000, (time.process_time() - began) * 1000


def test_long_texts() -> None:
    plain = {kind: asyncio.run(cost(kind, spec)) for kind, spec in (("Cluster", {}), ("NodeSet", {"clusterName": "a"}))}
    found = [
        Cost(f"{field[0]} {'.'.join(field[1])}", repr(piece), *asyncio.run(cost(field[0], spec_with(field, piece))))
        for field in FIELDS
        for piece in PIECES
    ]
    print("\n| field | text | longest turn of the loop, ms of CPU | all of it, ms of CPU |")
    print("|---|---|---:|---:|")
    for kind, (turn, whole) in plain.items():
        print(f"| a plain {kind} | | {turn:.1f} | {whole:.0f} |")
    for one in sorted(found, key=lambda one: -one.turn_ms)[:SHOWN]:
        print(f"| {one.field} | `{one.piece}`… | {one.turn_ms:.1f} | {one.process_ms:.0f} |")
