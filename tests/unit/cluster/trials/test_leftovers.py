"""What a trial leaves is deleted once there is nothing to try, by any operator, and however late it appears."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, cast

import pytest

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import Reload
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.memory.rollout import LeftOut, Loaded
from slinky_operator.cluster.rollout.in_use.removals import Use
from slinky_operator.cluster.trials import pods
from slinky_operator.cluster.triggers import ClusterTriggers
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, CONFIGMAPS, PODS, Resource
from slinky_operator.reconcile.triggers import SlurmByUid
from slinky_operator.slurm.connection.contact import Trouble
from tests.unit.cluster.rollout_stories import GONE, PARTITION, job, settled, until
from tests.unit.cluster.stories.site import KEY, NAME, NAMESPACE, Site
from tests.unit.cluster.stories.slurm import job as slurm_job
from tests.unit.cluster.world import World, cluster_object, node_set_object

KINDS: Final[Mapping[str, pods.TrialKind]] = {
    "configuration": pods.CONFIGURATION,
    "rehearsal": pods.REHEARSAL,
    "state": pods.STATE,
    "jobs": pods.JOBS,
    "slurmdbd.conf": pods.SLURMDBD_CONF,
    "versions": pods.VERSIONS,
}
REFUSED = {"extraConf": "ClusterName=other"}


def left(kind: pods.TrialKind) -> tuple[tuple[Resource, Object], tuple[Resource, Object]]:
    """The pod and the ConfigMap of a trial that nothing asks for."""
    cluster = Cluster.parse(cluster_object())
    made = pods.objects(cluster, kind, {"volumes": [], "containers": []}, identity={}, note="1", data={"a": "b"})
    assert made.config_map is not None
    return (PODS, dict(made.pod.body)), (CONFIGMAPS, dict(made.config_map.body))


def test_every_kind_of_trial_is_here() -> None:
    assert {*KINDS.values()} == {one for one in vars(pods).values() if isinstance(one, pods.TrialKind)}


# Situations in which there is nothing to try


def at_rest() -> World:
    return settled({})


def with_accounting() -> World:
    return settled({"accounting": {}})


def with_slurmds() -> World:
    return settled({}, node_set_object("compute"))


def refused() -> World:
    """The spec cannot be a configuration."""
    world = settled({})
    world.raw["spec"] = REFUSED
    return world


def rejected() -> World:
    """slurmctld has rejected what is wanted, and the last good one is back."""
    world = settled({})
    world.raw["spec"] = PARTITION
    reload = until(world, Reload)
    world.memory.rollout.loaded = Loaded("pod-uid", reload.change, world.now, proven=False, why="no")
    world.settle()
    return world


def keys_are_lost() -> World:
    world = settled({"accounting": {}})
    for name in ("slurm-auth-jwt", "slurm-auth-copy"):
        del world.secrets[name]
    world.memory = Memory("cluster-uid")
    return world


def being_deleted() -> World:
    """A slurmd pod with a job is left."""
    world = settled({"accounting": {}}, node_set_object("compute"))
    world.pods = ["compute-0"]
    world.raw["metadata"]["deletionTimestamp"] = GONE
    return world


def template_refused() -> World:
    world = settled({})
    world.raw["spec"] = {"controller": {"template": {"spec": {"hostname": "x"}}}}
    return world


def silent() -> World:
    world = settled({})
    world.trouble(Trouble.NO_ANSWER)
    return world


def untriable() -> World:
    """A slurmd is left out, and not yet due again."""
    world = settled({})
    world.memory.rollout.left_out = {"elsewhere": LeftOut("no image", world.now, 1)}
    return world


SITUATIONS: Final = (
    (at_rest, Reason.AS_EXPECTED),
    (with_accounting, Reason.AS_EXPECTED),
    (with_slurmds, Reason.AS_EXPECTED),
    (refused, Reason.CONFIG_REFUSED),
    (rejected, Reason.CONFIG_ROLLED_BACK),
    (keys_are_lost, Reason.AS_EXPECTED),
    (being_deleted, Reason.AS_EXPECTED),
    (template_refused, Reason.AS_EXPECTED),
    (silent, Reason.AS_EXPECTED),
    (untriable, Reason.AS_EXPECTED),
)
"""With what the condition ConfigApplied says in it."""


@pytest.mark.parametrize(("situation", "reason"), SITUATIONS, ids=lambda one: getattr(one, "__name__", ""))
def test_what_a_dead_leader_has_left_goes_in_the_next_pass(situation: Callable[[], World], reason: Reason) -> None:
    world = situation()
    for _ in range(3):
        world.step()
    assert world.condition("ConfigApplied")["reason"] == reason
    before = {*world.preflights, *world.children}
    for kind in KINDS.values():
        (_, pod), (_, config_map) = left(kind)
        name = pod["metadata"]["name"]
        world.preflights[name] = {**pod, "metadata": {**pod["metadata"], "uid": "1"}, "status": {"phase": "Succeeded"}}
        # One of which only the ConfigMap was made.
        other = f"{name[:-1]}x"
        about = {**config_map["metadata"], "name": other, "uid": "2"}
        world.children["ConfigMap", other] = {"kind": "ConfigMap", **config_map, "metadata": about}
    world.step()
    assert {*world.preflights, *world.children} <= before


LICENSES = {"extraConf": "Licenses=a:2"}


@pytest.mark.parametrize("restarted", [False, True])
def test_a_trial_of_jobs_goes_with_the_change_that_is_taken_back(*, restarted: bool) -> None:
    world = settled(LICENSES)
    assert world.controller_pod is not None
    world.controller_pod["spec"] = {"nodeName": "node-1"}
    world.use = Use(0.0, "", (job(7),))
    before = {*world.preflights, *world.children}
    world.raw["spec"] = {"extraConf": "Licenses=a:1"}
    for _ in range(10):
        world.step()
        if any("-preflight-j" in name for name in world.preflights):
            break
    else:
        raise AssertionError("no trial of jobs")
    world.raw["spec"] = LICENSES
    if restarted:
        world.memory = Memory("cluster-uid")
    world.settle()
    assert {*world.preflights, *world.children} == before


def trials(site: Site) -> list[str]:
    return sorted(name for _, _, name in site.kube.objects if "-preflight-" in name)


def appear(site: Site) -> None:
    """A request of an earlier leader is carried out, for each kind of trial."""
    for kind in KINDS.values():
        for resource, body in left(kind):
            site.kube.put(resource, {**body, "metadata": {**body["metadata"], "namespace": NAMESPACE}})


async def carried_out_late(site: Site) -> None:
    await site.runs()
    site.kube.lags = True
    appear(site)
    assert len(trials(site)) == 2 * len(KINDS)
    # The cache was listed before.
    await site.one_pass()
    assert len(trials(site)) == 2 * len(KINDS)
    site.kube.catch_up()
    await site.one_pass()
    assert trials(site) == []


def test_what_appears_after_the_cache_was_listed_goes_in_the_pass_of_its_event() -> None:
    asyncio.run(carried_out_late(Site({"accounting": {}})))


def test_each_object_of_a_trial_that_appears_begins_a_pass() -> None:
    table = ClusterTriggers(cast("SlurmByUid", object())).table(lambda _: None).objects
    for kind in KINDS.values():
        for resource, body in left(kind):
            obj = {**body, "metadata": {**body["metadata"], "namespace": NAMESPACE}}
            assert list(table[resource](None, obj)) == [KEY], (kind.tries, resource.kind)


async def carried_out_after_the_end(site: Site) -> None:
    await site.runs()
    site.delete()
    await site.settle()
    assert site.kube.find(CLUSTERS, NAME, NAMESPACE) is None
    appear(site)
    await site.one_pass()
    assert trials(site) == []


def test_what_appears_after_the_end_of_its_cluster_goes_too() -> None:
    asyncio.run(carried_out_after_the_end(Site({})))


async def not_in_the_cache_yet(site: Site) -> None:
    await site.runs()
    appear(site)
    cluster = site.kube.find(CLUSTERS, NAME, NAMESPACE)
    assert cluster is not None
    site.kube.caches["clusters"].remove(cluster)
    await site.one_pass()
    assert len(trials(site)) == 2 * len(KINDS)


def test_the_trials_of_a_cluster_that_a_late_cache_does_not_show_stay() -> None:
    asyncio.run(not_in_the_cache_yet(Site({})))


async def killed_after(site: Site, writes: int) -> int:
    """An operator that dies after so many writes for a change, which is then taken back; what it has left."""
    site.stuck = True
    await site.runs()
    site.slurm.jobs = (slurm_job(7),)
    site.edit({"extraConf": "Licenses=a:1"})
    site.kube.writes_left = writes
    for _ in range(6):
        await site.one_pass()
        if site.kube.writes_left <= 0:
            break
    site.kube.writes_left = None
    found = len(trials(site))
    site.edit(LICENSES)
    await site.settle()
    assert trials(site) == []
    return found


def test_whatever_write_was_the_last_one_of_an_earlier_leader() -> None:
    found = {asyncio.run(killed_after(Site(LICENSES), writes)) for writes in range(1, 6)}
    assert found >= {1, 2, 3, 4}
