"""Stories of configurations: good ones, bad, dangerous and waiting ones, and what happens meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from slinky_api import labels
from slinky_operator.kube import errors, resources
from slinky_operator.kube.objects import Object
from slurm_client.models import Reservation
from tests.unit.cluster.stories.seeded import NIGHT, Story, is_refused
from tests.unit.cluster.stories.site import CONFIG, CONTROLLER, NAMESPACE, Site
from tests.unit.cluster.stories.slurm import job


async def good(site: Site) -> None:
    """A change is tried, written, mounted, loaded and kept."""
    site.node_set("compute")
    await site.settle()
    site.edit({"extraConf": "KillWait=7"})
    await site.settle()
    site.edit(NIGHT)
    await site.settle()


async def refused(site: Site) -> None:
    """A refused change reaches nothing; another operator tries it again; then it is mended."""
    site.refuses = is_refused
    await site.runs()
    site.edit({"extraConf": "Bogus=1"})
    await site.settle()
    site.restart()
    await site.settle()
    site.edit({"extraConf": "KillWait=7"})
    await site.settle()


async def rolled_back(site: Site) -> None:
    """A change that slurmctld itself refuses is put back, and left alone until it changes."""
    site.slurm.refuses = lambda text: "slurm_reconfigure() failed" if "night" in text else ""
    await site.runs()
    site.edit(NIGHT)
    await site.settle()
    site.restart()
    await site.settle()
    site.wait(310)
    await site.settle()
    site.edit({"extraConf": "KillWait=7"})
    await site.settle()


async def keeps_ending(site: Site) -> None:
    """slurmctld ends on a change again and again."""
    await site.runs()
    site.edit(NIGHT)
    await site.rounds(2)
    site.starting.add(CONTROLLER)
    site.say("slurmctld ends")
    await site.rounds(2)
    pod = site.kube.find(resources.PODS, f"{CONTROLLER}-0", NAMESPACE)
    assert pod is not None
    ended = {"terminated": {"exitCode": 1, "message": "slurmctld: fatal: something that shows with jobs"}}
    waits = {"waiting": {"reason": "CrashLoopBackOff"}}
    statuses = [{"name": "slurmctld", "ready": False, "lastState": ended, "state": waits}]
    site.kube.put(resources.PODS, {**pod, "status": {**pod["status"], "containerStatuses": statuses}})
    site.say("slurmctld is in a back-off")
    await site.rounds(4)
    site.starting.clear()
    site.kill_pod(f"{CONTROLLER}-0")
    await site.settle()


async def in_use(site: Site, first: Mapping[str, Any], then: Mapping[str, Any], use: Mapping[str, Any]) -> None:
    """What jobs use stays until they have ended."""
    site.edit(first)
    site.node_set("compute")
    await site.runs()
    values = dict(use)
    site.slurm.jobs = (job(7, values.pop("state", "RUNNING"), **{"partition": "all", **values}),)
    site.edit(then)
    await site.settle(16)
    site.restart()
    await site.settle(10)
    site.say("the job ends")
    site.slurm.jobs = ()
    site.wait(65)
    await site.settle()


async def reserved(site: Site) -> None:
    """A partition stays for a reservation."""
    site.edit(NIGHT)
    await site.runs()
    site.slurm.reservations = (Reservation(name="course", partition="night"),)
    site.edit({})
    await site.settle(16)
    site.slurm.reservations = ()
    site.wait(10)
    await site.settle()


async def opened_by_hand(site: Site) -> None:
    """An administrator opens a partition that is to go."""
    site.edit(NIGHT)
    await site.runs()
    site.slurm.states["night"] = "UP"
    site.edit({})
    await site.settle(16)
    site.slurm.states.clear()
    site.wait(10)
    await site.settle()


async def closed_by_hand(site: Site) -> None:
    """An administrator closes a partition, and a change leaves it so."""
    site.edit(NIGHT)
    await site.runs()
    site.slurm.states["night"] = "DOWN"
    site.edit({**NIGHT, "extraConf": "KillWait=7"})
    await site.settle()
    site.slurm.states["night"] = "UP"
    site.wait(65)
    await site.settle()


async def late_answer(site: Site) -> None:
    """A job starts in a partition that is being closed, after Slurm was asked for the first time."""
    site.edit(NIGHT)
    await site.runs()
    site.edit({})
    for number in range(12):
        await site.one_pass()
        if site.slurm.read.get("slurm.conf", "").count("INACTIVE") and not site.slurm.jobs:
            site.say(f"a job starts in the partition after {number + 1} passes")
            site.slurm.jobs = (job(7, partition="night"),)
    await site.settle(10)
    site.slurm.jobs = ()
    site.wait(65)
    await site.settle()


async def old_answer(site: Site) -> None:
    """Slurm was asked for an earlier change; a job starts before the next one."""
    site.edit({**NIGHT, "extraConf": "Licenses=a:2"})
    await site.runs()
    site.slurm.takes = 2.0
    site.edit(NIGHT)
    await site.settle()
    site.say("a job starts")
    site.slurm.jobs = (job(7, partition="night"),)
    site.edit({})
    await site.settle(12)
    site.slurm.jobs = ()
    site.wait(10)
    await site.settle()


async def expensive_answer(site: Site) -> None:
    """Slurm needs seconds for a list of its jobs: it is asked seldom, and once more right before the write."""
    site.edit(NIGHT)
    await site.runs()
    site.slurm.takes = 0.5
    site.edit({})
    await site.settle()


async def node_set_goes(site: Site) -> None:
    """A NodeSet is deleted, drained, and released once slurmctld no longer has it."""
    site.node_set("compute")
    site.node_set("gpu", finalizers=[labels.FINALIZER_NODESET_DRAIN])
    await site.runs()
    site.slurmd("gpu-0", "gpu")
    site.delete(resources.NODESETS, "gpu")
    await site.rounds(3)
    site.say("its pods are gone")
    site.kube.end(resources.PODS, "gpu-0", NAMESPACE)
    obj = site.kube.find(resources.NODESETS, "gpu", NAMESPACE)
    assert obj is not None
    about = {**obj["metadata"], "finalizers": [labels.FINALIZER_NODESET_CONFIG]}
    site.kube.put(resources.NODESETS, {**obj, "metadata": about})
    await site.settle()


async def ended_once(site: Site) -> None:
    """slurmctld ends once while it loads a change, and starts again."""
    await site.runs()
    site.edit(NIGHT)
    await site.rounds(3)
    site.starting.add(CONTROLLER)
    site.say("slurmctld ends once")
    pod = site.kube.find(resources.PODS, f"{CONTROLLER}-0", NAMESPACE)
    assert pod is not None
    ended = {"terminated": {"exitCode": 1, "message": "slurmctld: fatal: anything"}}
    statuses = [{"name": "slurmctld", "ready": False, "lastState": ended, "state": {"running": {}}}]
    site.kube.put(resources.PODS, {**pod, "status": {**pod["status"], "containerStatuses": statuses}})
    await site.rounds(2)
    site.starting.clear()
    site.say("it runs again")
    await site.settle()


async def silent(site: Site) -> None:
    """Slurm does not say what is in use: everything stays."""
    site.edit(NIGHT)
    await site.runs()
    site.slurm.away_for = 12
    site.edit({"extraConf": "PrologFlags=Alloc\nMaxJobCount=20"})
    await site.settle(16)
    site.wait(10)
    await site.settle()


async def waiting_and_refused(site: Site) -> None:
    """A key that waits for jobs is tried at once; what would be refused then is reported now."""
    site.refuses = lambda text: "Invalid ProctrackType" if "ProctrackType=proctrack/bogus" in text else ""
    await site.runs()
    site.slurm.jobs = (job(7),)
    site.edit({"extraConf": "ProctrackType=proctrack/bogus\nKillWait=7"})
    await site.settle(20)
    site.edit({"extraConf": "ProctrackType=proctrack/pgid\nKillWait=9"})
    await site.settle(20)
    site.slurm.jobs = ()
    site.wait(10)
    await site.settle()


async def one_of_three(site: Site) -> None:
    """Of three NodeSets one is refused, and held back alone."""
    site.refuses = is_refused
    site.node_set("compute")
    await site.runs()
    site.node_set("good", {"partition": {"config": "MaxTime=5"}})
    site.node_set("bad", {"partition": {"config": "MaxTime=banana"}})
    site.edit(NIGHT)
    await site.settle()
    site.edit({"clusterName": "slurm", "replicas": 1, "partition": {"config": "MaxTime=9"}}, resources.NODESETS, "bad")
    await site.settle()


async def untriable(site: Site) -> None:
    """A slurmd image that nobody can pull is left out, and tried alone later."""
    site.node_set("compute")
    site.node_set("typo", {"image": "nowhere:1"})
    await site.runs()
    site.ends = lambda trial, container, pod: (
        (3, "slurmd: not found") if _image(pod, container) == "nowhere:1" else (0, "")
    )
    site.edit({"extraConf": "KillWait=7"})
    await site.settle(20)
    site.wait(61)
    await site.settle(10)
    site.ends = lambda trial, container, pod: (0, "")
    site.wait(200)
    await site.settle(10)


def _image(pod: Object, container: str) -> str:
    return next(str(one["image"]) for one in pod["spec"]["containers"] if one["name"] == container)


async def no_result(site: Site) -> None:
    """A trial that gives no result decides nothing, and is made again."""
    await site.runs()
    site.ends = lambda trial, container, pod: (2, "neither runs nor ends") if container == "slurmctld" else (0, "")
    site.edit({"extraConf": "KillWait=7"})
    await site.settle(12)
    site.ends = lambda trial, container, pod: (0, "")
    site.wait(31)
    await site.settle()


async def no_place(site: Site) -> None:
    """A trial finds no Node, and then may not be created."""
    await site.runs()
    site.stuck = True
    site.edit({"extraConf": "KillWait=7"})
    await site.rounds(4)
    site.wait(100)
    await site.rounds(4)
    site.kube.refuse = _no_quota
    site.wait(31)
    await site.rounds(4)
    site.stuck, site.kube.refuse = False, lambda verb, kind, name: None
    site.wait(31)
    await site.settle()


def _no_quota(verb: str, kind: str, name: str) -> errors.KubeError | None:
    if verb == "create" and kind == "Pod":
        return errors.Forbidden(errors.Target("create", "pods", NAMESPACE, name), "exceeded quota", status=403)
    return None


async def harms_jobs(site: Site) -> None:
    """A change is tried with a copy of the jobs, of which it would end one."""
    site.edit({**NIGHT, "nodes": [{"name": "m1", "config": "CPUs=1"}]})
    await site.runs()
    site.slurm.jobs = (job(7),)
    site.ends = lambda trial, container, pod: (0, "3\n7 RUNNING NODE_FAIL\n") if trial == "j" else (0, "")
    site.edit({"nodes": [{"name": "m1", "config": "CPUs=1"}]})
    await site.settle(16)
    site.restart()
    await site.settle(8)
    site.ends = lambda trial, container, pod: (0, "1\n") if trial == "j" else (0, "")
    site.wait(61)
    await site.settle()


async def jobs_not_copied(site: Site) -> None:
    """The state cannot be copied: the change goes on without, and an Event says so."""
    site.edit(NIGHT)
    await site.runs()
    site.slurm.jobs = (job(7),)
    site.ends = lambda trial, container, pod: (4, "its image has no squeue") if trial == "j" else (0, "")
    site.edit({})
    await site.settle()


async def beside(site: Site) -> None:
    """What goes live now and what waits are tried at once, each by a trial of its own."""
    site.edit(NIGHT)
    await site.runs()
    site.slurm.jobs = (job(7),)
    site.edit({"extraConf": "ProctrackType=proctrack/pgid"})
    await site.rounds(4)
    site.edit({"extraConf": "ProctrackType=proctrack/pgid\nKillWait=9"})
    await site.settle(24)


async def busy(site: Site) -> None:
    """slurmctld answers late after its reconfigure, and does not get a second one."""
    await site.runs()
    site.edit(NIGHT)
    await site.rounds(2)
    site.slurm.away_for = 5
    await site.settle()


async def unread(site: Site) -> None:
    """slurmctld answers and has read nothing."""
    await site.runs()
    site.edit(NIGHT)
    await site.rounds(2)
    site.slurm.reads = False
    await site.rounds(14)
    site.slurm.reads = True
    await site.settle()


async def late_kubelet(site: Site) -> None:
    """A kubelet that mounts an old file is called again."""
    await site.runs()
    site.is_stale = True
    site.edit(NIGHT)
    await site.settle(14)
    site.is_stale = False
    await site.settle()


async def silent_agent(site: Site) -> None:
    """Nothing is loaded before the agent has shown the files."""
    await site.runs()
    site.slurm.silent = frozenset({"files", "volumes", "names"})
    site.edit(NIGHT)
    await site.settle(14)
    site.slurm.silent = frozenset()
    await site.settle()


async def no_address(site: Site) -> None:
    """Nodes without an address are left out until they have one."""
    site.slurm.missing = frozenset({"metal-1"})
    await site.runs()
    site.edit({"nodes": [{"name": "metal-[0-2]", "config": "CPUs=2"}]})
    await site.settle(20)
    site.slurm.missing = frozenset()
    site.wait(11)
    await site.settle()


async def taken_back(site: Site) -> None:
    """An edit is taken back while it is tried, and while it is loaded."""
    await site.runs()
    for passes in (1, 3):
        site.edit(NIGHT)
        await site.rounds(passes)
        site.edit({})
        await site.settle()


async def put_back(site: Site) -> None:
    """ConfigMaps that somebody edits or deletes are put back, never loaded."""
    await site.runs()
    for harm in ("edited", "without data", "deleted", "the good one deleted"):
        site.say(harm)
        name = f"{CONFIG}-good" if "good" in harm else CONFIG
        config = site.kube.find(resources.CONFIGMAPS, name, NAMESPACE)
        assert config is not None
        if "deleted" in harm:
            site.kube.end(resources.CONFIGMAPS, name, NAMESPACE)
        else:
            text = config["data"]["slurm.conf"] + "Handmade=1\n"
            data = {"slurm.conf": text} if harm == "edited" else {}
            site.kube.put(resources.CONFIGMAPS, {**config, "data": data})
        await site.settle()


async def both_gone(site: Site) -> None:
    """Both ConfigMaps are deleted while a change waits for a job; the second time, another operator comes as well."""
    site.edit(NIGHT)
    await site.runs()
    site.slurm.jobs = (job(7, partition="night"),)
    site.edit({})
    await site.settle(16)
    for is_replaced in (False, True):
        site.say("both ConfigMaps are deleted")
        if is_replaced:
            site.restart()
        for name in (CONFIG, f"{CONFIG}-good"):
            site.kube.end(resources.CONFIGMAPS, name, NAMESPACE)
        await site.settle(16)
    site.say("the job ends")
    site.slurm.jobs = ()
    site.wait(65)
    await site.settle()


async def killed(site: Site) -> None:
    """An operator that is killed after each of its writes still gets there."""
    site.node_set("compute")
    await site.with_kills(24)
    await site.settle()
    site.edit(NIGHT)
    await site.with_kills(12)
    await site.settle()
    site.slurm.jobs = (job(7, partition="all"),)
    site.edit({})
    await site.with_kills(16)
    await site.settle()


async def texts_of_users(site: Site) -> None:
    """A ConfigMap of the user's is missing, comes, changes and goes."""
    site.edit({"configFileRefs": [{"name": "texts"}], "prologScriptRefs": [{"name": "scripts"}]})
    await site.settle(10)
    site.texts("texts", {"cgroup.conf": "ConstrainCores=yes"})
    site.texts("scripts", {"a.sh": "#!/bin/sh\n"})
    site.say("both come")
    await site.settle()
    site.texts("texts", {"cgroup.conf": "ConstrainCores=no"})
    site.say("one changes")
    await site.settle()
    site.kube.end(resources.CONFIGMAPS, "texts", NAMESPACE)
    site.say("one goes")
    await site.settle()


METAL = {"nodes": [{"name": "metal-[0-1]", "config": "CPUs=2 Feature=fast NodeAddr=10.9.0.[1-2]"}]}
PLAIN = {"nodes": [{"name": "metal-[0-1]", "config": "CPUs=2 NodeAddr=10.9.0.[1-2]"}]}
IN_USE: Mapping[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "partition": (NIGHT, {}, {"partition": "night"}),
    "node": (METAL, {}, {"nodes": ("metal-0",)}),
    "node by name": (METAL, {}, {"required_nodes": "metal-0", "state": "PENDING"}),
    "feature": (METAL, PLAIN, {"features": "fast", "state": "PENDING"}),
    "license": ({"extraConf": "Licenses=a:2"}, {"extraConf": "Licenses=b:1"}, {"licenses": "a:1", "state": "PENDING"}),
    "key": ({}, {"extraConf": "PrologFlags=Alloc\nKillWait=9"}, {}),
    "room for records": ({"extraConf": "MaxJobCount=50"}, {"extraConf": "MaxJobCount=1"}, {}),
    "gres": ({"extraConf": "GresTypes=gpu,tape"}, {"extraConf": "GresTypes=gpu"}, {"gres_detail": ("tape:1(IDX:0)",)}),
}

STORIES: Mapping[str, Story] = {
    "good": good,
    "refused": refused,
    "rolled back": rolled_back,
    "keeps ending": keeps_ending,
    **{
        f"in use: {name}": partial(in_use, first=first, then=then, use=use)
        for name, (first, then, use) in IN_USE.items()
    },
    "reserved": reserved,
    "opened by hand": opened_by_hand,
    "closed by hand": closed_by_hand,
    "late answer": late_answer,
    "old answer": old_answer,
    "expensive answer": expensive_answer,
    "node set goes": node_set_goes,
    "ended once": ended_once,
    "silent": silent,
    "waiting and refused": waiting_and_refused,
    "one of three": one_of_three,
    "untriable": untriable,
    "no result": no_result,
    "no place": no_place,
    "harms jobs": harms_jobs,
    "jobs not copied": jobs_not_copied,
    "beside": beside,
    "busy": busy,
    "unread": unread,
    "late kubelet": late_kubelet,
    "silent agent": silent_agent,
    "no address": no_address,
    "taken back": taken_back,
    "put back": put_back,
    "both gone": both_gone,
    "killed": killed,
    "texts of users": texts_of_users,
}
