"""What the controller orders of Slurm, and what it never may."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_client import errors as slurm_errors
from tests.unit.nodeset.model.objects import BAD, OURS, TAG
from tests.unit.nodeset.model.slurm import Slurm


class SlurmOrders(Slurm):
    """Drains, nodes marked down, records deleted."""

    def order_drain(self, names: list[str], reason: str) -> None:
        self.check_slurm()
        for name in sorted(names):
            record = self.records.get(name)
            if record is None:
                raise slurm_errors.NotFound(name)
            self.protect(name, "drained")
            record.drain, record.reason, record.changed = True, reason, self.slurm_now
        begun = [r.name for r in self.records.values() if r.drain and r.reason.startswith(OURS + "update")]
        pods = {
            self.node_of(name): name
            for name, pod in self.pods.items()
            if self.is_ours(pod) and "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] != "Failed"
        }
        live = list(pods)
        broken = [node for node, name in pods.items() if self.image_of(name) == BAD]
        if reason.startswith(OURS + "update"):
            for name in names:
                held_back = self.seen_update.get("paused")
                if not self.on_hosts:
                    held_back = held_back or int(name[-1]) < self.seen_update.get("partition", 0)
                if held_back and name in live:
                    self.violations.append(f"{name} was drained for an update that is held back from it")
        # What is too many anyway may go whatever it was drained for.
        excess = max(0, len(live) - self.seen_replicas)
        if self.on_hosts:
            # What began as an update goes on although its Node matches no more; it is none of the wanted ones then.
            begun = [name for name in begun if name in self.seen_selected]
        taken = {name for name in begun if name in live and name not in broken and not self.records[name].down}
        if taken and len(taken | set(broken)) > self.update_budget + excess:
            self.violations.append(f"more is updated at once than the budget allows: {begun}, with {broken} broken")
        self.lost()

    def order_undrain(self, names: list[str]) -> None:
        self.check_slurm()
        for name in sorted(names):
            if name not in self.records:
                raise slurm_errors.NotFound(name)
            self.protect(name, "undrained")
            self.records[name].drain = False
        self.lost()

    def order_resume(self, names: list[str]) -> None:
        self.check_slurm()
        for name in sorted(names):
            record = self.records.get(name)
            if record is None:
                raise slurm_errors.NotFound(name)
            self.protect(name, "resumed")
            if record.down:
                self.violations.append(f"node {name}, which is dead, was called idle")
            record.drain = record.down = False
        self.lost()

    def order_down(self, names: list[str], reason: str | None) -> None:
        self.check_slurm()
        for name in sorted(names):
            record = self.records.get(name)
            if record is None:
                raise slurm_errors.NotFound(name)
            if record.extra != TAG:
                self.violations.append(f"node {name} is not ours and was marked down")
            if reason is not None:
                self.protect(name, "marked down with another reason")
                record.reason = reason
            asked_for = self.may_end_jobs(name, "Requeue")
            for job in self.jobs_on(name):
                if job.alive and not (asked_for and job.batch and job.requeue):
                    self.violations.append(f"job {job.id} was running on {name} when it was marked down")
                job.state, job.alive = "NODE_FAIL", False
            record.down = True
        self.lost()

    def order_traits(self, names: list[str], features: Sequence[str] | None, topology: str | None) -> None:
        self.check_slurm()
        for name in sorted(names):
            record = self.records.get(name)
            if record is None:
                raise slurm_errors.NotFound(name)
            if record.extra != TAG:
                self.violations.append(f"node {name} is not ours and was given features")
            if features is not None and "a" not in features:
                self.violations.append(f"node {name} lost the feature of its NodeSet")
            record.features = tuple(features) if features is not None else record.features
            record.topology = topology if topology is not None else record.topology
        self.lost()

    def order_end_job(self, number: int, on_timeout: str) -> None:
        """Cancel or requeue a job: its processes get TERM, and end when they do."""
        self.check_slurm()
        job = next((one for one in self.jobs if one.id == number), None)
        if job is None:
            raise slurm_errors.NotFound(f"job {number}")
        if job.state in {"RUNNING", "SUSPENDED"}:
            if not self.may_end_jobs(job.node, on_timeout):
                self.violations.append(f"job {number} on {job.node} was ended ({on_timeout}) before its time")
            if on_timeout == "Requeue" and not (job.batch and job.requeue):
                raise slurm_errors.InvalidRequest("Requested operation is presently disabled")
            job.state = "COMPLETING"
        self.lost()

    def order_delete_records(self, names: list[str]) -> None:
        """Slurm deletes what it can, and tells of one that it could not."""
        self.check_slurm()
        refused: slurm_errors.SlurmError | None = None
        for name in names:
            record = self.records.get(name)
            if record is None:
                refused = slurm_errors.NotFound(name)
                continue
            self.protect(name, "deleted")
            states = {job.state for job in self.jobs_on(name)}
            if states & {"RUNNING", "COMPLETING"}:
                refused = slurm_errors.Conflict("Requested nodes are busy")
                continue
            if states:
                # Slurm does it all the same, and the job stays SUSPENDED on a node that is not there (measured).
                self.violations.append(f"the record of {name} was deleted under a job that is {states}")
            if record.slurmd in self.running:
                self.violations.append(f"the record of {name} was deleted under a living slurmd")
            del self.records[name]
        if refused is not None:
            raise refused
        self.lost()

    def protect(self, name: str, what: str) -> None:
        record = self.records[name]
        if record.extra != TAG:
            self.violations.append(f"node {name} is not ours and was {what}")
        if name in self.foreign and record.drain:
            self.violations.append(f"node {name}, drained by somebody else ({self.foreign[name]}), was {what}")
