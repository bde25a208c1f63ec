"""Whatever happens during a configuration change, nothing rejected is mounted, and the result matches the spec."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.rollout.in_use.removals import Use
from slinky_operator.slurm.conf.syntax.parsed import parse
from tests.unit.cluster.rollout_stories import GONE, PARTITION, job, settled
from tests.unit.cluster.world import World, node_set_object

SPECS: list[dict[str, Any]] = [
    {},
    PARTITION,
    {"partitions": [{"name": "night"}, {"name": "day", "nodeSets": ["a"]}]},
    {"extraConf": "Bogus=1"},
    {"extraConf": "KillWait=7"},
]


def happen(world: World, event: Any) -> None:
    match event:
        case dict():
            world.raw["spec"] = event
        case "a" | "bad":
            config = {"partition": {"config": "MaxTime=banana" if event == "bad" else "MaxTime=5"}}
            world.add(node_set_object(event, config))
        case "-a" if "a" in world.node_sets and "finalizers" in world.node_sets["a"]["metadata"]:
            world.node_sets["a"]["metadata"]["deletionTimestamp"] = GONE
        case "kill":
            world.memory, world.slurm = Memory("cluster-uid"), None
        case "wait":
            world.now += 400
        case "jobs":
            world.use = Use(0.0, "", (job(1, "night"), job(2, "a")))
        case "no jobs":
            world.use = Use(0.0, "")
        case int():
            for _ in range(event):
                world.step()
        case _:
            pass


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(SPECS),
            st.sampled_from(["a", "bad", "-a", "kill", "wait", "jobs", "no jobs"]),
            st.integers(1, 4),
        ),
        max_size=12,
    )
)
def test_whatever_happens_no_refused_file_is_mounted_and_the_end_is_the_specs(story: list[Any]) -> None:
    world = settled()
    world.refuses = lambda text: "no" if "Bogus" in text or "banana" in text else ""
    for event in story:
        happen(world, event)
        mounted = world.slurm_conf
        assert "Bogus" not in mounted
        assert "banana" not in mounted
    world.use = Use(0.0, "")
    world.now += 10
    world.settle(80)
    spec = world.raw["spec"]
    refused = "Bogus" in spec.get("extraConf", "")
    assert world.raw["status"]["isReady"] is True
    assert (world.condition("ConfigApplied")["status"] == "True") is not refused
    if not refused:
        wanted = {one["name"] for one in spec.get("partitions", ())} | {"all"} | (world.node_sets.keys() - {"bad"})
        assert parse(world.slurm_conf).partitions.keys() == wanted
