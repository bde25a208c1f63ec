"""The controller's writes to Kubernetes, and those that are never allowed."""

from __future__ import annotations

from datetime import datetime

from tests.unit.nodeset.simulation.hardware import Hardware
from tests.unit.nodeset.simulation.objects import PATIENCE, RETENTION, TAG, Object, revision_of, stamp

BUSY = {f"SlurmNodeState{word}" for word in ("Allocated", "Mixed", "Completing")}


def says_empty(pod: Object) -> bool:
    """Whether a pod says that its node is drained and not busy, as programs of others read it."""
    shown = {one["type"] for one in pod["status"].get("conditions") or () if one["status"] == "True"}
    return "SlurmNodeStateDrain" in shown and BUSY.isdisjoint(shown)


def _try(one: Object) -> tuple[str | None, ...]:
    """What tells a try from the one before."""
    return one.get("podUid"), one.get("last") if one.get("bootId") else None


class KubeOrders(Hardware):
    """Pods, claims and revisions made and deleted."""

    def order_claim(self, claim: Object) -> None:
        claim["metadata"] |= {"uid": f"claim-{self.next()}"}
        self.claims[claim["metadata"]["name"]] = claim
        self.tell("claims", "ADDED", claim)

    def order_unclaim(self, name: str) -> None:
        claim = self.claims[name]
        if "deletionTimestamp" in claim["metadata"]:
            return
        claim["metadata"]["deletionTimestamp"] = stamp(self.now)
        self.tell("claims", "MODIFIED", claim)
        pod = name.removeprefix("data-")
        if "labels" not in claim["metadata"]:
            self.violations.append(f"claim {name} is not ours and was deleted")
        elif pod in self.pods and self.is_ours(self.pods[pod]):
            self.violations.append(f"claim {name} was deleted under its pod")
        if self.nodeset is None or "deletionTimestamp" in self.nodeset["metadata"]:
            if self.retention_of(name) == "Retain":
                self.violations.append(f"claim {name} was deleted with the NodeSet although it had been kept before")
            return
        self.watch_scale_in(name)

    def watch_scale_in(self, name: str) -> None:
        """Note a claim that is deleted for a scale-in and may not be."""
        if self.seen_retention.get("whenScaled") != "Delete":
            self.violations.append(f"claim {name} was deleted although it was to be retained")
        if self.retention_of(name) != "Delete":
            self.violations.append(f"claim {name} was deleted although it does not say so")
        if self.claims[name]["metadata"]["uid"] in self.kept:
            self.violations.append(f"claim {name} was deleted although a scale-in had kept it")
        if self.on_hosts:
            return
        left = {
            self.ordinal_of(one["metadata"]["name"])
            for one in self.claims.values()
            if "labels" in one["metadata"] and "deletionTimestamp" not in one["metadata"]
        }
        if len(left) < self.seen_replicas:
            self.violations.append(f"claim {name} was deleted although a pod is to come back to it")
        standing = {self.ordinal_of(one) for one, other in self.pods.items() if self.is_ours(other)}
        if self.ordinal_of(name) in standing:
            self.violations.append(f"claim {name} was deleted although its ordinal still stands")

    def order_mark_claim(self, name: str, notes: Object) -> None:
        """Write on a claim what becomes of it; None takes that away."""
        claim = self.claims[name]
        pod = name.removeprefix("data-")
        seen = {self.ordinal_of(one) for one in self.seen_pods}
        is_seen = pod in self.seen_pods if self.on_hosts else self.ordinal_of(pod) in seen
        if notes[RETENTION] == "Delete" and not (is_seen and self.seen_retention.get("whenScaled") == "Delete"):
            self.violations.append(f"claim {name} is to be deleted, and not for a scale-in that happens under Delete")
        held = claim["metadata"].setdefault("annotations", {})
        before = held.pop(RETENTION, None)
        if notes[RETENTION] is not None:
            held[RETENTION] = notes[RETENTION]
        if before != notes[RETENTION]:
            self.tell("claims", "MODIFIED", claim)

    def retention_of(self, name: str) -> str | None:
        """What is written on a claim."""
        found: str | None = (self.claims[name]["metadata"].get("annotations") or {}).get(RETENTION)
        return found

    def order_record(self, revision: Object) -> None:
        revision["metadata"] |= {"uid": f"revision-{self.next()}"}
        self.revisions[revision["metadata"]["name"]] = revision
        self.tell("revisions", "ADDED", revision)

    def order_drop(self, name: str) -> None:
        revision = self.revisions.pop(name)
        self.tell("revisions", "DELETED", revision)
        if any(revision_of(pod) == revision_of(revision) for pod in self.pods.values() if self.is_ours(pod)):
            self.violations.append(f"revision {name} was dropped although a pod carries it")

    def order_create_pod(self, pod: Object) -> None:
        name = pod["metadata"]["name"]
        pod["metadata"] |= {"uid": f"pod-{self.next()}", "creationTimestamp": stamp(self.now)}
        pod["status"] = {"phase": "Pending"}
        self.befall(pod["metadata"]["uid"])
        pod["spec"].pop("nodeName", None)
        if not self.seen_finalizers:
            self.violations.append(f"pod {name} was created before the finalizer was there")
        claim = self.claims.get(f"data-{name}")
        if claim is None or "labels" not in claim["metadata"] or "deletionTimestamp" in claim["metadata"]:
            self.violations.append(f"pod {name} was created without a claim of ours")
        else:
            self.kept.discard(claim["metadata"]["uid"])
        if not any(revision_of(one) == revision_of(pod) for one in self.revisions.values()) and not self.was_taken(pod):
            self.violations.append(f"pod {name} was created before its revision was recorded")
        node = str(pod["spec"]["hostname"])
        if self.on_hosts and node in self.seen_cordoned:
            self.violations.append(f"pod {name} was created for a Node that is cordoned")
        if any(self.node_of(other) == node for other in self.pods):
            self.violations.append(f"pod {name} was created beside another of node {node}")
        if not self.on_hosts:
            number = self.ordinal_of(name)
            twins = [one for one, other in self.pods.items() if self.is_ours(other) and self.ordinal_of(one) == number]
            self.violations += [f"pod {name} was created beside {one}, which has the same ordinal" for one in twins]
        record = self.records.get(node)
        if record is not None and self.jobs_on(node):
            self.violations.append(f"pod {name} was created while Slurm saw jobs of its predecessor")
        self.pods[name] = pod
        if not self.guards_of(name) & self.guards_made:
            self.violations.append(f"pod {name} was created before its guard")
        self.tell("pods", "ADDED", pod)
        self.collect_guards()
        if len(self.live()) > 4:
            self.violations.append(f"{len(self.live())} pods, and never more than 3 wanted")

    def was_taken(self, pod: Object) -> bool:
        """Whether the revision of a pod went with its NodeSet, whose deletion the controller does not see yet.

        Such a pod does no harm: it is never made again, and the deletion drains it as it does the others.
        """
        is_going = self.nodeset is None or "deletionTimestamp" in self.nodeset["metadata"]
        return is_going and not self.seen_deleting and revision_of(pod) in self.taken

    def order_guard(self, guard: Object) -> None:
        guard["metadata"]["uid"] = f"map-{self.next()}"
        self.maps[guard["metadata"]["name"]] = guard
        self.guards_made.add(guard["metadata"]["uid"])

    def order_owners(self, name: str, owners: list[Object]) -> None:
        """Give a pod owners; those that were given in this way before go."""
        metadata = self.pods[name]["metadata"]
        others = [one for one in metadata.get("ownerReferences") or () if one["kind"] != "ConfigMap"]
        metadata["ownerReferences"] = [*others, *owners]
        self.bared.discard(metadata["uid"])
        self.tell("pods", "MODIFIED", self.pods[name])
        self.collect_guards()

    def order_mark(self, name: str, metadata: Object) -> None:
        """Change labels and annotations of a pod; None takes one away."""
        pod = self.pods[name]
        for kind, wanted in metadata.items():
            if kind in {"labels", "annotations"}:
                held = pod["metadata"].setdefault(kind, {})
                for key, value in wanted.items():
                    held.pop(key, None)
                    if value is not None:
                        held[key] = value
        if self.is_protected(name):
            self.exposed.discard(self.uid_of(name))
        elif self.node_of(name) in self.given_back:
            # It was, after the question whether it is drained and before the answer about its jobs.
            self.expose(self.node_of(name))
        self.tell("pods", "MODIFIED", pod)

    def watch_states(self, name: str) -> None:
        """Note a pod that says of its node that it is drained and holds no job, and what is wrong with that."""
        node = self.node_of(name)
        record = self.records.get(node)
        if not says_empty(self.pods[name]) or record is None or not record.drain:
            return
        self.violations += [
            f"pod {name} says that its node is drained and empty under job {job.id} ({job.state})"
            for job in self.jobs_on(node)
            if self.uid_of(name) in job.alive
        ]

    def order_delete_pod(self, name: str) -> None:
        pod = self.pods[name]
        uid = pod["metadata"]["uid"]
        if not self.is_ours(pod):
            self.violations.append(f"pod {name} is not ours and was deleted")
        for job in (*self.jobs, *self.lost_jobs):
            if uid in job.alive and not self.given_up and not self.may_end_jobs(self.node_of(name), "Force"):
                self.violations.append(f"pod {name} was deleted under job {job.id} ({job.state})")
        self.watch_repair(name)
        self.watch_replacement(name)
        self.begin_deletion(name)

    def order_let_go(self) -> None:
        """The NodeSet is let go: Slurm knows by then which of its jobs are over, if it could be reached."""
        for record in self.records.values():
            if self.troubled or record.extra != TAG or record.name in self.foreign or record.slurmd in self.running:
                continue
            self.violations += [
                f"the NodeSet was let go with job {job.id} {job.state} on {record.name}, of which nothing is left"
                for job in self.jobs_on(record.name)
            ]

    def watch_repair(self, name: str) -> None:
        """Note a pod that is deleted for nothing but its slurmd's silence, and whether that is one too many."""
        pod, node = self.pods[name], self.node_of(name)
        if self.uid_of(name) not in self.running or self.uid_of(name) in self.known:
            return
        if self.nodeset is None or "deletionTimestamp" in self.nodeset["metadata"]:
            return
        if len(self.live()) > self.seen_replicas or self.is_outdated(name):
            return
        if self.on_hosts and pod["spec"].get("nodeName") not in self.seen_selected:
            return
        self.repaired = {other for other in self.repaired if other != node and self.is_coming(other)}
        self.repaired.add(node)
        if len(self.repaired) > self.update_budget:
            self.violations.append(f"more is repaired at once than the budget allows: {sorted(self.repaired)}")

    def watch_tries(self, before: dict[str, Object]) -> None:
        """Watch over tries that are written into the status: not too many, nor too soon, nor at once."""
        now = self.replacements()
        self.replaced = {host: uids for host, uids in self.replaced.items() if host in now}
        replace = (self.seen_health or {}).get("replace") or {}
        new = [one for host, one in now.items() if _try(one) != _try(before.get(host, {}))]
        # Of a machine the pod stays, and a cache that does not show a try yet makes that try begin once more.
        seen = {host: self.seen_tries.get(host) if one.get("bootId") else one for host, one in before.items()}
        before = {host: one for host, one in seen.items() if one is not None}
        is_machine = replace.get("policy") in {"Reboot", "DeleteMachine"}
        if new and (replace.get("policy") != "RecreatePod" and not is_machine):
            self.violations.append(f"{new} begin although nobody asks for that")
        for one in new:
            last = before.get(one["host"])
            if one["tries"] != (last or {"tries": 0})["tries"] + 1 or one["tries"] > replace.get("maxTries", 3):
                self.violations.append(f"{one} is one too many, or not counted, after {last}")
            pause = replace.get("backoffSeconds", 600) * 2 ** (one["tries"] - 2)
            if last is not None and (self.now - datetime.fromisoformat(last["last"])).total_seconds() < pause - 1:
                self.violations.append(f"{one} begins too soon after {last}")
        standing = [
            one
            for one in now.values()
            if (self.is_machine_out(one) if one.get("bootId") else self.is_being_replaced(one))
        ]
        if new and len(standing) > replace.get("maxConcurrent", 1):
            self.violations.append(f"more is replaced at once than the spec allows: {standing}")

    def is_being_replaced(self, one: Object) -> bool:
        """Whether the pod of a try stands and is drained for it."""
        pod = self.pods.get(one["pod"])
        if pod is None or pod["metadata"]["uid"] != one["podUid"] or not self.is_live(pod):
            return False
        young = (self.now - datetime.fromisoformat(one["last"])).total_seconds() < 299
        return young and self.is_held(self.node_of(one["pod"]))

    def watch_replacement(self, name: str) -> None:
        """Watch over a pod that serves, is what it is to be, and is deleted: for its Node only, which must be bad."""
        pod, node = self.pods[name], self.node_of(name)
        if self.seen_deleting or self.given_up or self.nodeset is None or not self.is_live(pod):
            return
        causes = self.causes_of(node)
        host = pod["spec"].get("nodeName")
        if not self.is_only_sick(name, causes):
            return
        uid, record = self.uid_of(name), self.replacements().get(host)
        if record is None or record["podUid"] != uid:
            self.violations.append(f"pod {name} was deleted for its health, and the try is not counted: {record}")
            return
        if "health" not in causes:
            self.violations.append(f"pod {name} was deleted for its health although its node is not drained for that")
        status, _ = self.seen_conditions.get(host, ("", self.now))
        if status != "True":
            self.violations.append(f"pod {name} was deleted for its health although Node {host} is {status!r}")
        self.replaced.setdefault(host, set()).add(uid)
        if len(self.replaced[host]) > record["tries"]:
            self.violations.append(f"{self.replaced[host]} were deleted for {record}")

    def is_only_sick(self, name: str, causes: set[str]) -> bool:
        """Whether nothing but the health of its Node can be why a pod is deleted."""
        if self.node_of(name) not in self.records:
            # Slurm has forgotten it: it is recreated once its slurmd has shown for minutes that nothing runs.
            return False
        if self.uid_of(name) not in self.known or not causes <= {"health", "node-cordon", "cordon"}:
            return False
        if max(len(self.live()), len(self.seen_live)) > self.seen_replicas or self.is_outdated(name):
            return False
        host = self.pods[name]["spec"].get("nodeName")
        return host in self.hosts and (not self.on_hosts or host in self.seen_selected)

    def is_coming(self, node: str) -> bool:
        """Whether a node is missing for a while only: its pod is going, or is on its way up and young."""
        name = self.pod_of(node)
        if name is None:
            has_place = not self.on_hosts or (self.is_selected(node) and not self.is_cordoned(node))
            return has_place and len(self.live()) < self.seen_replicas
        metadata = self.pods[name]["metadata"]
        if not self.is_ours(self.pods[name]) or self.uid_of(name) in self.known:
            return False
        if "deletionTimestamp" in metadata:
            return self.now < datetime.fromisoformat(metadata["deletionTimestamp"])
        return (self.now - datetime.fromisoformat(metadata["creationTimestamp"])).total_seconds() < PATIENCE
