"""The controller's writes to Slurm, and those that are never allowed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from slurm_client import errors as slurm_errors
from slurm_client.models import Job
from tests.unit.nodeset.simulation.checks import Checks
from tests.unit.nodeset.simulation.hardware import Hardware
from tests.unit.nodeset.simulation.objects import BAD, OURS, PATIENCE, TAG
from tests.unit.nodeset.simulation.slurm import Slurm


class SlurmOrders(Slurm, Checks, Hardware):
    """Drains, nodes marked down, records deleted."""

    def order_drain(self, names: list[str], reason: str) -> None:
        self.check_slurm()
        before = self.being_updated()
        held = {name for name in names if self.is_held(name)}
        asked_for = {name for name in names if "drain-request" in self.causes_of(name)}
        for name in sorted(names):
            record = self.records.get(name)
            if record is None:
                raise slurm_errors.NotFound(name)
            self.protect(name, "drained")
            record.drain, record.reason, record.changed = True, reason, self.slurm_now
        if reason.startswith(OURS + "update"):
            self._check_update(set(names) - before)
        self._check_request({name for name in names if "drain-request" in self.causes_of(name)} - asked_for)
        self._check_health({name for name in names if self.is_held(name)} - held)
        self.lost()

    def _check_request(self, new: set[str]) -> None:
        """Watch over what is drained since NVSentinel asks for it."""
        for node in new:
            if node not in self.seen_requested:
                self.violations.append(f"{node} was drained for a request that there is not")

    def _check_health(self, new: set[str]) -> None:
        """Watch over what is drained for its health: bad Nodes, as the spec says, and no more than the budget."""
        if not new:
            return
        health = self.seen_health
        rule = next(iter((health or {}).get("nodeConditions") or ()), None)
        checked = {node for node in new if self.is_held_for_a_check(node)}
        for node in checked:
            self.watch_checked(node)
        if health is None or (rule is None and new - checked):
            self.violations.append(f"{sorted(new)} were drained for their health although no rule says so")
            return
        patience = rule.get("forSeconds", 30) if rule is not None else 0
        for node in new - checked:
            status, since = self.seen_conditions.get(self.seen_hosts.get(node, ""), ("", self.now))
            if status != "True" or (self.now - since).total_seconds() < patience:
                self.violations.append(
                    f"{node} was drained for its health although its Node is {status!r} since {since}"
                )
        for node in new:
            if node in self.foreign:
                self.violations.append(f"{node} was drained for its health although somebody else had drained it")
        held = {self.node_of(name) for name in self.pods if name in self.seen_pods and self.is_held(self.node_of(name))}
        held |= {one["pod"] for one in self.replacements().values() if self.is_out(one)}
        if len(held) > self.health_budget(health, self.seen_replicas):
            self.violations.append(f"more is drained for its health than the budget allows: {sorted(held)}")

    def _check_given_back(self, name: str) -> None:
        """Watch over what is given back after it was drained for its health: a Node that is well."""
        if name in self.seen_requested:
            self.violations.append(f"{name} was given back although NVSentinel asks for its Node")
        self.watch_given_back(name)
        self.watch_going(name)
        health = self.seen_health
        rule = next(iter((health or {}).get("nodeConditions") or ()), None)
        if health is None or rule is None or not self.is_held(name):
            return
        host = self.seen_hosts.get(name)
        status, since = self.seen_conditions.get(host or "", ("", datetime.min.replace(tzinfo=UTC)))
        is_clear = (self.now - since).total_seconds() >= health.get("clearSeconds", 60)
        if host is None or status in {"True", "Unknown"} or not (is_clear or self._is_booted(name, host)):
            self.violations.append(f"{name} was given back although its Node {host} is {status!r} since {since}")

    def _is_booted(self, name: str, host: str) -> bool:
        """Whether a machine was seen to start after its node was drained, and not twice in an hour."""
        booted, before = self.seen_boots.get(host, (None, None))
        changed = self.records[name].changed
        if booted is None or changed is None or changed >= booted:
            return False
        return before is None or (booted - before).total_seconds() >= 3600

    def being_updated(self) -> set[str]:
        """Nodes that are drained for an update."""
        return {r.name for r in self.records.values() if r.drain and r.reason.startswith(OURS + "update")}

    def _check_update(self, new: set[str]) -> None:
        """Watch over what an update takes: nothing that is held back, and no more at once than the budget."""
        if new and self.seen_outside and self.is_outside_windows():
            self.violations.append(f"{sorted(new)} were drained for an update outside the maintenance window")
        pods = {self.node_of(name): name for name, pod in self.pods.items() if self.is_live(pod)}
        given = self.seen_update.get("rollingUpdate") or {}
        for node in new & set(pods):
            held_back = given.get("paused") or self.seen_update.get("type") == "OnDelete"
            if held_back or (not self.on_hosts and self.ordinal_of(node) < given.get("partition", 0)):
                self.violations.append(f"{node} was drained for an update that is held back from it")
        # What has just ended stands still, for the controller: others are too many beside it.
        standing = set(pods) | self.seen_live
        if self.on_hosts:
            # What stands on a Node that matches no more is none of the wanted ones.
            pods = {node: name for node, name in pods.items() if node in self.seen_selected}
            standing &= self.seen_selected
        broken = {node for node, name in pods.items() if self.image_of(name) == BAD}
        # What is too many anyway may go whatever it was drained for.
        excess = max(0, len(standing) - self.seen_replicas)
        begun = self.being_updated() & set(pods)
        taken = {node for node in begun - broken if not self.records[node].down}
        if taken and len(taken | broken) > self.update_budget + excess:
            self.violations.append(f"more is updated at once than the budget allows: {begun}, with {broken} broken")
        # A pod that is not Ready for long enough is missing; one that serves may not go beside it. One that does not
        # answer is missing itself, but may come back: it does not go beside one that was just made.
        unripe = {
            node
            for node, since in self.seen_ready.items()
            if node in pods and (since is None or (self.now - since).total_seconds() < self.seen_patience)
        }
        unripe |= self.seen_invalid & set(pods)
        if (taken & new) - unripe - self.seen_silent and len(taken | broken | unripe) > self.update_budget + excess:
            self.violations.append(f"{new} was drained for an update although {unripe} had not been Ready for long")
        fresh = {node for node in unripe if self.is_fresh(pods[node])}
        if taken & new and len(taken | fresh) > self.update_budget + excess:
            self.violations.append(f"{new} was drained for an update although {fresh} had yet to come up")

    def is_fresh(self, name: str) -> bool:
        """Whether a pod is what the spec asks for, and made a short while ago."""
        age = self.now - datetime.fromisoformat(self.pods[name]["metadata"]["creationTimestamp"])
        return not self.is_outdated(name) and age.total_seconds() < PATIENCE

    def order_undrain(self, names: list[str]) -> None:
        self.check_slurm()
        for name in sorted(names):
            if name not in self.records:
                raise slurm_errors.NotFound(name)
            self.protect(name, "undrained")
            self._check_given_back(name)
            if self.records[name].invalid:
                raise slurm_errors.InvalidTransition("Invalid node state transition")
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
                if record.slurmd in job.alive and not (asked_for and job.batch and job.requeue):
                    self.violations.append(f"job {job.id} was running on {name} when it was marked down")
                job.end("NODE_FAIL")
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
            if topology == "" and not self.seen_topology:
                self.violations.append(f"node {name} lost its place although nobody has nodes placed by labels")
            record.features = tuple(features) if features is not None else record.features
            record.topology = topology if topology is not None else record.topology
        self.lost()

    def order_end_jobs(self, named: Job | int, on_timeout: str) -> None:
        """Cancel or requeue a job: its processes get TERM, and end when they do. An array's id means all its tasks."""
        self.check_slurm()
        alone = not isinstance(named, int) and named.array_job_id is not None
        number = named if isinstance(named, int) else named.id
        found = [one for one in self.jobs if one.id == number or (one.array == number and not alone)]
        if not found:
            raise slurm_errors.NotFound(f"job {number}")
        for job in found:
            if job.state not in {"RUNNING", "SUSPENDED"}:
                continue
            if not any(self.may_end_jobs(node, on_timeout) for node in job.nodes):
                self.violations.append(f"job {job.id} on {job.nodes} was ended ({on_timeout}) before its time")
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
            naming = [job.id for job in self.jobs if job.names(name)]
            if naming:
                # Slurm does it all the same, and ends such jobs at the next reconfigure (measured).
                self.violations.append(f"the record of {name} was deleted although jobs {naming} name it")
            standing = {pod["metadata"]["uid"] for pod in self.pods.values()}
            if record.slurmd in self.running and record.slurmd in standing:
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
