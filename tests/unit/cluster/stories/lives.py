"""Stories of a Cluster's life: its end, a successor, lost objects, full volumes, and a Slurm that runs elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from slinky_api import labels
from slinky_operator.kube import errors, resources
from slinky_operator.slurm.connection.contact import Trouble
from tests.unit.cluster.stories.seeded import NIGHT, Story
from tests.unit.cluster.stories.site import CONTROLLER, NAME, NAMESPACE, RESTAPI, Site
from tests.unit.cluster.stories.slurm import job

KEY: dict[str, Any] = {"name": "key", "key": "file"}
THERE = "http://there:6820"
EVERYTHING: dict[str, Any] = {
    "login": [{"name": "front"}],
    "metrics": {"enabled": True, "exporter": {"enabled": True}},
    "identity": {"passwd": {"configMapRef": {"name": "users"}}},
    "accounting": {},
    "controller": {"service": {"spec": {"type": "LoadBalancer"}}},
}


def allowed(site: Site, data: bytes = b"k" * 40, servers: str = THERE) -> None:
    """A Secret that may be sent to a server."""
    site.secret("key", {"file": data}, annotations={labels.ANNOTATION_SECRET_SERVER: servers})


async def everything(site: Site) -> None:
    """A Cluster with all daemons, which loses each part again, and is deleted."""
    site.texts("users", {"passwd": "alice:x:1000:1000::/home/alice:/bin/sh\n", "group": "alice:x:1000:\n"})
    site.edit(EVERYTHING)
    await site.settle()
    for part in EVERYTHING:
        spec = site.kube.find(resources.CLUSTERS, NAME, NAMESPACE)
        assert spec is not None
        site.edit({key: value for key, value in spec["spec"].items() if key != part})
        await site.settle()
    site.delete()
    await site.rounds(3)


async def deleted(site: Site, spec: Mapping[str, Any], *, kills: int = 0) -> None:
    """A Cluster is deleted while slurmd pods are left, and goes with the last of them."""
    site.edit(spec)
    site.node_set("compute")
    await site.runs()
    site.slurmd("compute-0")
    site.delete()
    await site.rounds(3)
    site.kill_pod("compute-0")
    await site.with_kills(kills)
    await site.rounds(3)


async def deleted_in_a_trial(site: Site) -> None:
    """It is deleted while a change is tried, and while its spec is refused."""
    await site.runs()
    site.stuck = True
    site.edit(NIGHT)
    await site.rounds(2)
    site.delete()
    await site.rounds(3)


async def deleted_behind_the_cache(site: Site) -> None:
    """The API server shows a slurmd pod that the cache does not, and later another Cluster of the name."""
    await site.runs()
    site.kube.lags = True
    site.slurmd("compute-0")
    site.delete()
    obj = site.kube.find(resources.CLUSTERS, NAME, NAMESPACE)
    assert obj is not None
    site.kube.caches["clusters"].put(obj)
    await site.rounds(2)
    site.kube.catch_up()
    site.kill_pod("compute-0")
    site.say("the API server has another Cluster of the name")
    site.kube.lags = True
    site.put("Cluster", NAME, {}, uid="next-uid")
    site.wait(10)
    await site.rounds(2)


async def adopted(site: Site, *, kills: int = 0) -> None:
    """A Cluster loses its finalizer and goes; the next of its name takes everything over."""
    site.edit({"extraConf": "KillWait=7"})
    site.node_set("compute")
    await site.runs()
    site.slurmd("compute-0")
    site.kube.end(resources.CLUSTERS, NAME, NAMESPACE)
    site.say("the Cluster has lost its finalizer, and is gone")
    await site.rounds(2)
    site.put("Cluster", NAME, {}, uid="next-uid")
    site.say("another one of its name")
    await site.with_kills(kills)
    await site.settle()


async def not_adopted(site: Site) -> None:
    """An object of a name that is needed is somebody else's."""
    about = {"name": CONTROLLER, "namespace": NAMESPACE, "labels": {"of": "somebody"}}
    site.kube.put(resources.SERVICES, {"metadata": about, "spec": {"clusterIP": "10.3.0.1"}})
    await site.settle(8)
    site.say("it is gone")
    site.kube.end(resources.SERVICES, CONTROLLER, NAMESPACE)
    site.wait(61)
    await site.settle()


async def superseded(site: Site) -> None:
    """The cache shows a Cluster that the API server no longer has."""
    await site.runs()
    config = site.kube.find(resources.CONFIGMAPS, f"{NAME}-config", NAMESPACE)
    assert config is not None
    own = {**config["metadata"]["labels"], labels.LABEL_CLUSTER_UID: "earlier-uid"}
    site.kube.put(resources.CONFIGMAPS, {**config, "metadata": {**config["metadata"], "labels": own}})
    site.kube.lags = True
    site.put("Cluster", NAME, {}, uid="next-uid")
    await site.rounds(2)
    site.kube.catch_up()
    await site.settle()


async def lost(site: Site, names: tuple[str, ...]) -> None:
    """Pods are lost, one after the other."""
    site.node_set("compute")
    await site.runs()
    for name in names:
        site.kill_pod(name)
        await site.rounds(1)
        site.starting.add(name.rpartition("-")[0])
        site.kill_pod(name)
        await site.rounds(2)
        site.starting.clear()
        await site.settle()


async def lost_objects(site: Site) -> None:
    """Objects of the operator are deleted by somebody, one after the other."""
    site.node_set("compute")
    await site.runs()
    for resource, name in (
        (resources.SERVICES, RESTAPI),
        (resources.DEPLOYMENTS, RESTAPI),
        (resources.PODDISRUPTIONBUDGETS, f"{NAME}-jobs"),
        (resources.STATEFULSETS, CONTROLLER),
    ):
        site.say(f"{resource.kind} {name} is deleted")
        site.kube.end(resource, name, NAMESPACE)
        await site.settle()


async def changed_by_hand(site: Site) -> None:
    """Somebody edits a Service and a StatefulSet."""
    await site.runs()
    service = site.kube.find(resources.SERVICES, RESTAPI, NAMESPACE)
    assert service is not None
    site.kube.put(resources.SERVICES, {**service, "spec": {**service["spec"], "selector": {"a": "b"}}})
    workload = site.kube.find(resources.STATEFULSETS, CONTROLLER, NAMESPACE)
    assert workload is not None
    site.kube.put(resources.STATEFULSETS, {**workload, "spec": {**workload["spec"], "replicas": 0}})
    site.say("a selector and a number of replicas are changed")
    await site.settle()


async def claim_goes(site: Site) -> None:
    """slurmctld has no pod, and its claim is being deleted."""
    await site.runs()
    claim = site.kube.find(resources.PERSISTENTVOLUMECLAIMS, f"state-{CONTROLLER}-0", NAMESPACE)
    assert claim is not None
    about = {**claim["metadata"], "deletionTimestamp": "2026-01-01T00:00:20Z"}
    site.kube.put(resources.PERSISTENTVOLUMECLAIMS, {**claim, "metadata": about})
    site.starting.add(CONTROLLER)
    site.kill_pod(f"{CONTROLLER}-0")
    workload = site.kube.find(resources.STATEFULSETS, CONTROLLER, NAMESPACE)
    assert workload is not None
    site.kube.put(resources.STATEFULSETS, {**workload, "spec": {**workload["spec"], "replicas": 0}})
    site.kube.refuse = lambda verb, kind, name: _refused(verb, kind, "no") if kind == "StatefulSet" else None
    await site.rounds(3)


async def refused_writes(site: Site) -> None:
    """The API server refuses a Deployment, and then does not answer."""
    site.kube.refuse = lambda verb, kind, name: _refused(verb, kind, "quota") if kind == "Deployment" else None
    await site.settle(6)
    site.kube.refuse = lambda verb, kind, name: None
    site.wait(61)
    await site.settle()
    site.edit(NIGHT)
    target = errors.Target("apply", "configmaps")
    site.kube.refuse = lambda verb, kind, name: errors.Unavailable(target, "no answer") if kind == "ConfigMap" else None
    await site.rounds(3)
    site.wait(70)
    await site.rounds(2)
    site.kube.refuse = lambda verb, kind, name: None
    await site.settle()


def _refused(verb: str, kind: str, why: str) -> errors.KubeError:
    return errors.Forbidden(errors.Target(verb, kind), f"{kind} is forbidden: {why}", status=403)


async def full(site: Site, volume: str) -> None:
    """A volume fills up, hangs, and is given room."""
    site.edit({"accounting": {}})
    await site.runs()
    for size, free in ((2**30, 2**26), (2**30, 2**20), (2**30, 2**29)):
        site.say(f"{volume} has {free >> 20} MiB of {size >> 20}")
        site.slurm.rooms[volume] = size, free
        site.wait(31)
        await site.rounds(2)
    site.say("its agent does not answer")
    site.slurm.silent = frozenset({"volumes"})
    site.wait(31)
    await site.rounds(2)


async def grows(site: Site, *, rigid: bool) -> None:
    """Claims are to be larger; some volumes do not grow."""
    site.edit({"accounting": {}})
    await site.runs()
    site.is_rigid = rigid
    bigger = {"persistence": {"size": "77Gi"}}
    site.edit({"controller": bigger, "accounting": {"mariadb": bigger}})
    await site.settle()
    site.wait(61)
    await site.settle(8)
    site.is_rigid = False
    site.wait(61)
    await site.settle(8)
    site.edit({"accounting": {}})
    await site.settle(8)


async def claim_may_not_grow(site: Site) -> None:
    """The API server lets no claim grow."""
    await site.runs()
    site.kube.refuse = lambda verb, kind, name: (
        _refused(verb, kind, "only dynamically provisioned claims can grow")
        if kind == "PersistentVolumeClaim"
        else None
    )
    site.edit({"controller": {"persistence": {"size": "77Gi"}}})
    await site.settle(8)


async def elsewhere(site: Site, spec: Mapping[str, Any]) -> None:
    """A Slurm elsewhere: its Secret is missing, not allowed, allowed, changed; it is away; it is deleted."""
    site.edit({"server": THERE, **spec})
    site.node_set("compute")
    await site.rounds(3)
    site.say("the Secret comes, and may not be sent there")
    site.secret("key", {"file": b"k" * 40})
    site.wait(4)
    await site.rounds(2)
    site.say("it may be")
    allowed(site)
    site.wait(4)
    await site.settle(8)
    site.say("it changes")
    allowed(site, b"n" * 40)
    site.wait(61)
    await site.settle(8)
    site.say("Slurm is away, and then takes no token")
    site.trouble = Trouble.NO_ANSWER
    await site.rounds(2)
    site.trouble = Trouble.UNAUTHORIZED
    await site.rounds(2)
    site.trouble = Trouble.NONE
    site.slurm.jobs = (job(7), job(8, "PENDING"))
    await site.settle(8)
    site.edit({"server": "http://elsewhere:6820", **spec})
    await site.settle(8)
    site.delete()
    await site.rounds(2)


async def too_many_elsewhere(site: Site) -> None:
    """More Slurms elsewhere than a namespace may have."""
    allowed(site)
    for number in range(21):
        site.put("Cluster", f"older-{number}", {"server": THERE}, creationTimestamp="2025-01-01T00:00:00Z")
    site.edit({"server": THERE, "token": {"secretRef": KEY}})
    await site.settle(6)
    site.kube.end(resources.CLUSTERS, "older-0", NAMESPACE)
    site.kube.end(resources.CLUSTERS, "older-1", NAMESPACE)
    site.say("two of them are gone")
    await site.settle(6)


async def invalid(site: Site) -> None:
    """A spec that cannot be parsed changes nothing."""
    await site.runs()
    site.edit({"partitions": "none"})
    await site.rounds(2)
    site.edit(NIGHT)
    await site.settle()
    site.put("NodeSet", "broken", {"clusterName": NAME, "replicas": "many"})
    site.say("a NodeSet that cannot be parsed")
    await site.settle()


LOST: Mapping[str, tuple[str, ...]] = {"slurmctld": (f"{CONTROLLER}-0",), "slurmrestd": (f"{RESTAPI}-0",)}

STORIES: Mapping[str, Story] = {
    "everything": everything,
    "deleted": partial(deleted, spec={}),
    "deleted with claims and accounting": partial(
        deleted, spec={"accounting": {}, "controller": {"persistence": {"whenDeleted": "Delete"}}}
    ),
    "deleted, keys stay": partial(deleted, spec={"auth": {"keysWhenDeleted": "Retain"}}),
    "deleted by operators that are killed": partial(deleted, spec={}, kills=8),
    "deleted in a trial": deleted_in_a_trial,
    "deleted behind the cache": deleted_behind_the_cache,
    "adopted": adopted,
    "adopted by operators that are killed": partial(adopted, kills=12),
    "not adopted": not_adopted,
    "superseded": superseded,
    **{f"lost {daemon}": partial(lost, names=names) for daemon, names in LOST.items()},
    "lost objects": lost_objects,
    "changed by hand": changed_by_hand,
    "claim goes": claim_goes,
    "refused writes": refused_writes,
    "full volume of slurmctld": partial(full, volume="slurmctld"),
    "full volume of MariaDB": partial(full, volume="MariaDB"),
    "claims grow": partial(grows, rigid=False),
    "volumes do not": partial(grows, rigid=True),
    "claims may not": claim_may_not_grow,
    "elsewhere by token": partial(elsewhere, spec={"token": {"secretRef": KEY}, "auth": {"slurmKeyRef": KEY}}),
    "elsewhere by key": partial(
        elsewhere, spec={"auth": {"jwtKeyRef": KEY}, "controller": {"external": {"host": "there"}}}
    ),
    "elsewhere with an exporter": partial(
        elsewhere, spec={"auth": {"jwtKeyRef": KEY}, "metrics": {"exporter": {"enabled": True, "tokenRef": KEY}}}
    ),
    "too many elsewhere": too_many_elsewhere,
    "invalid": invalid,
}
