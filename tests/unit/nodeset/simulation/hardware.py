"""Machines of Kubernetes Nodes: who reboots and replaces them, what the controller asks of them, what it never may.

The controller writes on Nodes, creates RebootNodes and deletes Machines by `doors`, which calls the methods named
`order_*`. What has been asked for happens later (`do_machines_work`), or never. All on a machine ends with it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.unit.nodeset.simulation.machines import Machines
from tests.unit.nodeset.simulation.objects import HOSTS, NAMESPACE, TAG, Object, clone, stamp

MARK = "nodeset.slinky.slurm.net/machine-replacement"
MACHINE = "cluster.x-k8s.io/machine"
MACHINE_NAMESPACE = "cluster.x-k8s.io/cluster-namespace"
REBOOT = "example.com/reboot"
"""Annotation on which a daemon of the site acts."""

TAKES = 1800
"""Seconds for which a request has a place in what may be done at a time."""


def by_machine(policy: str, **given: Any) -> Object:
    return {"policy": policy, "backoffSeconds": 0, **given}


POLICIES: tuple[Object, ...] = (
    by_machine("Reboot"),
    by_machine("DeleteMachine"),
    by_machine("Reboot", maxTries=1),
    by_machine("Reboot", maxConcurrent=3),
    by_machine("DeleteMachine", maxConcurrent=3, maxTries=2),
    by_machine("Reboot", backoffSeconds=60),
    by_machine("DeleteMachine", maxTries=1),
    {"policy": "Nothing"},
)
"""What may be done about machines of nodes that are drained for their health."""

SETTINGS: tuple[Object, ...] = (
    {"by": "RebootNode", "deletes": True, "namespaces": ["*"]},
    {"by": REBOOT, "deletes": True, "namespaces": ["*"]},
    {"by": "RebootNode", "deletes": False, "namespaces": [NAMESPACE]},
    {"by": REBOOT, "deletes": False, "namespaces": [NAMESPACE]},
    {"by": "RebootNode", "deletes": True, "namespaces": ["*"]},
    {"by": REBOOT, "deletes": True, "namespaces": ["*"]},
    {"by": "", "deletes": True, "namespaces": ["*"]},
    {"by": "RebootNode", "deletes": True, "namespaces": ["theirs"]},
)
"""What the settings of the operator allow."""


class Hardware(Machines):
    """Nodes are cordoned, rebooted, deleted and come back."""

    # The user and the administrator

    def do_machine_policy(self, index: int) -> None:
        """The user has machines of bad nodes rebooted or deleted, or not."""
        health = self.nodeset["spec"].get("health") if self.nodeset is not None else None
        if health is not None and health.get("nodeConditions"):
            assert self.nodeset is not None
            self.nodeset["spec"]["health"] = {**health, "replace": POLICIES[index % len(POLICIES)]}
            self.edited()

    def do_settings(self, index: int) -> None:
        """The administrator allows something else; the operator is started again (`harness`)."""
        self.settings = SETTINGS[index % len(SETTINGS)]

    def do_rights(self, index: int) -> None:
        """The administrator installs the chart with the rights, or takes it away."""
        self.lacks_rights = index % 3 == 0

    def do_enrol(self, index: int) -> None:
        """Cluster API has Machines for Nodes, or one that is another Node's, or has them no more."""
        for number, name in enumerate(HOSTS[:2]):
            host = self.hosts.get(name)
            if host is None:
                continue
            notes = host["metadata"].setdefault("annotations", {})
            machine = f"m-{name}"
            if index % 4 == number:
                notes.pop(MACHINE, None)
            else:
                notes |= {MACHINE: machine, MACHINE_NAMESPACE: "capi"}
                of = HOSTS[2] if index == 7 else name
                uid = self.capi.get(machine, {"metadata": {"uid": f"uid-{self.next()}"}})["metadata"]
                self.capi[machine] = {"metadata": uid, "status": {"nodeRef": {"name": of}}}
            self.tell("nodes", "MODIFIED", host)

    def do_tenant(self, index: int) -> None:
        """Somebody's own pod is started on a Node, or ends."""
        self.tenants ^= {HOSTS[index % len(HOSTS)]}

    def do_unmark(self, index: int) -> None:
        """The administrator takes a Node out of the operator's hands: requests are withdrawn, and it is uncordoned."""
        name = self.pick([name for name, host in self.hosts.items() if self.mark_of(host)], index)
        if name is not None:
            self.take_back(name)

    def take_back(self, name: str) -> None:
        """A Node is the administrator's: nothing is asked for any more, and it has neither mark nor cordon."""
        self.reboots = {key: one for key, one in self.reboots.items() if one["spec"]["nodeName"] != name}
        notes = self.hosts[name]["metadata"]["annotations"]
        notes.pop(MARK)
        notes.pop(REBOOT, None)
        self.hosts[name]["spec"].pop("unschedulable", None)
        self.asked.pop(name, None)
        self.tell("nodes", "MODIFIED", self.hosts[name])

    def do_reboot_asked(self, index: int) -> None:
        """Somebody else asks for a reboot, by the annotation."""
        host = self.hosts.get(HOSTS[index % len(HOSTS)])
        if host is not None:
            notes = host["metadata"].setdefault("annotations", {})
            if REBOOT not in notes:
                notes[REBOOT] = f"please {index}"
                self.tell("nodes", "MODIFIED", host)

    # Faults

    def do_refuse(self, index: int) -> None:
        """The next write about a machine is refused, fails, or its answer is lost."""
        self.refusal = ("409", "403", "500", "lost", "422", "409", "403", "lost")[index % 8]

    def do_dies(self, index: int) -> None:
        """The operator ends after its next writes, and another one begins (`harness`)."""
        self.dies_in = 1 + index % 5

    # What has been asked for

    def do_machines_work(self, index: int) -> None:
        """Who reboots and deletes machines goes on with what has been asked for."""
        for name in [name for name, one in self.reboots.items() if not one["status"]]:
            if index != 1:
                # Or it is done with it and nothing has happened.
                self.reboot(self.reboots[name]["spec"]["nodeName"])
            if index != 2:
                # Or it reboots once more.
                self.reboots[name]["status"]["completionTime"] = stamp(self.now)
        self.obey_annotations(index)
        if index == 3:
            # Or nobody deletes anything.
            return
        for name in [name for name, one in self.capi.items() if "deletionTimestamp" in one["metadata"]]:
            del self.capi[name]
            self.end_host(name.removeprefix("m-"))
        for name in [name for name, one in self.hosts.items() if "deletionTimestamp" in one["metadata"]]:
            self.end_host(name)

    def obey_annotations(self, index: int) -> None:
        """A daemon reboots machines whose Nodes have its annotation."""
        for name, obj in list(self.hosts.items()):
            if REBOOT in (obj["metadata"].get("annotations") or {}) and index != 3:
                if index % 2 or obj["metadata"]["annotations"][REBOOT].startswith("please"):
                    # It takes its order away when it begins, or leaves it there for who gave it.
                    obj["metadata"]["annotations"].pop(REBOOT)
                self.reboot(name)

    def reboot(self, name: str) -> None:
        """A machine starts again: all that ran there has ended, and kubelets start their containers again."""
        asked = self.asked.get(name)
        self.watch_end(name, "rebooted")
        self.end_machine(name)
        host = self.hosts.get(name)
        if host is None:
            return
        self.boot_ids[name] = f"boot-{self.next()}"
        if asked is not None and self.is_being_deleted(name):
            # It ends all the same.
            self.asked[name] = {**asked, "boot": self.boot_ids[name]}
        host["status"]["nodeInfo"] = {"bootID": self.boot_ids[name]}
        self.tell("nodes", "MODIFIED", host)
        for pod in self.pods.values():
            uid, status = pod["metadata"]["uid"], pod["status"]
            if self.where.get(uid) == name and status.get("phase") == "Running" and self.is_ours(pod):
                self.running[uid] = self.now
                started = {"running": {"startedAt": stamp(self.now)}}
                status["containerStatuses"] = self.statuses(started, restartCount=1)
                self.tell("pods", "MODIFIED", pod)

    def end_host(self, name: str) -> None:
        """A machine is gone for good, and its Node with it."""
        self.watch_end(name, "deleted")
        self.end_machine(name)
        host = self.hosts.pop(name, None)
        if host is not None:
            self.boot_ids[name] = f"boot-{self.next()}"
            self.tell("nodes", "DELETED", host)

    def watch_end(self, name: str, what: str) -> None:
        """Note a machine that ends under a job since the controller has asked for it."""
        asked = self.asked.pop(name, None)
        if asked is None or name in self.excused:
            return
        self.violations += [
            f"the machine of {name} was {what} under job {job.id} ({job.state}), as asked for: {asked}"
            for job in self.jobs_at(name)
        ]

    # The controller's writes

    def order_host(self, name: str, patch: Object) -> None:
        """A patch of a Node: its cordon, the mark, and the annotation of the daemon."""
        host = self.hosts[name]
        notes = host["metadata"].setdefault("annotations", {})
        given = patch["metadata"]["annotations"]
        if patch.keys() != {"metadata", "spec"} or not given.keys() <= {MARK, REBOOT}:
            self.violations.append(f"{patch} was written on Node {name}")
        before = self.mark_of(host)
        for key, value in given.items():
            if value is None and key == REBOOT and notes.get(key, "").startswith("please"):
                self.violations.append(f"somebody else's request to reboot Node {name} was taken away")
            notes.pop(key, None)
            if value is not None:
                notes[key] = value
        if patch["spec"]["unschedulable"] is None:
            self.watch_uncordon(name, before)
            host["spec"].pop("unschedulable", None)
        else:
            if not before and host["spec"].get("unschedulable"):
                self.violations.append(f"Node {name}, cordoned by somebody else, was marked as the operator's")
            host["spec"]["unschedulable"] = True
        if given.get(REBOOT) is not None:
            self.order_request(name, "Reboot", REBOOT)
        self.tell("nodes", "MODIFIED", host)

    def order_reboot(self, body: Object) -> None:
        """A RebootNode."""
        name = body["spec"]["nodeName"]
        self.reboots[body["metadata"]["name"]] = {**clone(body), "status": {}}
        self.order_request(name, "Reboot", "RebootNode")

    def order_machine(self, machine: str) -> None:
        """The deletion of a Machine."""
        self.capi[machine]["metadata"]["deletionTimestamp"] = stamp(self.now)
        name = self.capi[machine]["status"]["nodeRef"]["name"]
        self.order_request(name, "DeleteMachine", machine)

    def order_delete_host(self, name: str) -> None:
        """The deletion of a Node."""
        if "deletionTimestamp" not in self.hosts[name]["metadata"]:
            self.hosts[name]["metadata"]["deletionTimestamp"] = stamp(self.now)
            self.tell("nodes", "MODIFIED", self.hosts[name])
            self.order_request(name, "DeleteMachine", "Node")

    def order_request(self, name: str, policy: str, by: str) -> None:
        """The end of a machine is asked for: note what speaks against that."""
        wrong = [*self.why_uncounted(name, policy, by), *self.why_in_use(name)]
        replace = (self.seen_health or {}).get("replace") or {}
        if replace.get("policy") != policy:
            wrong.append(f"the spec says {replace}")
        if not self.is_allowed(policy, by):
            wrong.append(f"the settings are {self.settings}")
        self.violations += [f"the end of the machine of {name} was asked for by {by}, and {one}" for one in wrong]
        self.asked[name] = {"boot": self.boot_of(name), "by": by, "at": self.now}
        self.excused.discard(name)

    def why_uncounted(self, name: str, policy: str, by: str) -> list[str]:
        """What is wrong with the try for which a machine is to end."""
        host, wrong = self.hosts.get(name), []
        mark = self.mark_of(host) if host is not None else ""
        words = mark.split(" ")
        if host is None or words[-1] != "sent" or words[:2] != [TAG, policy] or not host["spec"].get("unschedulable"):
            wrong.append(f"its Node is not cordoned and marked for that: {mark!r}")
        tried = self.replacements().get(name)
        if tried is None or len(words) < 4 or (tried["bootId"], tried["last"]) != (words[2], words[3]):
            wrong.append(f"the try is not counted: {tried}, {mark!r}")
        elif (name, tried["last"]) in self.asked_ever:
            wrong.append(f"it has been asked for already: {tried}")
        else:
            self.asked_ever.add((name, tried["last"]))
        boot = self.boot_of(name)
        open_ones = [one for one in self.reboots.values() if one["spec"]["nodeName"] == name and not one["status"]]
        if name in self.asked and self.asked[name]["boot"] == boot and (len(open_ones) > 1 or by != "RebootNode"):
            since = (self.now - self.asked[name]["at"]).total_seconds()
            if since < TAKES or open_ones:
                wrong.append(f"it has been asked for {since} seconds ago")
        return wrong

    def why_in_use(self, name: str) -> list[str]:
        """What runs on a machine, or may."""
        wrong = [f"job {job.id} ({job.state}) is there" for job in self.jobs_at(name)]
        if name in self.tenants:
            wrong.append("somebody else's pod is there")
        for node in self.nodes_at(name):
            record = self.records.get(node)
            if node in self.foreign and record is not None and record.drain:
                wrong.append(f"somebody else keeps node {node} drained")
            elif record is not None and not record.drain and record.slurmd in self.running:
                wrong.append(f"node {node} takes jobs")
        return wrong

    def watch_uncordon(self, name: str, mark: str) -> None:
        """Note a Node that is uncordoned and may reboot at any moment, or that is not the operator's."""
        if not mark.startswith(f"{TAG} "):
            self.violations.append(f"Node {name} was uncordoned, and is not ours: {mark!r}")
        if self.is_going(name):
            self.violations.append(f"Node {name} was uncordoned, and its machine is asked for: {self.asked[name]}")
        if any(one["spec"]["nodeName"] == name and not one["status"] for one in self.reboots.values()):
            self.violations.append(f"Node {name} was uncordoned before its RebootNode was complete")

    def watch_going(self, node: str) -> None:
        """Note a node that is given back although its machine may reboot at any moment."""
        name = self.pod_of(node)
        host = self.pods[name]["spec"].get("nodeName") if name is not None else None
        if host is not None and self.is_going(host) and host not in self.excused:
            self.violations.append(f"{node} was given back, and its machine is asked for: {self.asked[host]}")

    # Look-ups

    def is_to_come(self, name: str) -> bool:
        """Whether a machine that was asked for may still go: a RebootNode may end without a reboot."""
        own = [one for one in self.reboots.values() if one["spec"]["nodeName"] == name]
        return name in self.asked and not (own and all("completionTime" in one["status"] for one in own))

    def mark_of(self, host: Object) -> str:
        return str((host["metadata"].get("annotations") or {}).get(MARK) or "")

    def boot_of(self, name: str) -> str:
        host = self.hosts.get(name)
        return str(host["status"]["nodeInfo"]["bootID"]) if host is not None else ""

    def is_being_deleted(self, name: str) -> bool:
        """Whether a machine is about to end for good."""
        there = (self.hosts.get(name), self.capi.get(f"m-{name}"))
        return any(one is not None and "deletionTimestamp" in one["metadata"] for one in there)

    def is_going(self, name: str) -> bool:
        """Whether a machine has been asked for, and has not started again since."""
        return name in self.asked and self.asked[name]["boot"] == self.boot_of(name)

    def is_allowed(self, policy: str, by: str) -> bool:
        is_ours = not {NAMESPACE, "*"}.isdisjoint(self.settings["namespaces"])
        return is_ours and (
            self.settings["by"] == by if policy == "Reboot" else by != "Node" or self.settings["deletes"]
        )

    def pods_at(self, name: str) -> list[Object]:
        """Slurmd pods that are bound to a Node, also those of others."""
        return [pod for pod in self.pods.values() if pod["spec"].get("nodeName") == name]

    def shown_at(self, name: str) -> list[Object]:
        """All pods that are bound to a Node, as the API server shows them."""
        web = {"metadata": {"name": "web", "namespace": "shop", "uid": "web"}, "status": {"phase": "Running"}}
        return [clone(pod) for pod in self.pods_at(name)] + ([web] if name in self.tenants else [])

    def nodes_at(self, name: str) -> list[str]:
        return [self.node_in(pod) for pod in self.pods_at(name) if self.is_ours(pod) or self.is_neighbours(pod)]

    def jobs_at(self, name: str) -> list[Any]:
        """Jobs with processes on a machine."""
        uids = {pod["metadata"]["uid"] for pod in self.pods_at(name)} | {
            u for u, at in self.where.items() if at == name
        }
        return [job for job in self.jobs if uids & job.alive]

    def is_machine_out(self, one: Object) -> bool:
        """Whether a try for a machine has a place: that has not started again."""
        young = (self.now - datetime.fromisoformat(one["last"])).total_seconds() < TAKES - 1
        return young and self.boot_of(one["host"]) == one["bootId"]
