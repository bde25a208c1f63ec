"""Stories of configurations in which things happen by chance."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from slinky_operator.kube import resources
from tests.unit.cluster.stories.chance import Chance
from tests.unit.cluster.stories.site import CONFIG, CONTROLLER, NAMESPACE, Site
from tests.unit.cluster.stories.slurm import job

Story: TypeAlias = Callable[[Site], Awaitable[None]]

SEEDS = 10
"""Stories in which a dozen things happen by chance."""

NIGHT: dict[str, Any] = {"partitions": [{"name": "night", "nodeSets": ["ALL"], "config": "MaxTime=60"}]}
SPECS: tuple[dict[str, Any], ...] = (
    {},
    NIGHT,
    {"partitions": [{"name": "night"}, {"name": "day", "nodeSets": ["compute"]}]},
    {"extraConf": "KillWait=7"},
    {"extraConf": "Bogus=1"},
    {"extraConf": "PrologFlags=Alloc\nKillWait=9"},
    {"extraConf": "Licenses=a:2"},
    {"extraConf": "MaxJobCount=20"},
    {"maxNodeCount": 20},
    {"nodes": [{"name": "metal-[0-1]", "config": "CPUs=2 Feature=fast NodeAddr=10.9.0.[1-2]"}]},
    {"nodes": [{"name": "metal-0", "config": "CPUs=4"}]},
    {"configFiles": {"gres.conf": "AutoDetect=off"}, "extraConf": "GresTypes=gpu"},
    {"configFileRefs": [{"name": "texts"}]},
    {"clusterName": "bad name"},
)
"""Good ones, refused ones, and those that take away what jobs use."""

HAPPENS = (
    *("edit", "edit", "edit", "edit", "jobs", "jobs", "no jobs", "one pass", "passes", "settle", "another operator"),
    *("killed", "node set", "bad node set", "node set goes", "busy", "slurmctld refuses", "slurmctld takes"),
    *("kubelet is late", "kubelet mounts", "time", "edited by hand", "caches are late", "pod is lost"),
)

USES: tuple[dict[str, Any], ...] = (
    {"partition": "night"},
    {"partition": "day,night"},
    {"nodes": ("metal-0",), "node_list": "metal-0"},
    {"required_nodes": "metal-1", "state": "PENDING"},
    {"licenses": "a:2", "state": "PENDING"},
    {"gres_detail": ("gpu:1(IDX:0)",)},
)


def is_refused(text: str) -> str:
    """What a disposable slurmctld says."""
    for word in ("Bogus", "banana"):
        if word in text:
            return f"Parsing error at unrecognized key: {word}"
    return ""


async def seeded(site: Site, seed: int) -> None:
    """A Cluster that settles, a dozen things that happen, and an end without hindrances."""
    chance = Chance(f"rollout {seed}")
    site.refuses = is_refused
    site.node_set("compute")
    site.texts("texts", {"cgroup.conf": "ConstrainCores=yes"})
    await site.runs()
    for _ in range(10):
        await happen(site, chance.one_of(HAPPENS), chance)
    site.say("hindrances end")
    site.is_stale, site.slurm.refuses, site.slurm.away_for = False, lambda text: "", 0
    site.slurm.jobs = ()
    site.kube.catch_up()
    site.now += 65
    await site.settle()


async def happen(site: Site, what: str, chance: Chance) -> None:  # noqa: C901, PLR0912, PLR0915 - one each
    """One thing."""
    slurm, compute = site.slurm, site.kube.find(resources.NODESETS, "compute", NAMESPACE)
    if what not in {"edit", "one pass", "passes", "settle", "another operator", "time"}:
        site.say(what)
    match what:
        case "edit":
            site.edit(chance.one_of(SPECS))
            await site.rounds(1 + chance.below(4))
        case "jobs":
            use = dict(chance.one_of(USES))
            slurm.jobs = (job(7, use.pop("state", "RUNNING"), **{"partition": "all", **use}), *slurm.jobs)[:3]
        case "no jobs":
            slurm.jobs = ()
        case "one pass":
            await site.one_pass()
        case "passes":
            await site.rounds(3)
        case "settle":
            await site.settle(16)
        case "another operator":
            site.restart()
        case "killed":
            await site.with_kills(4)
        case "node set":
            site.node_set("gpu", {"partition": {"config": "MaxTime=5"}})
        case "bad node set":
            site.node_set("bad", {"partition": {"config": "MaxTime=banana"}})
        case "node set goes" if compute is not None and compute["metadata"].get("finalizers"):
            site.delete(resources.NODESETS, "compute")
        case "busy":
            slurm.away_for = 3
        case "slurmctld refuses":
            slurm.refuses = lambda text: "slurm_reconfigure() failed" if "KillWait" in text else ""
        case "slurmctld takes":
            slurm.refuses = lambda text: ""
        case "kubelet is late":
            site.is_stale = True
        case "kubelet mounts":
            site.is_stale = False
        case "time":
            site.wait(chance.one_of((10, 70, 400)))
        case "edited by hand":
            config = site.kube.find(resources.CONFIGMAPS, CONFIG, NAMESPACE)
            if config is not None:
                text = config["data"]["slurm.conf"] + "Handmade=1\n"
                site.kube.put(resources.CONFIGMAPS, {**config, "data": {**config["data"], "slurm.conf": text}})
        case "caches are late":
            site.kube.lags = True
            await site.rounds(2)
            site.kube.catch_up()
        case "pod is lost":
            site.kube.end(resources.PODS, f"{CONTROLLER}-0", NAMESPACE)
        case _:
            pass


STORIES: Mapping[str, Story] = {f"seed {seed}": partial(seeded, seed=seed) for seed in range(SEEDS)}
