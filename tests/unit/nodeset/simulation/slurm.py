"""What happens in Slurm without the controller: to jobs, nodes and slurmctld; and how Slurm shows it."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache

from slurm_client import errors as slurm_errors
from slurm_client.models import Job, Node
from slurm_client.models.job import JobState
from slurm_client.models.node import NodeState
from tests.unit.nodeset.simulation.objects import NEIGHBOUR
from tests.unit.nodeset.simulation.state import Record, State, WorldJob


@lru_cache(maxsize=4096)
def shown(
    name: str,
    base: str,
    flags: frozenset[str],
    reason: str,
    changed: datetime | None,
    extra: str,
    instance: str,
    features: tuple[str, ...],
    topology: str,
    slurmd_start: datetime | None,
    comment: str,
) -> Node:
    """A record as Slurm shows it. Nodes are frozen, and most are shown again as they were."""
    return Node(
        name=name,
        state=NodeState(base, flags),
        reason=reason,
        reason_changed_at=changed,
        extra=extra,
        instance_id=instance,
        features=features,
        active_features=features,
        topology=topology,
        slurmd_start_time=slurmd_start,
        comment=comment,
    )


class Slurm(State):
    """Jobs come and go, nodes are lost, slurmctld answers or does not."""

    def do_job_starts(self, index: int) -> None:
        if self.slurm_fault == "500":
            return
        room = 1 if index < 4 else 2
        found = [
            r.name
            for r in self.records.values()
            if not r.drain and not r.down and r.slurmd in self.running and len(self.jobs_on(r.name)) < room
        ]
        name = self.pick(found, index)
        if name is not None:
            nodes = {name, self.pick(found, index + 1)} if index % 3 == 2 else {name}
            alive = {self.records[node].slurmd for node in nodes}
            job = WorldJob(self.next(), tuple(sorted(nodes)), "RUNNING", alive, start=self.slurm_now)
            job.requeue, job.batch = bool(index % 2), index % 4 != 3
            if job.batch:
                job.array = next((one.array for one in self.jobs if one.array is not None), job.id)
            self.jobs.append(job)

    def do_job_names(self, index: int) -> None:
        """Somebody submits a job that requires or excludes nodes by name: it waits, or runs on one of them."""
        names = [name for name, record in self.records.items() if record.extra != NEIGHBOUR]
        name = self.pick(names, index)
        if name is None or self.slurm_fault == "500":
            return
        others = (name, str(self.pick(names, index + 1)))
        job = WorldJob(self.next(), (), "PENDING", set())
        job.required, job.excluded = ((others, ()), ((), others))[index % 2]
        ready = [one for one in others if self.takes_jobs(self.records[one]) and not self.jobs_on(one)]
        if index < 4 and job.required and ready:
            # On one of those that it requires, as an array's task that has begun, or a job made smaller.
            job.nodes, job.state, job.start = (ready[0],), "RUNNING", self.slurm_now
            job.alive = {self.records[ready[0]].slurmd}
        self.jobs.append(job)

    def takes_jobs(self, record: Record) -> bool:
        return not record.drain and not record.down and record.slurmd in self.running

    def do_reconfigure(self, index: int) -> None:
        """slurmctld reads its configuration, and looks up the nodes that jobs name: without one of those that a job
        requires, it ends, and one that excludes it can no longer be changed."""
        if self.slurm_fault:
            return
        for job in self.jobs:
            missing = sorted(
                name for name in {*job.required, *job.excluded} if job.names(name) and name not in self.records
            )
            if missing:
                what = "ended" if set(missing) & set(job.required) else "could no longer be changed"
                self.violations.append(f"job {job.id} ({job.state}) {what} at a reconfigure: there is no {missing}")
            if set(missing) & set(job.required):
                job.end("NODE_FAIL")

    def do_naming_ends(self, index: int) -> None:
        """A job that has named nodes is cancelled before it has any."""
        found = {job.id: job for job in self.jobs if job.state == "PENDING"}
        number = self.pick(found, index)
        if number is not None:
            found[number].end("CANCELLED")

    def do_job_suspends(self, index: int) -> None:
        found = {job.id: job for job in self.jobs if job.state in {"RUNNING", "SUSPENDED"}}
        number = self.pick(found, index)
        if number is not None:
            found[number].state = "SUSPENDED" if found[number].state == "RUNNING" else "RUNNING"

    def do_job_ends(self, index: int) -> None:
        """A step towards the end: at once, or by way of completing with processes that ignore TERM."""
        found = {job.id: job for job in self.jobs if job.holds and (job.alive or job.state == "COMPLETING")}
        number = self.pick(found, index)
        if number is None:
            return
        job = found[number]
        if job.state in {"COMPLETING", "STAGE_OUT"} or index % 3 == 0:
            job.end("COMPLETED")
        else:
            job.state = "COMPLETING" if index % 3 == 1 else "STAGE_OUT"

    def do_slurm_notices(self, index: int) -> None:
        """Slurm gives up nodes whose slurmd is dead."""
        for record in self.records.values():
            if record.slurmd not in self.running:
                record.down = True
                for job in self.jobs_on(record.name):
                    job.end("NODE_FAIL")

    def lose_nodes_of(self, host: str) -> None:
        """Slurm gives up the nodes that were on a machine."""
        for record in self.records.values():
            if self.where.get(record.slurmd) == host and record.slurmd not in self.running:
                record.down = True
                for job in self.jobs_on(record.name):
                    job.end("NODE_FAIL")

    def do_node_lost(self, index: int) -> None:
        """The network to a node breaks: Slurm gives it up although its pod is alive, and slurmd gives up its jobs."""
        name = self.pick([r.name for r in self.records.values() if r.slurmd in self.running], index)
        if name is not None:
            self.records[name].down = True
            for job in self.jobs_on(name):
                job.end("NODE_FAIL")

    def do_node_returns(self, index: int) -> None:
        """Nodes whose slurmd is alive come back (ReturnToService=2)."""
        for record in self.records.values():
            if record.slurmd in self.running:
                record.down = False

    def do_slurm_forgets(self, index: int) -> None:
        """slurmctld comes back without its state, or without the records alone; jobs run on.

        Where it has no jobs either, only what is recorded of a pod tells that there may be one.
        """
        if index == 1:
            recorded = {self.uid_of(name) for name in self.pods if self.is_recorded(name)}
            for job in self.jobs:
                job.alive &= recorded
            self.lost_jobs += [job for job in self.jobs if job.alive]
            self.jobs = [job for job in self.jobs if job.state == "PENDING"]
        if index < 2:
            for name in self.pods:
                self.expose(self.node_of(name))
            self.records = {"a-b-0": self.records["a-b-0"]} if "a-b-0" in self.records else {}
            self.foreign.clear()
            # The jobs that waited are forgotten as well.
            for job in self.jobs:
                job.required = job.excluded = ()
                if job.state == "PENDING":
                    job.end("CANCELLED")

    def do_slurmctld_restarts(self, index: int) -> None:
        """slurmctld restarts from its saved state: it has yet to hear of the slurmds, and may not answer yet."""
        for record in self.records.values():
            record.slurmd_start = None
        if index % 2:
            self.slurm_fault = "500"

    def do_slurmds_report(self, index: int) -> None:
        """Slurmds that slurmctld has asked since it was started answer."""
        if self.slurm_fault:
            return
        for record in self.records.values():
            if record.slurmd_start is None and record.slurmd in self.running:
                record.slurmd_start = self.running[record.slurmd]

    def do_slurm_clock(self, index: int) -> None:
        """Somebody sets the clock of slurmctld's machine."""
        self.slurm_ahead = timedelta(seconds=(0, -120, 120)[index % 3])

    # Faults

    def do_fault(self, index: int) -> None:
        self.slurm_fault = ("401", "timeout", "500")[index % 3]

    def do_heal(self, index: int) -> None:
        self.slurm_fault = ""

    def do_lose_slurm(self, index: int) -> None:
        self.lose_slurm = 1

    def check_slurm(self) -> None:
        self.check_alive()
        match self.slurm_fault:
            case "401":
                raise slurm_errors.Unauthorized("token refused")
            case "timeout":
                raise slurm_errors.Timeout("no answer")
            case "500":
                raise slurm_errors.ControllerDown("slurmctld is away")
            case _:
                pass

    def lost(self) -> None:
        self.watch_death()
        if self.lose_slurm:
            self.lose_slurm -= 1
            raise slurm_errors.Timeout("the answer was lost")

    # Answers

    def do_poll(self, index: int) -> None:
        self.ready = not self.slurm_fault
        if self.ready:
            self.picture = {name: self.show(record) for name, record in self.records.items()}
            self.picture_at = self.now.timestamp()

    def show(self, record: Record) -> Node:
        states = {job.state for job in self.jobs_on(record.name)}
        base = "ALLOCATED" if "RUNNING" in states else "IDLE"
        flags = {"DYNAMIC_NORM"}
        if record.down:
            base = "DOWN"
        if record.drain:
            flags.add("DRAIN")
        if record.invalid:
            flags.add("INVALID_REG")
        if record.slurmd_start is None:
            flags.add("NOT_RESPONDING")
        if "COMPLETING" in states:
            flags.add("COMPLETING")
        return shown(
            record.name,
            base,
            frozenset(flags),
            record.reason,
            record.changed,
            record.extra,
            record.instance,
            record.features,
            record.topology,
            record.slurmd_start,
            record.comment,
        )

    def show_job(self, job: WorldJob) -> Job:
        state = {
            "COMPLETING": JobState("CANCELLED", frozenset({"COMPLETING"})),
            "STAGE_OUT": JobState("COMPLETED", frozenset({"STAGE_OUT"})),
        }.get(job.state, JobState(job.state))
        return Job(
            id=job.id,
            state=state,
            nodes=job.nodes,
            start_time=job.start,
            requeue=job.requeue,
            batch=job.batch,
            array_job_id=job.array,
            array_task_id=job.id if job.array is not None else None,
            required_nodes=",".join(job.required),
            excluded_nodes=",".join(job.excluded),
        )
