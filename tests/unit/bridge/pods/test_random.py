"""Random histories: late caches, operators that end after a write, users, Slurm, kubelets and controllers.

What no lift, eviction and submission may do is asserted in `worlds.Kube`. Here each history must come to its end: all
Jobs complete, all pods run, and no job is left in Slurm without a pod.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from slinky_operator.bridge.pods.model.lift import pinned_to
from slinky_operator.bridge.pods.model.membership import INDEX
from slinky_operator.jobs.task_sets import TaskSet
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import BATCH_JOBS, BRIDGE_PODS, NODES, SLURMJOBS
from tests.support.slurm_jobs import Killed
from tests.unit.bridge.pods.worlds import GATE, World

STORIES = 150
STEPS = 60
OVER = {"Succeeded", "Failed"}
LARGE = {"cpu": "3", "memory": "2Gi"}


def phase(pod: Object) -> str:
    return str(pod["status"]["phase"])


def deleting(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def gated(pod: Object) -> bool:
    return GATE in (pod["spec"].get("schedulingGates") or [])


def state(job: Object) -> str:
    return str((job.get("status") or {}).get("state") or "")


def mark(world: World, obj: Object) -> None:
    resource = SLURMJOBS if "external" in obj["spec"] else BRIDGE_PODS
    world.kube.put(resource, {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": "2026-11-01T00:00:00Z"}})


class Story:
    """Those who act beside the operator."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - no secret
        self.world = World()
        self.world.kube.is_late = True
        # The scheduler of Kubernetes is at once in half of the stories.
        self.world.kube.binds = bool(seed % 2)
        self.count = 0

    def pick(self, found: list[Object]) -> Object | None:
        return self.rng.choice(found) if found else None

    # Users

    def new_job(self) -> None:
        self.count += 1
        if self.count <= 3:
            pods = self.rng.randrange(1, 4)
            completions = pods + self.rng.randrange(2)
            self.world.job(f"j{self.count}", pods, completions=completions, make=False)

    def delete_pod(self) -> None:
        if pod := self.pick([one for one in self.world.kube.pods() if not deleting(one)]):
            mark(self.world, pod)

    def delete_slurmjob(self) -> None:
        if job := self.pick([one for one in self.world.slurmjobs() if not deleting(one)]):
            mark(self.world, job)

    def lift_pod(self) -> None:
        if self.rng.random() < 0.2 and (pod := self.pick([one for one in self.world.kube.pods() if gated(one)])):
            self.world.kube.put(BRIDGE_PODS, {**pod, "spec": {**pod["spec"], "schedulingGates": []}})

    # Kubernetes

    def controller(self) -> None:
        """Make the pods that Jobs lack, and note those that have succeeded."""
        for job in self.world.kube.all(BATCH_JOBS):
            about, spec = job["metadata"], job["spec"]
            own = [
                one for one in self.world.kube.pods() if one["metadata"]["ownerReferences"][0]["uid"] == about["uid"]
            ]
            done = {
                task
                for first, last in TaskSet.read(job["status"].get("completedIndexes", "")).spans
                for task in range(first, last + 1)
            }
            done |= {int(one["metadata"]["annotations"][INDEX]) for one in own if phase(one) == "Succeeded"}
            status: Object = {"completedIndexes": TaskSet.of(done).written(1000)}
            if len(done) == spec["completions"]:
                status["conditions"] = [{"type": "Complete", "status": "True"}]
            if status != job["status"]:
                self.world.kube.put(BATCH_JOBS, {**job, "status": status})
            living = [one for one in own if phase(one) not in OVER and not deleting(one)]
            busy = {int(one["metadata"]["annotations"][INDEX]) for one in living}
            missing = [index for index in range(spec["completions"]) if index not in done | busy]
            for index in missing[: max(0, spec["parallelism"] - len(living))]:
                # The first pod of every other Job is larger: two components of one job.
                large = {"requests": LARGE} if index == 0 and int(about["name"][1:]) % 2 else {}
                self.world.pod_of(job, index, **large)

    def kubelet(self) -> None:
        """Start a pod, end one, or let one go."""
        pod = self.pick(self.world.kube.pods())
        if pod is None:
            return
        if deleting(pod):
            self.gone(pod)
        elif not gated(pod) and phase(pod) == "Pending" and self.is_bound(pod):
            _ = self.world.set_pod(pod, phase="Running")
        elif phase(pod) == "Running":
            self.world.ends(pod, self.rng.choice([0, 0, 1]))

    def is_bound(self, pod: Object) -> bool:
        """Whether a pod has a Node; if not, it gets the one that it was given, if that exists."""
        node = pinned_to(pod)
        if pod["spec"].get("nodeName") or not node:
            return True
        if self.world.kube.find(NODES, node, None) is not None:
            self.world.kube.put(BRIDGE_PODS, {**pod, "spec": {**pod["spec"], "nodeName": node}})
        return False

    def node(self) -> None:
        """A Node goes, and Kubernetes deletes its pods; or it comes back."""
        name = self.rng.choice(["k1", "k2"])
        if self.world.kube.find(NODES, name, None) is None:
            self.world.kube.put(NODES, {"metadata": {"name": name}})
            return
        self.world.lose(name)
        for pod in self.world.kube.pods():
            if pod["spec"].get("nodeName") == name and phase(pod) not in OVER and not deleting(pod):
                mark(self.world, pod)

    def gone(self, pod: Object) -> None:
        self.world.gone(pod)
        for job in self.world.slurmjobs():
            if job["metadata"]["ownerReferences"][0]["uid"] == pod["metadata"]["uid"] and not deleting(job):
                mark(self.world, job)

    # Slurm

    def slurm(self) -> None:
        job = self.pick(self.world.slurmjobs())
        if job is not None:
            self.slurm_of(job, self.rng.random())

    def slurm_of(self, job: Object, luck: float) -> None:
        if deleting(job):
            self.world.kube.drop(SLURMJOBS, job)
        elif state(job) in OVER:
            pass
        elif ended := job["spec"]["external"].get("ended"):
            _ = self.world.slurm(job, "Failed" if ended["exitCode"] else "Succeeded")
        elif state(job) == "":
            _ = self.world.slurm(job, "Pending")
        elif state(job) in {"Pending", "Unknown"}:
            _ = self.world.runs(job) if luck > 0.1 else self.world.slurm(job, "Failed", reason="Cancelled")
        elif luck < 0.2:
            _ = self.world.slurm(job, "Failed", reason="Timeout")
        elif luck < 0.3:
            _ = self.world.slurm(job, "Unknown")

    # The operator

    async def passes(self) -> None:
        if self.rng.random() < 0.1:
            self.world.kube.last_write = len(self.world.kube.writes) + self.rng.randrange(1, 4)
        try:
            for key in self.rng.sample(list(self.world.queue), min(len(self.world.queue), self.rng.randrange(1, 5))):
                del self.world.queue[key]
                result = await self.world.look(key)
                if result.requeue_after is not None:
                    self.world.wake(key)
        except* Killed:
            # The next one lists everything before its first pass.
            self.world.kube.show_all()
            self.world.start()
        self.world.kube.last_write = None

    def caches(self) -> None:
        for plural in list(self.world.kube.late):
            self.world.kube.show(plural, self.rng.randrange(4))

    def time(self) -> None:
        self.world.tick(self.rng.choice([0.5, 5, 40, 200]))

    async def step(self) -> None:
        players: list[Callable[[], None]] = [self.controller, self.kubelet, self.kubelet, self.slurm, self.slurm]
        rare: list[Callable[[], None]] = [self.new_job, self.delete_pod, self.delete_slurmjob, self.lift_pod, self.time]
        rare += [self.node]
        self.rng.choice([*players, *players, *rare, self.caches, self.caches, self.caches])()
        await self.passes()

    async def come_to_an_end(self) -> None:
        """Nobody interferes any more."""
        world = self.world
        world.kube.binds = True
        for name in ("k1", "k2"):
            if world.kube.find(NODES, name, None) is None:
                world.kube.put(NODES, {"metadata": {"name": name}})
        for _ in range(60):
            self.controller()
            for job in world.slurmjobs():
                self.slurm_of(job, 0.5)
                if state(job) == "Failed" and "allocation" not in job["status"] and not deleting(job):
                    mark(world, job)
            for pod in world.kube.pods():
                if deleting(pod):
                    self.gone(pod)
                elif not gated(pod) and phase(pod) not in OVER:
                    world.ends(pod)
            await world.settle(60)
            if self.is_over():
                return
        raise AssertionError([self.shown(one) for one in (*world.kube.pods(), *world.slurmjobs())])

    def is_over(self) -> bool:
        jobs = all("conditions" in one["status"] for one in self.world.kube.all(BATCH_JOBS))
        pods = all(phase(one) in OVER for one in self.world.kube.pods())
        return jobs and pods and all(state(one) in OVER for one in self.world.slurmjobs())

    def shown(self, obj: Object) -> tuple[str, object, object]:
        return obj["metadata"]["name"], obj.get("status"), obj["metadata"].get("annotations")


@pytest.mark.parametrize("first", range(0, STORIES, 25))
async def test_whatever_happens_each_history_comes_to_its_end(first: int) -> None:
    for seed in range(first, first + 25):
        story = Story(seed)
        story.new_job()
        story.world.pod("bare", owner=None)
        story.world.kube.drop(BRIDGE_PODS, story.world.find("bare"))
        try:
            for _ in range(STEPS):
                await story.step()
            story.world.kube.show_all()
            story.world.start()
            await story.come_to_an_end()
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
