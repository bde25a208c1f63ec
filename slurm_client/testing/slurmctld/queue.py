"""
The queue: jobs are submitted, wait for nodes and for one another, start, and are cancelled, changed and requeued.

Jobs start in the order of their numbers, each as soon as there is room. When they end is left to
:mod:`slurm_client.testing.slurmctld.ends`, what a dependency means to
:mod:`slurm_client.testing.slurmctld.dependencies`, and which GPUs are free to
:mod:`slurm_client.testing.slurmctld.gres`.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from slurm_client.decode.read import number
from slurm_client.models import INFINITE, ExitCode, Job
from slurm_client.notation import hostlist
from slurm_client.testing.answers import details
from slurm_client.testing.answers import wishes as wanted
from slurm_client.testing.arranged import Arranged
from slurm_client.testing.refusals import (
    ALREADY_DONE,
    INVALID_JOB,
    INVALID_PARTITION,
    JOB_FINISHED,
    NOT_A_BATCH_JOB,
    Refusal,
)
from slurm_client.testing.slurmctld import arrays, dependencies, external, gres

if TYPE_CHECKING:
    from slurm_client.testing.slurmctld.runs import Run


class Queue(Arranged):
    """
    Jobs that wait and start.

    Attributes
    ----------
    runs
        What jobs do, by the number of a job or array, by name, or by an empty name for all others.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.runs: dict[int | str, Run] = {}
        self._at_rest = False
        """Whether nothing starts for the moment."""
        self._too_large: set[tuple[int | None, int | None, str, str]] = set()
        """Wishes for which there is no room."""
        self._taken: set[str] = set()
        """Nodes of other components of the heterogeneous job that is being started: none shares a node."""

    # what users do

    def submit(self, wishes: dict[str, Any], user: str, *, has_script: bool = True) -> Job:
        """Take a batch job, or an external one, as slurmctld does, and start it if there is room."""
        external.check(wishes, self.nodes.values(), has_script=has_script)
        partition = wishes.get("partition") or next(iter(self.partitions), "")
        if partition not in self.partitions:
            raise Refusal(INVALID_PARTITION, "Batch job submission failed")
        held = bool(wishes.get("hold"))
        cpus = int(wishes.get("cpus_per_task") or 1) * int(wishes.get("tasks") or 1)
        # Read before the job has a number: nothing is left of what is refused.
        tasks = arrays.wished(wishes["array"]) if wishes.get("array") else None
        depends_on = wishes.get("dependency") or ""
        values = wanted.read(wishes) | self._changes(wishes)
        nodes = values.get("node_count") or 1
        on_each = gres.wished(wishes.get("tres_per_node") or "")
        gres.check(on_each, self.nodes.values())
        devices = {f"gres/{key}": count * nodes for key, count in on_each.items()}
        if depends_on:
            depends_on = dependencies.wished(depends_on, self.jobs.values())
        job_id = self.next_job_id()
        if tasks is not None:
            values |= {
                "array_job_id": job_id,
                "array_tasks": arrays.written(tasks, tasks.at_once),
                "array_max_tasks": tasks.at_once,
            }
            self.counts.jobs_submitted += len(tasks) - 1
        values.setdefault("time_limit", self._usual_limit(partition))
        if external.is_wished(wishes):
            values |= {
                "flags": frozenset(wishes["flags"]),
                "batch": False,
                "tasks": int(wishes.get("tasks") or 1),
                "cpus_per_task": int(wishes.get("cpus_per_task") or 1),
                "memory_per_cpu_mib": number(wishes.get("memory_per_cpu")),
                "memory_per_node_mib": number(wishes.get("memory_per_node")),
            }
        self.add_job(
            id=job_id,
            state="PENDING",
            name=wishes.get("name") or ("" if external.is_wished(wishes) else "sbatch"),
            user=user,
            user_id=uid_of(user),
            group_id=uid_of(user),
            partition=partition,
            cpus=cpus,
            required_nodes=",".join(wishes.get("required_nodes") or ()),
            hold=held,
            priority=0 if held else 1,
            state_reason="JobHeldUser" if held else "Dependency" if depends_on else "None",
            dependency=depends_on,
            tres_requested=_tres({"cpu": cpus, "node": nodes, "billing": cpus} | devices),
            details=details.read(wishes, user),
            **values,
        )
        self.schedule()
        return self.jobs[job_id]

    def submit_together(self, components: list[dict[str, Any]], user: str) -> Job:
        """Take all components of a heterogeneous job, or none; they start together, or not yet."""
        kept, self._at_rest = dict(self.jobs), True
        try:
            has_script = not all(map(external.is_wished, components))
            jobs = [self.submit(each, user, has_script=has_script) for each in components]
        except Refusal:
            self.jobs.restore(kept)
            raise
        finally:
            self._at_rest = False
        for offset, job in enumerate(jobs):
            self.jobs[job.id] = replace(self.jobs[job.id], het_job_id=jobs[0].id, het_job_offset=offset)
        self.schedule()
        return self.jobs[jobs[0].id]

    def _usual_limit(self, partition: str) -> Any:
        found = self.partitions[partition]
        return found.default_time or found.max_time or INFINITE

    def _changes(self, wishes: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a job that submission and update set alike."""
        values: dict[str, Any] = {
            key: wishes[key]
            for key in ("comment", "admin_comment", "extra", "account", "qos", "requeue")
            if wishes.get(key) is not None
        }
        limit = wishes.get("time_limit")
        if isinstance(limit, dict):
            values["time_limit"] = INFINITE if limit.get("infinite") else timedelta(minutes=limit["number"])
        return values

    def change_job(self, job_id: int, wishes: dict[str, Any]) -> None:
        """Change a job as slurmctld does."""
        job = self.jobs.get(job_id)
        if job is None:
            raise Refusal(INVALID_JOB, "Job update requested failed")
        if job.is_finished:
            raise Refusal(JOB_FINISHED, "Job update requested failed")
        values = self._changes(wishes)
        if wishes.get("hold") is not None and job.is_pending:
            held = bool(wishes["hold"])
            values |= {"hold": held, "priority": 0 if held else 1, "state_reason": "JobHeldUser" if held else "None"}
        self.jobs[job_id] = replace(job, **values)
        self.jobs_changed = self._clock()
        self.schedule()

    def cancel_job(self, job_id: int, signal: str | None = None) -> None:
        """Cancel a job, or take note of a signal."""
        job = self.jobs.get(job_id)
        if job is None:
            raise Refusal(INVALID_JOB, f"Unable to kill JobId={job_id}")
        if job.is_finished:
            raise Refusal(ALREADY_DONE, f"Unable to kill JobId={job_id}")
        if not ends_jobs(signal):
            self._miss_signal(job)
        elif external.is_external(job):
            self.finish_job(job_id, "CANCELLED", **({} if job.nodes else {"start_time": self.now}))
        else:
            ended: dict[str, Any] = {"exit_code": ExitCode(("SIGNALED",), None, 15, "SIGTERM")}
            self.finish_job(job_id, "CANCELLED", **(ended if job.nodes else {"start_time": self.now}))

    def _miss_signal(self, job: Job) -> None:
        """Let nobody answer for the external nodes that a signal goes to."""
        for name in job.nodes if job.is_running else ():
            if name in self.nodes and external.STATE in self.nodes[name].state:
                self.set_flags(name, add=["NOT_RESPONDING"])

    def cancel_waiting_task(self, array: int, index: int) -> bool:
        """Cancel a task that waits with others: nothing of it is left. Whether there was such a task."""
        job = self.jobs.get(array)
        tasks = arrays.waiting(job) if job is not None and job.is_pending else None
        if job is None or tasks is None or index not in tasks:
            return False
        if len(tasks) == 1:
            self.cancel_job(array)
        else:
            self.jobs[array] = arrays.without(job, index)
            self.jobs_changed = self._clock()
        return True

    def requeue_job(self, job_id: int) -> None:
        """Put a job back into the queue."""
        job = self.jobs.get(job_id)
        if job is None:
            raise Refusal(INVALID_JOB, f"Requeue JobID={job_id} failed")
        if external.is_external(job):
            raise Refusal(NOT_A_BATCH_JOB, f"Requeue JobID={job_id} failed")
        self._back_to_queue(job)

    def _back_to_queue(self, job: Job) -> None:
        self.set_job_state(
            job.id,
            "PENDING",
            nodes=(),
            node_list="",
            start_time=None,
            end_time=None,
            exit_code=None,
            tres_allocated="",
            gres_detail=(),
            restarts=job.restarts + 1,
        )
        self._jobs_changed(job.nodes)

    # what slurmctld does with them

    @override
    def finish_job(self, job_id: int, state: str = "COMPLETED", **values: Any) -> Job:
        """End a job now, and start those that waited for it or for its room."""
        super().finish_job(job_id, state, **values)
        self.schedule()
        return self.jobs[job_id]

    def schedule(self) -> None:
        """Look at the conditions of jobs that wait, and start those for which there is room."""
        if self._at_rest:
            return
        # Room only shrinks meanwhile: what did not fit does not fit later.
        self._too_large.clear()
        for job_id in self.jobs.waiting():
            job = self._look_at_dependency(self.jobs[job_id])
            if job.hold or not job.priority or job.dependency:
                continue
            if job.het_job_id is not None:
                self._start_together(job)
            else:
                self._start_tasks(job) if job.array_tasks else self._start(job)

    def _look_at_dependency(self, job: Job) -> Job:
        if not job.dependency:
            return job
        try:
            shown, reason = dependencies.resolved(job, self.jobs.values())
        except Refusal:
            # Arranged by hand, in a notation that is not understood here: it waits.
            return job
        if shown != job.dependency or reason != job.state_reason:
            values: dict[str, Any] = {} if job.hold else {"state_reason": reason}
            job = self.jobs[job.id] = replace(job, dependency=shown, **values)
            self.jobs_changed = self._clock()
        return job

    def _start_tasks(self, job: Job) -> None:
        """Start tasks of an array, in order, as long as there is room and as many may run."""
        tasks = arrays.waiting(job)
        if tasks is None:
            return
        left = list(tasks)
        running = sum(each.array_job_id == job.id and each.is_running for each in self.jobs.together(job.id))
        while left:
            if tasks.at_once and running >= tasks.at_once:
                self._wait(job, "JobArrayTaskLimit")
                return
            places = self._room_for(job)
            if places is None:
                self._wait(job, "Resources")
                return
            index, *left = left
            task = replace(job, array_job_id=job.array_job_id or job.id, array_task_id=index, array_tasks="")
            if left:
                job = self.jobs[job.id] = replace(job, array_tasks=arrays.written(left, tasks.at_once))
                task = replace(task, id=self.next_job_id())
            self.jobs[task.id] = task
            self._begin(task, places)
            running += 1

    def _start(self, job: Job) -> None:
        if external.is_external(job):
            self._start_external(job)
            return
        places = self._room_for(job)
        if places is None:
            self._wait(job, "Resources")
        else:
            self._begin(job, places)

    def _start_together(self, leader: Job) -> None:
        """Start all components of a heterogeneous job, each on nodes that no other one has, or none."""
        parts = [job for job in self.jobs.together(leader.id) if job.het_job_id == leader.het_job_id]
        if leader.het_job_offset or not all(job.is_pending and not job.hold for job in parts):
            return
        jobs, nodes = dict(self.jobs), dict(self.nodes)
        try:
            for job in parts:
                self._too_large.clear()
                self._start(self.jobs[job.id])
                if self.jobs[job.id].is_pending:
                    self.jobs.restore(jobs)
                    self.nodes.clear()
                    self.nodes.update(nodes)
                    self._wait(leader, "Resources")
                    return
                self._taken.update(self.jobs[job.id].nodes)
        finally:
            self._taken.clear()
            self._too_large.clear()

    def _start_external(self, job: Job) -> None:
        """Start a job that gets CPUs, memory and devices by its tasks."""
        if job.max_nodes is None and not job.required_nodes:
            free = (node for node in self.nodes.values() if node.name not in self._taken)
            found = external.packed(job, free, self._holding)
            places = {name: devices for name, (_, devices) in found.items()} if found is not None else None
            tasks = {name: count for name, (count, _) in found.items()} if found is not None else {}
        else:
            places = self._places(job)
            tasks = external.spread(job, places) if places else {}
        if places is None:
            self._wait(job, "Resources")
            return
        given = external.resources(job, tasks, self.nodes)
        self.jobs[job.id] = job = replace(job, cpus=given.cpus, _details=external.with_resources(job, given))
        self._begin(job, places)

    def _wait(self, job: Job, why: str) -> None:
        if self.jobs[job.id].state_reason != why:
            self.jobs[job.id] = replace(self.jobs[job.id], state_reason=why)
            self.jobs_changed = self._clock()

    def _room_for(self, job: Job) -> dict[str, str] | None:
        """Return the nodes with room for a job, and the devices that it gets on each; ``None`` if they are too few."""
        wants = (job.node_count, job.cpus, job.required_nodes, job.tres_requested)
        if wants in self._too_large:
            return None
        found = self._places(job)
        if found is None:
            self._too_large.add(wants)
        return found

    def _places(self, job: Job) -> dict[str, str] | None:
        required = hostlist.expand(job.required_nodes) if job.required_nodes else ()
        count = max(job.node_count or 1, len(required))
        cpus, devices = math.ceil((job.cpus or 1) / count), gres.wanted(job)
        if external.is_external(job):
            cpus, devices = external.most_cpus(job), external.most_devices(job) or devices
        names = dict.fromkeys((*required, *self.nodes)) if count > len(required) else required
        found: dict[str, str] = {}
        for name in names:
            node = self.nodes.get(name)
            if node is None or not node.is_usable or node.cpus - node.alloc_cpus < cpus or name in self._taken:
                continue
            if not external.is_for(node, job):
                continue
            given = gres.given(node, devices, self._holding(name)) if devices else ""
            if given is not None:
                found[name] = given
            if len(found) == count:
                return found
        return None

    def _begin(self, job: Job, places: dict[str, str]) -> None:
        names, devices = tuple(places), tuple(places.values())
        cpus = job.cpus or 1
        allocated = {"cpu": cpus, "node": len(names), "billing": cpus} | gres.as_tres(devices)
        self.set_job_state(
            job.id,
            "RUNNING",
            nodes=names,
            node_list=",".join(names),
            node_count=len(names),
            batch_host=names[0],
            start_time=self.now,
            state_reason="None",
            tres_allocated=_tres(allocated),
            gres_detail=devices if any(devices) else (),
        )

    def fail_jobs_on(self, name: str) -> None:
        """Requeue or end the jobs of a node that is down."""
        for job in [job for job in self.jobs.naming(name) if job.holds_nodes]:
            if job.requeue and not external.is_external(job):
                self._back_to_queue(job)
            else:
                self.finish_job(job.id, "NODE_FAIL")
            self._jobs_changed(job.nodes)


def uid_of(user: str) -> int:
    """Return the uid of a user, whose group has the same number: that of root is 0, others have one of their own."""
    return 0 if user == "root" else 10_000 + zlib.crc32(user.encode()) % 50_000


def ends_jobs(signal: str | None) -> bool:
    """Whether a cancellation with this signal, or with none, ends a job."""
    return signal is None or signal.upper() in {"KILL", "SIGKILL", "9"}


def _tres(counts: dict[str, int]) -> str:
    return ",".join(f"{key}={count}" for key, count in counts.items())
