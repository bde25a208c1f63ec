"""Pods, groups and jobs that come one after the other, by a seed: what comes, how long it works, and who interferes.

The seed decides what comes and in which order. When each thing happens is decided by a real Slurm and by the machine
on which all of it runs, so two runs with one seed bring the same arrivals, and not the same histories.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from slinky_api import labels
from slinky_operator.bridge.pods.model.lift import CONDITION
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import BATCH_JOBS, BRIDGE_PODS, SLURMJOBS
from slurm_client import JobSpec, SlurmClient, errors
from tests.support.bridged.machines import OVER, Work
from tests.support.bridged.site import TEAM, BridgedSite

KINDS: Final = {"pod": 44, "urgent": 6, "group": 20, "batch": 15, "other": 10, "ordinary": 5}
"""What comes, and how often of a hundred."""

INTERFERENCES: Final = {"delete": 5, "scancel": 4, "cordon": 2, "leave": 1}
"""Who interferes, and how often of a hundred arrivals."""

ZONES: Final = ("a", "b", "c")
"""Values of the label zone of Nodes, which is a feature."""

PICKY: Final = 0.3
"""Of single pods these take the first two zones only."""

AWAY_S: Final = 4.0
"""Seconds for which a Node is cordoned, or is none of the bridge."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Something that comes."""

    number: int
    kind: str
    cpus: int
    pods: int
    work: Work
    interference: str
    after_s: float
    """When somebody interferes."""
    luck: float
    """Chooses a machine."""

    @property
    def name(self) -> str:
        """Its name, also in Slurm."""
        return f"{self.kind}-{self.number}"


def arrivals(seed: int, count: int) -> list[Arrival]:
    """What comes."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    found = []
    for number in range(count):
        (kind,) = rng.choices(list(KINDS), list(KINDS.values()))
        luck = rng.randrange(100)
        interference, share = "", 0
        for name, percent in INTERFERENCES.items():
            if share <= luck < share + percent:
                interference = name
            share += percent
        work = Work(rng.uniform(0.1, 2.0), rng.choice([0, 0, 0, 1]), rng.choice([0.0, 0.1, 1.0]))
        pods = rng.randrange(2, 7) if kind == "group" else 1
        found.append(
            Arrival(number, kind, rng.randrange(1, 5), pods, work, interference, rng.uniform(0, 2), rng.random())
        )
    return found


class Traffic:
    """Lets everything come, and everybody else act: controllers, users, administrators.

    Parameters
    ----------
    site
        Where to.
    client
        Of an administrator of its Slurm.
    at_once
        Arrivals that are there at a time.
    """

    def __init__(self, site: BridgedSite, client: SlurmClient, at_once: int) -> None:
        self._site, self._kube, self._machines = site, site.kube, site.machines
        self._client = client
        self._room = asyncio.Semaphore(at_once)
        self._done: dict[str, asyncio.Event] = {}
        self._indexes: dict[str, set[int]] = {}
        """By name of a Job: indexes that have succeeded."""
        self._pods = 0
        self.came: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        """How pods ended."""
        site.machines.ended = self._ended

    async def run(self, plan: list[Arrival]) -> None:
        """Let all of it come, and wait until all of it is over."""
        async with asyncio.TaskGroup() as tasks:
            for arrival in plan:
                _ = await self._room.acquire()
                _ = tasks.create_task(self._one(arrival))

    async def _one(self, arrival: Arrival) -> None:
        try:
            self.came[arrival.kind] += 1
            await {"batch": self._batch, "other": self._other}.get(arrival.kind, self._pods_of)(arrival)
        finally:
            self._room.release()

    # Jobs that are no pods

    async def _batch(self, arrival: Arrival) -> None:
        """A job of slurmd, on a machine that has nodes of both kinds."""
        script = f"#!/bin/sh\nexec sleep {arrival.work.seconds:.2f}\n"
        about = JobSpec(
            name=arrival.name, partition="batch", script=script, cpus_per_task=arrival.cpus,
            standard_output="/dev/null", working_directory="/",
        )  # fmt: skip
        job = (await self._client.submit_job(about)).id
        while (await self._client.job(job)).state.base in {"PENDING", "RUNNING"}:  # noqa: ASYNC110 - Slurm sets no event
            await asyncio.sleep(0.5)

    async def _other(self, arrival: Arrival) -> None:
        """A job without a script that somebody else holds, on the same nodes."""
        about = JobSpec(
            name=arrival.name, partition="pods", flags=["EXTERNAL_JOB"], tasks=1, cpus_per_task=arrival.cpus,
            time_limit=timedelta(minutes=10),
        )  # fmt: skip
        job = (await self._client.submit_job(about)).id
        await asyncio.sleep(arrival.work.seconds)
        while (await self._client.job(job)).state.base in {"PENDING", "RUNNING"}:
            try:
                await self._client.cancel_job(job)
            except errors.SlurmError:
                await asyncio.sleep(0.1)

    # Pods

    async def _pods_of(self, arrival: Arrival) -> None:
        done = self._done[arrival.name] = asyncio.Event()
        cpu, work = f"{1000 * arrival.cpus - 500}m", arrival.work
        machine = self._machine(arrival)
        match arrival.kind:
            case "group":
                self._group(arrival, cpu)
            case "urgent":
                self._site.urgent_pod(arrival.name, cpu, work)
            case "ordinary":
                self._site.ordinary_pod(arrival.name, machine, cpu, work)
            case _:
                self._site.pod(arrival.name, cpu, work, zones=ZONES[:2] if arrival.luck < PICKY else ())
        interfering = asyncio.create_task(self._interfere(arrival, machine))
        while not done.is_set():
            try:
                await asyncio.wait_for(done.wait(), 1.0)
            except TimeoutError:
                self._give_up(arrival.name)
        await interfering
        await self._leave(arrival)

    def _group(self, arrival: Arrival, cpu: str) -> None:
        annotations = {labels.BRIDGE_PREFIX + "partition": "pods"}
        spec = {"completions": arrival.pods, "parallelism": arrival.pods, "completionMode": "Indexed"}
        about = {"name": arrival.name, "namespace": TEAM, "annotations": annotations}
        job = self._kube.put(BATCH_JOBS, {"metadata": about, "spec": spec, "status": {}})
        self._indexes[arrival.name] = set()
        for index in range(arrival.pods):
            self._pod_of(job, index, cpu, Work(arrival.work.seconds * (1 + index % 2), 0, arrival.work.grace_s))

    def _pod_of(self, job: Object, index: int, cpu: str, work: Work) -> None:
        self._pods += 1
        self._site.pod(f"{job['metadata']['name']}-{index}-{self._pods}", cpu, work, job, index)

    def _ended(self, pod: Object) -> None:
        """What the controller of Jobs does with a pod that has ended or is gone; others are over with it."""
        about = pod["metadata"]
        phase = pod["status"].get("phase")
        owners = about.get("ownerReferences") or ()
        work = self._machines.work[TEAM, about["name"]]
        if not owners:
            self.ended[phase if phase in OVER else "evicted or deleted"] += 1
            if (done := self._done.get(about["name"])) is not None:
                done.set()
            return
        name, index = owners[0]["name"], int(about["annotations"]["batch.kubernetes.io/job-completion-index"])
        job = self._kube.find(BATCH_JOBS, name, TEAM)
        if job is None or job["status"].get("conditions") or index in self._indexes[name]:
            return
        if phase != "Succeeded":
            self.ended["made again"] += 1
            self._pod_of(job, index, pod["spec"]["containers"][0]["resources"]["requests"]["cpu"], work)
            return
        self.ended["Succeeded"] += 1
        self._indexes[name].add(index)
        completed = ",".join(str(one) for one in sorted(self._indexes[name]))
        status: Object = {"completedIndexes": completed}
        if len(self._indexes[name]) == job["spec"]["completions"]:
            status["conditions"] = [{"type": "Complete", "status": "True"}]
            self._done[name].set()
        _ = self._kube.put(BATCH_JOBS, {**job, "status": status})

    def _give_up(self, name: str) -> None:
        """A user whose job was cancelled before it ran deletes what waits for it."""
        for pod in self._mine(name):
            shown = {one["type"]: one.get("reason") for one in pod["status"].get("conditions") or ()}
            if shown.get(CONDITION) == "JobEnded":
                self._delete(name)
                return

    def _mine(self, name: str) -> list[Object]:
        return [
            pod
            for pod in self._site.groups
            if pod["metadata"]["name"] == name
            or ((pod["metadata"].get("ownerReferences") or [{}])[0].get("name") == name)
        ]

    def _delete(self, name: str) -> None:
        job = self._kube.find(BATCH_JOBS, name, TEAM)
        if job is not None:
            self._kube.forget(BATCH_JOBS, job)
            self._done[name].set()
            return
        pod = self._kube.find(BRIDGE_PODS, name, TEAM)
        if pod is not None:
            _ = self._kube.mark(BRIDGE_PODS, pod)

    async def _leave(self, arrival: Arrival) -> None:
        """What is over is deleted once its job has ended, as by its time to live."""
        while True:
            pods = self._mine(arrival.name)
            uids = {pod["metadata"]["uid"] for pod in pods}
            job = self._kube.find(BATCH_JOBS, arrival.name, TEAM)
            uids |= {job["metadata"]["uid"]} if job is not None else set()
            own = [
                one
                for one in self._site.jobs
                if (one["metadata"].get("ownerReferences") or [{}])[0].get("uid") in uids
                and (one.get("status") or {}).get("state") not in {"Succeeded", "Failed"}
            ]
            if not own and all(pod["status"].get("phase") in OVER for pod in pods):
                break
            await asyncio.sleep(0.2)
        if job is not None:
            self._kube.forget(BATCH_JOBS, job)
        for pod in pods:
            found = self._kube.find(BRIDGE_PODS, pod["metadata"]["name"], TEAM)
            if found is not None:
                self._kube.forget(BRIDGE_PODS, found)
        left = self._kube.find(BRIDGE_PODS, arrival.name, TEAM)
        if left is not None:
            self._kube.forget(BRIDGE_PODS, left)

    # Those who interfere

    def _machine(self, arrival: Arrival) -> str:
        names = sorted(self._machines.all)
        return names[int(arrival.luck * len(names))]

    async def _interfere(self, arrival: Arrival, machine: str) -> None:
        if not arrival.interference:
            return
        await asyncio.sleep(arrival.after_s)
        match arrival.interference:
            case "delete":
                self._delete(arrival.name)
            case "scancel":
                await self._scancel(arrival.name)
            case "cordon":
                self._machines.change(machine, unschedulable=True)
                await asyncio.sleep(AWAY_S)
                self._machines.change(machine, unschedulable=False)
            case _:
                _ = self._machines.label(machine, bridge=None)
                await asyncio.sleep(AWAY_S)
                _ = self._machines.label(machine, bridge="yes")

    async def _scancel(self, name: str) -> None:
        """An administrator cancels the job, without a word to Kubernetes."""
        for pod in self._mine(name):
            owners = pod["metadata"].get("ownerReferences") or [pod["metadata"]]
            job = self._kube.find(SLURMJOBS, f"bridge-{owners[0]['uid']}", TEAM)
            number = (job or {}).get("status", {}).get("jobId")
            if number is not None:
                with suppress(errors.SlurmError):
                    await self._client.cancel_job(number)
                return
