"""Actions of users and administrators: on the NodeSet, its pods, Kubernetes Nodes and in Slurm."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.unit.nodeset.simulation.machines import Machines
from tests.unit.nodeset.simulation.objects import (
    BAD,
    CLUSTER,
    CLUSTER_LABEL,
    HOSTS,
    MISFIT,
    NAME_LABEL,
    NAMESPACE,
    NEIGHBOUR,
    NEIGHBOUR_UID,
    NODESET,
    RACK,
    SELECTED,
    SICK,
    UID_LABEL,
    Object,
    is_selected,
    stamp,
)
from tests.unit.nodeset.simulation.state import Record

CASCADES: tuple[tuple[str, ...], ...] = ((), ("foregroundDeletion",), ("orphan",))
"""Finalizers that the API server adds to what is deleted in the background, in the foreground, or without its pods."""


def rolling(**given: Any) -> Object:
    return {"type": "RollingUpdate", "rollingUpdate": given}


STRATEGIES = (
    rolling(),
    rolling(partition=1),
    rolling(partition=2),
    rolling(maxUnavailable=2),
    rolling(partition=1, paused=True),
    rolling(maxUnavailable="100%"),
    rolling(maxUnavailable=2, partition=1),
    {"type": "OnDelete"},
)


RULE: Object = {"type": SICK}

HEALTH: tuple[Object | None, ...] = (
    {"nodeConditions": [RULE]},
    {"nodeConditions": [RULE], "maxUnhealthy": 2},
    {"nodeConditions": [{**RULE, "forSeconds": 0}], "clearSeconds": 0, "maxUnhealthy": 0},
    {"nodeConditions": [{**RULE, "forSeconds": 0}], "clearSeconds": 0},
    {
        "nodeConditions": [{**RULE, "reason": "call (somebody): update"}],
        "maxUnhealthy": "100%",
        "podConditions": "Problems",
    },
    {"nodeConditions": [{**RULE, "forSeconds": 0}], "maxUnhealthy": 1, "clearSeconds": 100},
    {"defaults": True, "podConditions": "All"},
    None,
)
"""What may be drained for the health of Nodes; the last two have no rule for the condition there is."""


def recreate(**given: Any) -> Object:
    return {"policy": "RecreatePod", "backoffSeconds": 0, **given}


REPLACE: tuple[Object | None, ...] = (
    recreate(),
    recreate(maxTries=1),
    recreate(maxTries=2, backoffSeconds=60),
    recreate(maxConcurrent=3),
    recreate(maxTries=2),
    {"policy": "RecreatePod"},
    {"policy": "Nothing"},
    None,
)
"""What may be done about nodes that are drained for their health."""


WINDOWS: tuple[tuple[tuple[int, int], ...], ...] = (
    ((0, 1),),
    ((100, 2),),
    ((0, 10),),
    ((-600, 1),),
    ((1000, 10), (0, 1)),
    ((300, 1), (-600, 1)),
    (),
    ((1000, 10),),
)
"""Maintenance windows: in how many seconds each begins, and for how many minutes it is on."""


class Users(Machines):
    """Somebody's hand."""

    # The NodeSet

    def create_nodeset(self, replicas: int) -> None:
        self.nodeset = {
            "apiVersion": "slinky.slurm.net/v1alpha1",
            "kind": "NodeSet",
            "metadata": {
                "name": NODESET,
                "namespace": NAMESPACE,
                "uid": "set-uid",
                "generation": 1,
                "creationTimestamp": stamp(self.now),
            },
            "spec": {
                "clusterName": CLUSTER,
                "replicas": replicas,
                "image": "v1",
                "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
                "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Delete"},
            },
        }
        if self.on_hosts:
            self.nodeset["spec"] |= {"scalingMode": "DaemonSet", "template": {"spec": {"nodeSelector": SELECTED}}}
        self.tell("nodesets", "ADDED", self.nodeset)

    def do_scale(self, index: int) -> None:
        if self.nodeset is not None:
            self.nodeset["spec"]["replicas"] = index % 4
            self.edited()

    def do_edit(self, index: int) -> None:
        if self.nodeset is not None:
            self.nodeset["spec"]["image"] = ("v0", "v1", BAD)[index % 3]
            self.edited()

    def do_misfit(self, index: int) -> None:
        """The user asks for more than there is."""
        if self.nodeset is not None:
            self.nodeset["spec"]["image"] = MISFIT
            self.edited()

    def do_retain(self, index: int) -> None:
        """The user says what is to become of claims."""
        if self.nodeset is not None:
            policy = {"whenScaled": ("Delete", "Retain")[index % 2], "whenDeleted": ("Delete", "Retain")[index // 4]}
            self.nodeset["spec"]["persistentVolumeClaimRetentionPolicy"] = policy
            self.edited()

    def do_hold_back(self, index: int) -> None:
        """The user keeps an update from some pods, or from all, or from none, or lets it take more at once."""
        if self.nodeset is not None:
            self.nodeset["spec"]["updateStrategy"] = STRATEGIES[index % len(STRATEGIES)]
            self.edited()

    def do_patience(self, index: int) -> None:
        """The user says how long a pod must be Ready before the update goes on."""
        if self.nodeset is not None:
            self.nodeset["spec"]["minReadySeconds"] = (0, 30, 100)[index % 3]
            self.edited()

    def do_pad(self, index: int) -> None:
        """The user has ordinals written with more digits, or fewer."""
        if self.nodeset is not None:
            self.nodeset["spec"]["ordinalPadding"] = (0, 2)[index % 2]
            self.edited()

    def do_policy(self, index: int) -> None:
        """How long jobs may hold up a drain, and what happens then."""
        if self.nodeset is not None:
            on_timeout = ("Wait", "Requeue", "Cancel", "Force")[index % 4]
            given = {"timeout": "60s", "onTimeout": on_timeout}
            self.nodeset["spec"]["drain"] = given if index < 6 else ({"onTimeout": "Force"} if index == 6 else {})
            self.edited()

    def do_health(self, index: int) -> None:
        """The user has nodes drained for conditions of their Nodes, or not."""
        if self.nodeset is not None:
            self.nodeset["spec"]["health"] = HEALTH[index % len(HEALTH)]
            self.edited()

    def do_replace(self, index: int) -> None:
        """The user has such nodes replaced, or not."""
        health = self.nodeset["spec"].get("health") if self.nodeset is not None else None
        if health is not None and health.get("nodeConditions"):
            health = {key: value for key, value in health.items() if key != "replace"}
            given = REPLACE[index % len(REPLACE)]
            assert self.nodeset is not None
            self.nodeset["spec"]["health"] = health if given is None else {**health, "replace": given}
            self.edited()

    def do_place(self, index: int) -> None:
        """The user has nodes placed in the topology by labels of their Nodes, or not."""
        if self.nodeset is not None:
            by_rack = {"name": "default", "root": "top", "nodeLabels": [RACK]}
            self.nodeset["spec"]["topology"] = [] if index > 4 else [by_rack]
            self.edited()

    def do_window(self, index: int) -> None:
        """The user plans maintenance, for which updates wait."""
        self.windows = [self.window(*given) for given in WINDOWS[index % len(WINDOWS)]]

    def window(self, after: int, minutes: int) -> Object:
        """A window that begins after so many seconds."""
        start = stamp(self.now + timedelta(seconds=after))
        return {"name": f"w{abs(after)}", "start": start, "duration": f"{minutes}m", "holdUpdates": True}

    def do_delete(self, index: int) -> None:
        """The user deletes the NodeSet, in the background or the foreground, or without its pods."""
        if self.nodeset is None or index >= len(CASCADES) or "deletionTimestamp" in self.nodeset["metadata"]:
            return
        metadata = self.nodeset["metadata"]
        if not metadata.get("finalizers") and self.pods:
            # Who takes the finalizer away and then deletes the NodeSet has it their way.
            return
        metadata["deletionTimestamp"] = stamp(self.now)
        metadata["finalizers"] = [*(metadata.get("finalizers") or []), *CASCADES[index]]
        self.tell("nodesets", "MODIFIED", self.nodeset)
        self.release()

    def do_give_up(self, index: int) -> None:
        """The user does not wait for the jobs of a NodeSet that is being deleted."""
        if self.nodeset is not None and "deletionTimestamp" in self.nodeset["metadata"]:
            notes = self.nodeset["metadata"].setdefault("annotations", {})
            notes["nodeset.slinky.slurm.net/skip-drain"] = "true"
            self.given_up = True
            self.tell("nodesets", "MODIFIED", self.nodeset)

    def do_finalizer_taken(self, index: int) -> None:
        """Somebody takes the finalizers away."""
        if self.nodeset is not None and "deletionTimestamp" not in self.nodeset["metadata"]:
            self.nodeset["metadata"]["finalizers"] = []
            self.tell("nodesets", "MODIFIED", self.nodeset)

    # Pods and claims

    def do_user_deletes_pod(self, index: int) -> None:
        name = self.pick([n for n, p in self.pods.items() if "deletionTimestamp" not in p["metadata"]], index)
        if name is not None and self.is_ours(self.pods[name]):
            self.begin_deletion(name)

    def do_kubectl_drain(self, index: int) -> None:
        """Somebody drains a Kubernetes Node: pods outside the budget are evicted."""
        name = self.pick([n for n, p in self.pods.items() if self.is_ours(p)], index)
        if name is None or self.is_protected(name) or "deletionTimestamp" in self.pods[name]["metadata"]:
            return
        uid = self.uid_of(name)
        self.violations += [
            f"pod {name} was evicted under job {job.id} ({job.state})"
            for job in self.jobs
            if uid in job.alive and uid not in self.exposed
        ]
        self.begin_deletion(name)

    def do_usurp(self, index: int) -> None:
        """A pod is deleted by force, and somebody puts one of their own under its name."""
        if any(not self.is_ours(pod) for pod in self.pods.values()):
            return
        name = self.pick([n for n, p in self.pods.items() if self.is_ours(p)], index)
        if name is not None:
            self.troubled = True
            self.remove_pod(name)
            stranger: Object = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"stranger-{self.next()}"},
                "spec": {"nodeName": "elsewhere"},
                "status": {"phase": "Running"},
            }
            self.pods[name] = stranger
            self.tell("pods", "ADDED", stranger)

    def do_cordon(self, index: int) -> None:
        name = self.pick([n for n, p in self.pods.items() if self.is_ours(p)], index)
        if name is not None:
            notes = self.pods[name]["metadata"].setdefault("annotations", {})
            key = "nodeset.slinky.slurm.net/pod-cordon"
            notes[key] = "false" if notes.get(key) == "true" else "true"
            self.tell("pods", "MODIFIED", self.pods[name])

    def do_user_deletes_guard(self, index: int) -> None:
        """Somebody deletes the guard; the garbage collector takes it from the owners of the pods."""
        self.maps.clear()
        self.collect_guards()

    def do_squat(self, index: int) -> None:
        """Somebody has a claim of a name that could be ours."""
        name = f"data-{NODESET}-{index % 4}"
        if name not in self.claims:
            self.claims[name] = {"metadata": {"name": name, "uid": f"theirs-{self.next()}"}}

    # Another NodeSet, a-b, of the same Cluster and the same operator

    def neighbour_comes(self, node: str) -> Object:
        """It has a pod whose node is called as one of ours could be."""
        name = f"a-b-{node}"
        uid = f"neighbour-{self.next()}"
        pod: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "uid": uid,
                "labels": {UID_LABEL: NEIGHBOUR_UID, NAME_LABEL: "a-b", CLUSTER_LABEL: CLUSTER},
            },
            "spec": {"hostname": node, "nodeName": HOSTS[0]},
            "status": {"phase": "Running"},
        }
        self.pods[name] = pod
        self.tell("pods", "ADDED", pod)
        return pod

    def do_neighbour_registers(self, index: int) -> None:
        """Its slurmds register, unless somebody's records are there already."""
        for name, pod in self.pods.items():
            if self.is_neighbours(pod) and self.node_of(name) not in self.records and not self.slurm_fault:
                uid = self.uid_of(name)
                self.running[uid] = self.now
                self.known.add(uid)
                self.records[self.node_of(name)] = Record(self.node_of(name), NEIGHBOUR, uid, uid, self.now)

    def do_neighbour_goes(self, index: int) -> None:
        """It gives its nodes up: their jobs are over, their records and pods go."""
        for name in [name for name, pod in self.pods.items() if self.is_neighbours(pod)]:
            record = self.records.get(self.node_of(name))
            if record is not None and record.extra == NEIGHBOUR:
                if self.jobs_on(record.name):
                    continue
                del self.records[record.name]
                self.foreign.pop(record.name, None)
            self.remove_pod(name)

    # Kubernetes Nodes

    def do_label_host(self, index: int) -> None:
        """A Node is to have a pod, or none any more."""
        host = self.hosts.get(HOSTS[index % len(HOSTS)])
        if host is None:
            return
        own = host["metadata"]["labels"]
        rack = {key: own[key] for key in own if key == RACK}
        host["metadata"]["labels"] = rack if is_selected(host) else {**SELECTED, **rack}
        self.tell("nodes", "MODIFIED", host)

    def do_cordon_host(self, index: int) -> None:
        """Somebody cordons a Node, or takes that back."""
        host = self.hosts.get(HOSTS[1 + index % (len(HOSTS) - 1)])
        if host is None:
            return
        if host["spec"].pop("unschedulable", None) is None:
            host["spec"]["unschedulable"] = True
            notes = host["metadata"].setdefault("annotations", {})
            notes["nodeset.slinky.slurm.net/node-cordon-reason"] = f"disk {index}"
        self.tell("nodes", "MODIFIED", host)

    def do_annotate_host(self, index: int) -> None:
        """A Node gets other features, or another place in the topology."""
        host = self.hosts.get(HOSTS[index % len(HOSTS)])
        if host is None:
            return
        notes = host["metadata"].setdefault("annotations", {})
        notes["features.slinky.slurm.net/spec"] = ("", "ib", "ib,rack")[index // len(HOSTS)]
        notes["topology.slinky.slurm.net/spec"] = f"default:s{index % 2}"
        self.tell("nodes", "MODIFIED", host)

    def do_rack(self, index: int) -> None:
        """A Node is put into another rack, or nobody knows any more into which."""
        host = self.hosts.get(HOSTS[index // 3])
        if host is None:
            return
        rack = ("r0", "r1", None)[index % 3]
        others = {key: value for key, value in host["metadata"]["labels"].items() if key != RACK}
        host["metadata"]["labels"] = others if rack is None else {**others, RACK: rack}
        self.tell("nodes", "MODIFIED", host)

    def do_sicken(self, index: int) -> None:
        """A Node begins to be bad, or its monitor says so again with other words."""
        self.set_condition(index, "True")

    def do_recover(self, index: int) -> None:
        """A Node is well again."""
        self.set_condition(index, "False")

    def do_doubt(self, index: int) -> None:
        """Nobody knows whether a Node is well."""
        self.set_condition(index, "Unknown")

    def do_boot(self, index: int) -> None:
        """The machine of a Node has started again, so fast that nothing there has noticed."""
        host = self.hosts.get(HOSTS[index % len(HOSTS)])
        if host is not None:
            name = host["metadata"]["name"]
            self.boot_ids[name] = f"boot-{self.next()}"
            host["status"]["nodeInfo"] = {"bootID": self.boot_ids[name]}
            self.tell("nodes", "MODIFIED", host)

    def do_drain_request(self, index: int) -> None:
        """NVSentinel asks for a Node to be drained, or has done with it."""
        self.requests ^= {HOSTS[index % len(HOSTS)]}

    def do_condition_goes(self, index: int) -> None:
        """A Node has no such condition any more."""
        host = self.hosts.get(HOSTS[index % len(HOSTS)])
        if host is not None and host["status"].pop("conditions", None):
            self.tell("nodes", "MODIFIED", host)

    def set_condition(self, index: int, status: str) -> None:
        host = self.hosts.get(HOSTS[index % len(HOSTS)])
        if host is None:
            return
        before = (host["status"].get("conditions") or [{}])[0]
        since = before["lastTransitionTime"] if before.get("status") == status else stamp(self.now)
        words = f"words\n{index} (ns/b): slurm-operator: update"
        host["status"]["conditions"] = [{"type": SICK, "status": status, "lastTransitionTime": since, "message": words}]
        self.tell("nodes", "MODIFIED", host)

    # Nodes in Slurm

    def do_admin_drains(self, index: int) -> None:
        name = self.pick(self.records, index)
        if name is not None:
            record = self.records[name]
            record.drain, record.reason, record.changed = True, f"mine {index}", self.slurm_now
            self.foreign[name] = record.reason

    def do_admin_undrains(self, index: int) -> None:
        name = self.pick([r.name for r in self.records.values() if r.drain and not r.invalid], index)
        if name is not None:
            self.records[name].drain = False
            self.foreign.pop(name, None)
            self.given_back.add(name)
            self.expose(name)
