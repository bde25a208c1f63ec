"""How many pods get other conditions about states of their nodes, at 5,000 nodes and 100,000 jobs a day.

An hour of Slurm is played without waiting: jobs come at random times and take the first nodes that are free, each node
shows COMPLETING for the seconds of an epilog, and the operator looks once a second, as it does. What is written is
counted; nothing is asserted about it. What the figures mean: docs/node-health.md.

Run it alone: ``pytest tests/bench/nodeset/test_state_writes.py --capture=no --override-ini=testpaths=tests/bench``.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import replace
from datetime import timedelta

import pytest

from slinky_operator.nodeset.health import node_states
from slinky_operator.nodeset.memory import Memory
from slinky_operator.nodeset.model.member import Member, join
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from tests.unit.nodeset.builders import NOW, OWNER, a_pod, node, nodeset

NODES = 5_000
HOUR = 3_600
JOBS = 100_000 // 24
"""In an hour."""
EPILOG = 5
"""Seconds for which a node completes a job."""
DRAINED = 50
"""Nodes that somebody has drained, one in a hundred: they take no job."""


def states(width: int, drained: set[int], rng: random.Random) -> list[dict[int, str]]:
    """What changes in each second: the new state of each node, by number."""
    seconds: list[dict[int, str]] = [{} for _ in range(HOUR + 1)]
    arrivals = sorted(rng.randrange(HOUR) for _ in range(JOBS))
    free = [number for number in range(NODES) if number not in drained]
    heapq.heapify(free)
    ends: list[tuple[int, int]] = []
    # So long that four nodes in five are busy.
    length = max(2 * EPILOG, NODES * 4 // 5 * HOUR // (JOBS * width))
    for second in range(HOUR):
        while ends and ends[0][0] <= second:
            _, number = heapq.heappop(ends)
            heapq.heappush(free, number)
            seconds[second][number] = "IDLE"
        while arrivals and arrivals[0] <= second and len(free) >= width:
            _ = arrivals.pop(0)
            end = second + int(rng.expovariate(1 / length)) + 1
            for _ in range(width):
                number = heapq.heappop(free)
                seconds[second][number] = "ALLOCATED"
                if end < HOUR:
                    _ = seconds[end].setdefault(number, "COMPLETING")
                heapq.heappush(ends, (end + EPILOG, number))
    return seconds


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("mode", ["Problems", "All"])
def test_writes_of_an_hour(mode: str, width: int) -> None:
    rng = random.Random(1)  # noqa: S311 - to be repeated
    of = nodeset(health={"podConditions": mode}, replicas=NODES)
    pods = [a_pod(name=f"a-{number}", uid=f"u{number}") for number in range(NODES)]
    drained = set(rng.sample(range(NODES), DRAINED))
    words = ["IDLE"] * NODES
    empty = Snapshot(of, ClusterFacts("c"), SlurmFacts(readable=True, jobs={}), Revision(revision.of(of)), hosts={})
    memory, late = Memory(), set(range(NODES))
    flips = writes = first = longest = 0

    def member(number: int) -> Member:
        state = "IDLE+COMPLETING" if words[number] == "COMPLETING" else words[number]
        flags = "+DRAIN" if number in drained else ""
        long_ago = NOW - timedelta(hours=1)
        one = node(
            f"{state}{flags}+DYNAMIC_NORM", name=f"a-{number}", instance_id=f"u{number}", reason_changed_at=long_ago
        )
        return join(pods[number], {one.name: one}, {}, OWNER)

    for second, changed in enumerate(states(width, drained, rng)):
        for number, state in changed.items():
            words[number] = state
        flips += len(changed)
        late |= set(changed)
        snapshot = replace(empty, state_writes=memory.state_writes(float(second)))
        found = node_states.changes(snapshot, [member(number) for number in sorted(late)], {}, NOW)
        memory.note_state_writes(len(found.pods))
        for one in found.pods:
            pods[int(one.pod.name.removeprefix("a-"))] = replace(one.pod, node_states=one.states)
        if found.is_late:
            late -= {int(one.pod.name.removeprefix("a-")) for one in found.pods}
        else:
            late.clear()
        longest = max(longest, len(late))
        writes += len(found.pods)
        first += len(found.pods) if second < HOUR // 10 else 0
    steady = (writes - first) / (HOUR * 0.9)
    print(
        f"\n{mode}, {width} nodes a job: {flips} changes of states, {writes} writes in an hour, {steady:.2f} a second "
        f"after the first six minutes, at most {longest} pods late"
    )
