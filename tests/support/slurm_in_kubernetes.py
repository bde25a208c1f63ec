"""A Slurm cluster as a user of the operator sees it: through manifests, `kubectl` and Slurm's own commands."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hack.localkube.kubectl import Kubectl, KubectlFailed, wait_for
from tests.support.kept_shell import KeptShell

NEWEST, OLDER = VERSIONS = ("26.05", "24.11")
"""Versions of Slurm that there are images of, as in their tags."""

SLURM_CONF = "/run/slurm/conf/slurm.conf"
"""Where slurmd keeps the configuration it was sent."""

PATIENCE = 240.0
"""Seconds that a condition may take on a machine that is busy with other things; no test says how fast anything is."""

LOOKS = frozenset({"sinfo", "squeue"})
"""Slurm's commands that only look, whatever their arguments; others do so when they `show`."""

RELEASED = "/tmp/released-"
"""Path of the file in a node's pod that a held job waits for, but for the job's id."""


@dataclass(frozen=True, slots=True)
class SlurmInKubernetes:
    """One Cluster in a namespace of its own.

    Attributes
    ----------
    kubectl
        Access to the Kubernetes cluster.
    namespace, name
        Of the Cluster object.
    slurm
        Version as in the image tags, ``26.05`` for example.
    """

    kubectl: Kubectl
    namespace: str
    slurm: str
    name: str = "slurm"
    shells: dict[str, KeptShell] = field(default_factory=dict, compare=False, repr=False)
    """Kept shells by the pods that they are in."""
    submitted: list[str] = field(default_factory=list, compare=False, repr=False)
    """Jobs submitted by the test that runs, and not by its fixtures."""

    # Manifests in

    def create(self, **spec: Any) -> None:
        """Create the namespace and the Cluster."""
        images = {
            "controller": {"image": self.image("slurmctld")},
            "restapi": {"image": self.image("slurmrestd")},
        }
        if "accounting" in spec and "external" not in spec["accounting"]:
            spec["accounting"] = {"image": self.image("slurmdbd"), **spec["accounting"]}
        self.kubectl.apply(
            [
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}},
                self.object("Cluster", self.name, {**images, **spec}),
            ]
        )

    def image(self, daemon: str) -> str:
        """Return the image of a daemon, in this version of Slurm."""
        return f"localhost/slinky/{daemon}:{self.slurm}"

    def nodeset(self, name: str, replicas: int | None, **spec: Any) -> None:
        """Create or replace a NodeSet of one-CPU nodes; without a number there is one on each matching Node."""
        small = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}}
        body = {
            "clusterName": self.name,
            **({} if replicas is None else {"replicas": replicas}),
            "image": self.image("slurmd"),
            "resources": small,
        }
        self.kubectl.apply([self.object("NodeSet", name, {**body, **spec})])

    def object(self, kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return a manifest of one of our kinds."""
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": kind, "metadata": metadata, "spec": dict(spec)}

    def scale(self, name: str, replicas: int) -> None:
        """Scale a NodeSet as a person would."""
        self.kube("scale", f"nodeset/{name}", f"--replicas={replicas}")

    def delete(self) -> None:
        """Delete the namespace and wait until it is gone."""
        self.close_shells()
        self.kubectl("delete", "namespace", self.namespace, "--ignore-not-found", "--wait", timeout=2 * PATIENCE)

    def abandon(self) -> None:
        """Begin to delete the namespace: for the end of tests, which need not see it gone."""
        self.close_shells()
        self.kubectl("delete", "namespace", self.namespace, "--ignore-not-found", "--wait=false")

    def describe(self) -> str:
        """Return what Kubernetes and Slurm show, to show why a test failed."""
        looks = (
            lambda: self.kube("get", "nodesets,clusters.slinky.slurm.net,pods", "--output=wide"),
            lambda: self.kube("get", "events", "--sort-by=.lastTimestamp"),
            lambda: self.control("sinfo", "--Node", "--format=%N %T %E"),
            lambda: self.control("squeue", "--all", "--states=all"),
        )
        return "\n".join(_said(look) for look in looks)

    def close_shells(self) -> None:
        """End the shells that are kept in pods."""
        for shell in self.shells.values():
            shell.close()
        self.shells.clear()

    # What Kubernetes shows

    def kube(self, *arguments: str, timeout: float = 120.0) -> str:
        """Run kubectl in the namespace."""
        return self.kubectl("--namespace", self.namespace, *arguments, timeout=timeout)

    def run_pods(self, *pods: Mapping[str, Any]) -> None:
        """Create pods of nobody, once the namespace has the account that they run by; it is made in the background."""
        account = ("get", "serviceaccounts", "--output=name")
        wait_for("the service account", lambda: "serviceaccount/default" in self.kube(*account), PATIENCE)
        self.kubectl.apply(pods)

    def get(self, *arguments: str) -> dict[str, Any]:
        """Return what ``kubectl get`` shows."""
        return self.kubectl.get("--namespace", self.namespace, *arguments)

    def slurmd_pods(self) -> dict[str, dict[str, Any]]:
        """Return the pods of all NodeSets by name."""
        items = self.get("pods", "--selector=nodeset.slinky.slurm.net/uid")["items"]
        return {pod["metadata"]["name"]: pod for pod in items}

    def pod_uid(self, name: str) -> str:
        """Return the uid of a slurmd pod; empty if there is none."""
        return str(self.slurmd_pods().get(name, {"metadata": {"uid": ""}})["metadata"]["uid"])

    def is_replaced(self, name: str, predecessor: str) -> bool:
        """Whether there is a pod of this name, of another uid than its predecessor."""
        return self.pod_uid(name) not in {"", predecessor}

    def evict(self, name: str) -> None:
        """Ask for the eviction of a slurmd pod, as `kubectl drain` and autoscalers do.

        Kubernetes minds no budget as long as the pod is Pending, as the kubelet may show it for a moment after slurmd
        has registered.

        Raises
        ------
        KubectlFailed
            It is refused.
        """
        wait_for(f"{name} Running", lambda: self.slurmd_pods()[name]["status"].get("phase") == "Running", PATIENCE)
        about = {"name": name, "namespace": self.namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": about}
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/eviction"
        self.kubectl("create", "--raw", path, "--filename=-", stdin=json.dumps(body))

    def condition(self, kind: str, name: str, condition: str) -> dict[str, Any]:
        """Return a condition of an object; one that is not there yet says nothing: its texts are empty."""
        conditions = self.get(kind, name).get("status", {}).get("conditions", [])
        found: dict[str, Any] = next((one for one in conditions if one["type"] == condition), {})
        return {"status": "", "reason": "", "message": "", **found}

    def events(self, name: str) -> list[str]:
        """Return the Events of an object as lines ``REASON: message``."""
        items = self.get("events", f"--field-selector=involvedObject.name={name}")["items"]
        return [f"{event['reason']}: {event['message']}" for event in items]

    # What Slurm shows

    def control(self, *argv: str) -> str:
        """Run a Slurm command beside slurmctld; one that only looks, as most do, in a shell that is kept."""
        pod = f"{self.name}-controller-0"
        if argv[0] not in LOOKS and "show" not in argv:
            return self.kube("exec", pod, "--container=slurmctld", "--", *argv)
        return self._shell(pod, "slurmctld").run(*argv)

    def look(self, *argv: str, pod: str = "compute-0") -> str:
        """Run a Slurm command that only looks in a node's pod, in a shell that is kept: to ask again and again."""
        return self._shell(pod, "slurmd").run("env", f"SLURM_CONF={SLURM_CONF}", *argv)

    def _shell(self, pod: str, container: str) -> KeptShell:
        return self.shells.setdefault(pod, KeptShell(self.kubectl, self.namespace, pod, container))

    def run(self, *argv: str, pod: str = "compute-0", timeout: float = 120.0) -> str:
        """Run a Slurm command in a node's pod, from where jobs can be started."""
        command = ("env", f"SLURM_CONF={SLURM_CONF}", *argv)
        return self.kube("exec", pod, "--container=slurmd", "--", *command, timeout=timeout)

    def states(self) -> dict[str, str]:
        """Return the state of each Slurm node, as ``sinfo`` calls it (``idle``, ``draining``, ``drained*`` …)."""
        lines = self.control("sinfo", "--noheader", "--Node", "--format=%N %T").splitlines()
        return dict(line.split() for line in lines)

    def drained_nodes(self) -> set[str]:
        """Return the nodes that are drained or draining, by anybody."""
        return {name for name, state in self.states().items() if state.startswith("drain")}

    def node(self, name: str) -> dict[str, str]:
        """Return the fields of a Slurm node; empty if there is none of that name."""
        # All of them: asked for one that is not there, scontrol fails as it does where nobody answers.
        for line in self.control("scontrol", "--oneliner", "show", "nodes").splitlines():
            fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
            if fields.get("NodeName") == name:
                return fields
        return {}

    def reason(self, node: str) -> str:
        """Return the reason of a drain; empty if there is no such node."""
        lines = self.control("sinfo", "--noheader", f"--nodes={node}", "--format=%E").strip().splitlines()
        return lines[0] if lines else ""

    def submit(self, *options: str, seconds: float = 2.0, pod: str = "compute-0") -> str:
        """Submit a batch job that sleeps and return its id."""
        wrap = f"--wrap=sleep {seconds}"
        job = self.run("sbatch", "--parsable", "--output=/tmp/%j.out", *options, wrap, pod=pod).strip()
        self.submitted.append(job)
        return job

    def hold(self, node: str, *options: str, pod: str = "", partition: str = "") -> str:
        """Start a batch job on a node that runs until it is released, and return its id.

        A node with an ordinal is called like its pod, and its partition like its NodeSet; others need both.
        """
        script = f"--wrap=until [ -e {RELEASED}$SLURM_JOB_ID ]; do sleep 0.1; done"
        partition = partition or node.rpartition("-")[0]
        job = self.run(
            "sbatch", "--parsable", "--output=/dev/null", "-p", partition, "-w", node, *options, script, pod=pod or node
        ).strip()
        self.submitted.append(job)
        self.wait_job(job, "RUNNING")
        return job

    def release(self, job: str, pod: str) -> None:
        """Let such a job end, which runs in that pod."""
        self.kube("exec", pod, "--container=slurmd", "--", "touch", f"{RELEASED}{job}")

    def cancel_jobs(self) -> str:
        """Cancel the jobs of `submitted`, which a failed test may have left; return what was said."""
        return _said(partial(self.control, "scancel", *self.submitted)) if self.submitted else ""

    def job(self, job: str) -> dict[str, str]:
        """Return the fields of a job."""
        words = self.control("scontrol", "--oneliner", "show", "job", job).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def job_state(self, job: str) -> str:
        """Return the state of a job."""
        return self.job(job)["JobState"]

    # Waiting

    def wait_ready(self, timeout: float = PATIENCE) -> None:
        """Wait until the Cluster says that Slurm serves, with the configuration that the spec describes."""

        def ready() -> bool:
            status = self.get("cluster", self.name).get("status", {})
            applied = {one["type"]: one["status"] for one in status.get("conditions", [])}.get("ConfigApplied", "True")
            return status.get("isReady") is True and applied == "True"

        wait_for(f"Cluster {self.name} ready", ready, timeout)

    def wait_states(self, wanted: Mapping[str, str], timeout: float = PATIENCE) -> None:
        """Wait until Slurm shows exactly these nodes in these states."""
        wait_for(f"nodes {json.dumps(wanted)}", lambda: self.states() == wanted, timeout)

    def wait_idle(self, names: Iterable[str], timeout: float = PATIENCE) -> None:
        """Wait until Slurm shows exactly these nodes, all idle."""
        self.wait_states(dict.fromkeys(names, "idle"), timeout)

    def wait_idle_nodes(self, *names: str, timeout: float = PATIENCE) -> None:
        """Wait until these nodes are idle, whatever others are."""

        def idle() -> bool:
            states = self.states()
            return all(states.get(name) == "idle" for name in names)

        wait_for(f"{', '.join(names)} idle", idle, timeout)

    def wait_job(self, job: str, state: str, timeout: float = PATIENCE) -> None:
        """Wait for a state of a job."""
        wait_for(f"job {job} {state}", lambda: self.job_state(job) == state, timeout)

    def wait_gone(self, node: str, pod: str = "", timeout: float = PATIENCE) -> None:
        """Wait until neither a Slurm node nor its pod, called like it where none is named, is there.

        A record may go first: that its pod has ended is enough for that.
        """
        pod = pod or node
        wait_for(
            f"the end of {pod} and its record",
            lambda: node not in self.states() and pod not in self.slurmd_pods(),
            timeout,
        )

    def wait_event(self, name: str, reason: str, *words: str, timeout: float = PATIENCE) -> None:
        """Wait for an Event of an object that has this reason and these words: they are written in the background."""

        def told() -> bool:
            lines = self.events(name)
            return any(line.startswith(f"{reason}: ") and all(word in line for word in words) for line in lines)

        wait_for(f"Event {reason} of {name}", told, timeout)

    def wait_view(self, nodeset: str, node: str, pod: str = "") -> None:
        """Wait until the operator has seen all nodes of a NodeSet as they are now, jobs included.

        Counts of jobs would not do: those of a test before count too until their end is seen. So a node without a job
        is taken out of service for a moment, which nothing else does; nodes are listed together. The end of an earlier
        step may last: until then the node has a job for the operator too.
        """
        # In the node's pod: slurmctld may be somebody else's.
        look = ("sinfo", "--noheader", f"--nodes={node}", "--format=%T")
        wait_for(f"{node} idle", lambda: {*self.run(*look, pod=pod or node).split()} == {"idle"}, PATIENCE)
        update = ("scontrol", "update", f"nodename={node}")
        self.run(*update, "state=drain", "reason=a moment", pod=pod or node)
        self.wait_seen(nodeset, slurmDrain=1)
        self.run(*update, "state=undrain", pod=pod or node)
        self.wait_seen(nodeset, slurmDrain=0)

    def wait_seen(self, nodeset: str, timeout: float = PATIENCE, **counts: int) -> None:
        """Wait until the status of a NodeSet has these counts.

        What Slurm shows at once the operator sees when it next asks: before that its choices are made without.
        """

        def seen() -> bool:
            status = self.get("nodeset", nodeset).get("status", {})
            return all(status.get(name) == count for name, count in counts.items())

        wait_for(f"NodeSet {nodeset} with {json.dumps(counts)}", seen, timeout)


@dataclass(frozen=True, slots=True)
class NewSlurm:
    """Makes places for Clusters, each in a namespace of its own; nothing is created yet.

    Attributes
    ----------
    kubectl
        Access to the Kubernetes cluster.
    slurm
        Version as in the image tags, where no other is asked for.
    made
        All that were made.
    """

    kubectl: Kubectl
    slurm: str
    made: list[SlurmInKubernetes] = field(default_factory=list)

    def __call__(self, prefix: str, name: str = "slurm", slurm: str = "") -> SlurmInKubernetes:
        """Return one in a namespace that no earlier run has used.

        Parameters
        ----------
        prefix
            What the namespace's name begins with.
        name
            Of the Cluster.
        slurm
            Version, where it is not the run's.
        """
        version = slurm or self.slurm
        namespace = fresh_namespace(f"{prefix}-{version.replace('.', '-')}")
        self.made.append(SlurmInKubernetes(self.kubectl, namespace, version, name))
        return self.made[-1]


def _said(look: Callable[[], str]) -> str:
    try:
        return look()
    except KubectlFailed as error:
        return str(error)


def fresh_namespace(prefix: str) -> str:
    """Return a name that no earlier run has used."""
    return f"{prefix}-{secrets.token_hex(3)}"
