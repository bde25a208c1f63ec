"""
What one look of the NodeSet controller at its caches takes of the event loop: nothing has changed but one pod's status.

Nothing is asserted about time: the table is for reading. The first look has nothing to remember.
"""

from __future__ import annotations

import asyncio
import gc
from statistics import median
from time import thread_time

import pytest

from slinky_operator.nodeset.slurm_nodes import identity
from tests.unit.nodeset import builders
from tests.unit.nodeset.observation.worlds import OWN, World

ROUNDS = 15


@pytest.mark.parametrize(("pods", "nodes"), [(1000, 1000), (100, 5000), (5000, 5000)])
async def test_a_look_at_the_caches(pods: int, nodes: int) -> None:
    world = World(pods=pods, replicas=pods)
    for number in range(nodes):
        is_own = number < pods
        name = f"a-{number}" if is_own else f"other-{number}"
        extra = identity.tag("ns", "a") if is_own else "of another"
        world.nodes[name] = builders.node(name=name, extra=extra)
    gc.disable()
    begun = thread_time()
    prepared = asyncio.ensure_future(world.kept.read_ahead(world.nodeset))
    longest, began = 0.0, thread_time()
    while not prepared.done():
        await asyncio.sleep(0)
        longest, began = max(longest, thread_time() - began), thread_time()
    reading = (thread_time() - begun) * 1000
    times = []
    for _ in range(ROUNDS):
        world.put("a-0", OWN)
        begun = thread_time()
        _ = world.observe(world.kept)
        times.append((thread_time() - begun) * 1000)
    gc.enable()
    first, *others = times
    shown = f"| {reading:.1f} | {longest * 1000:.1f} | {first:.1f} | {min(others):.1f} | {median(others):.1f} |"
    print("\n\n| pods | nodes in Slurm | reading, ms | its longest turn | first look | others: best | median |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    print(f"| {pods:,} | {nodes:,} {shown}")
