"""Random Kubernetes Nodes, jobs, answers and edits: what no pass may do, and that each story settles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from slinky_operator.bridge.features import is_ours
from slinky_operator.bridge.nodes.model.plan import DRAINED
from slinky_operator.kube.resources import NODES
from slurm_client.models import Node, NodeState
from tests.unit.bridge.nodes.worlds import LABEL, MARK, World, external, host

NAMES = ("a", "b", "c")
THEIRS_OF_A_NODESET = Node(name="kn-1", state=NodeState("IDLE", frozenset({"DYNAMIC_NORM"})), cpus=4)
EVENTS = st.sampled_from(
    [
        "host", "grown", "lost device", "cordoned", "not ready", "other label", "host gone", "job", "job ends",
        "drained by others", "undrained", "not responding", "responds", "reserved", "free", "away", "back", "off", "on",
        "other name", "pod", "theirs", "restart", "wait",
    ]
)  # fmt: skip
STEPS = st.lists(st.tuples(EVENTS, st.sampled_from(NAMES), st.sampled_from([0.0, 20.0, 90.0, 400.0])), max_size=40)


SHAPES: dict[str, dict[str, Any]] = {
    "host": {"devices": {"nvidia.com/gpu": "2"}},
    "grown": {"cpu": "16"},
    "lost device": {"devices": {"nvidia.com/gpu": "1"}},
    "cordoned": {"cordoned": True},
    "not ready": {"ready": False},
    "other label": {"labels": {"slurm": "no"}},
}


class Story:
    """A world, in which things happen."""

    def __init__(self) -> None:
        self.world = World(host("a", devices={"nvidia.com/gpu": "2"}))
        self.number = 0

    async def happen(self, event: str, name: str) -> None:
        if event in SHAPES:
            self.world.put_host(name, **SHAPES[event])
        elif event in {"away", "back"}:
            (self.world.slurm.away if event == "away" else self.world.slurm.back)()
        elif event == "host gone" and self.world.kube.find(NODES, name) is not None:
            await self.world.lose_host(name)
        elif event == "off":
            await self.world.edit(None)
        elif event in {"on", "other name"}:
            await self.world.edit({"nodeLabels": LABEL, "name": "kube" if event == "other name" else "bridge"})
        elif event == "restart":
            self.world.restart()
        else:
            self.change(event, name)

    def change(self, event: str, name: str) -> None:
        """What happens to pods, jobs, and to nodes in Slurm."""
        slurm = self.world.slurm
        node = slurm.nodes.get(name)
        self.number += 1
        match event:
            case "pod":
                self.world.put_pod(f"p{self.number}", name, "1")
            case "job" if node is not None and node.is_usable and node.is_external:
                slurm.run(self.number, name)
            case "job ends" if slurm.jobs:
                slurm.end(min(slurm.jobs))
            case "theirs" if node is None:
                theirs = external(name, "bridge") if name == "a" else replace(THEIRS_OF_A_NODESET, name=name)
                slurm.nodes[name] = theirs
            case _ if node is not None:
                self.mark(event, name)
            case _:
                pass

    def mark(self, event: str, name: str) -> None:
        """What administrators and slurmctld do to a node."""
        slurm = self.world.slurm
        match event:
            case "drained by others":
                slurm.flag(name, "DRAIN", "disk")
            case "undrained":
                slurm.unflag(name, "DRAIN")
            case "not responding":
                slurm.flag(name, "NOT_RESPONDING")
            case "responds":
                slurm.unflag(name, "NOT_RESPONDING")
            case "reserved":
                slurm.reserved.add(name)
            case "free":
                slurm.reserved.discard(name)
            case _:
                pass


@settings(max_examples=150, deadline=None)
@given(STEPS)
async def test_no_pass_takes_a_job_its_node_or_touches_what_is_not_ours_and_all_settles(
    steps: list[tuple[str, str, float]],
) -> None:
    story = Story()
    world, slurm = story.world, story.world.slurm
    for event, name, seconds in steps:
        await story.happen(event, name)
        jobs, others = dict(slurm.jobs), {one.name: one for one in slurm.nodes.values() if not is_ours(one, MARK)}
        kept = {one.name for one in slurm.nodes.values() if one.is_drain and not one.reason.startswith(DRAINED)}
        _ = await world.step(seconds=seconds)
        assert slurm.jobs == jobs
        assert {node for one in jobs.values() for node in one.nodes} <= slurm.nodes.keys()
        assert {name: slurm.nodes.get(name) for name in others} == others
        assert kept <= {one.name for one in slurm.nodes.values() if one.is_drain}
        assert all(not one.is_down for one in slurm.nodes.values())
        assert slurm.wrong == []
    await settle(world)


async def settle(world: World) -> None:
    """When everything is well again, what is wanted is there, and nothing changes any more."""
    slurm = world.slurm
    slurm.back()
    slurm.reserved.clear()
    for number in list(slurm.jobs):
        slurm.end(number)
    for name in list(slurm.nodes):
        for flag in ("NOT_RESPONDING", "DRAIN"):
            slurm.unflag(name, flag)
    others = {one.name for one in slurm.nodes.values() if not is_ours(one, MARK)}
    await world.settle(seconds=400.0, times=20)
    assert {one.name for one in slurm.nodes.values() if is_ours(one, MARK)} == world.usable() - others
    before, made, deleted = dict(slurm.nodes), len(slurm.lines), len(slurm.deleted)
    written = len(world.kube.statuses)
    await world.settle(seconds=20.0, times=6)
    assert (slurm.nodes, len(slurm.lines), len(slurm.deleted)) == (before, made, deleted)
    assert len(world.kube.statuses) == written
