"""The site that the campaign disturbs: a local Kubernetes, the operator, a Cluster with accounting, two NodeSets.

What an administrator does after a bad night is here, too: put the specs back, take cordons and drains off, release what
Slurm holds. What is wrong afterwards is left to :mod:`tests.campaign.verdict`.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hack.images import build as images
from hack.localkube.cluster import Cluster
from hack.localkube.errors import LocalKubeError
from hack.operator_install import Installation
from hack.progress import say
from tests.campaign.actions import BY_HAND, in_slurm
from tests.campaign.jobs import NODES, TEAM, WITNESS
from tests.campaign.witness import FIELDS
from tests.support.nodesets import whole
from tests.support.slurm_in_kubernetes import NEWEST, SlurmInKubernetes

NAME: Final = "campaign"
DOMAIN: Final = "slurm.example"
USERS: Final = "users"
PASSWD: Final = "alice:x:2001:2001::/tmp:/bin/sh\n"
GROUP: Final = "alice:x:2001:\n"
OWNED: Final = ("secrets", "configmaps", "services", "statefulsets", "poddisruptionbudgets", "persistentvolumeclaims")
"""What the operator makes under names that do not change."""

HASH: Final = re.compile(r"-[0-9a-f]{8}$")
"""End of a name that is another one when its owner is made again."""

SLURMS_OWN: Final = ("Duplicate jobid", "batch job complete failure", "Kill task failed", "Not responding")
"""Reasons of drains that Slurm itself makes, after slurmctld was killed, and an administrator takes off."""


BAD_CONDITIONS: Final = {
    ("Ready", "False"),
    ("ConfigApplied", "False"),
    ("AccountingReady", "False"),
    ("Degraded", "True"),
}
"""Of a Cluster that is not at rest."""


def lasting_name(kind: str, name: str) -> str:
    """The name of an object for a comparison of two times: it is the same after its owner was made again."""
    return f"{kind} {HASH.sub('-*', name)}"


@dataclass(frozen=True, slots=True)
class Site:
    """The site, up or not.

    Attributes
    ----------
    cluster, operator, slurm
        The local Kubernetes, the operator in it, and the Cluster.
    at_rest
        Names of objects in the namespace when all was calm.
    """

    cluster: Cluster
    operator: Installation
    slurm: SlurmInKubernetes
    at_rest: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, name: str = NAME) -> Site:
        """The site in a local Kubernetes of this name."""
        cluster = Cluster(name)
        return cls(cluster, Installation(cluster, replicas=2), SlurmInKubernetes(cluster.kubectl, NAME, NEWEST))

    @property
    def folder(self) -> Path:
        """What jobs see as `WITNESS`."""
        return self.cluster.paths.root / "witness"

    def up(self, patience: float) -> None:
        """Bring all of it up, and wait until it is at rest."""
        self.cluster.up(nodes=2, domain=DOMAIN)
        archives = images.ensure([f"slurm-{NEWEST}", "mariadb"], say)
        self.cluster.load_images([one for group in archives.values() for one in group])
        self.operator.install()
        self.folder.mkdir(exist_ok=True)
        self.folder.chmod(0o1777)
        self.slurm.create(**self._cluster_spec())
        self.cluster.kubectl.apply(
            [
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}},
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": USERS, "namespace": self.slurm.namespace},
                    "data": {"passwd": PASSWD, "group": GROUP},
                },
            ]
        )
        for name in NODES:
            self._put("NodeSet", name, self._nodeset_spec(name))
        left = self.settle(patience)
        if left:
            raise LocalKubeError(f"the site does not come to rest: {'; '.join(left)}")
        self.at_rest.update(self.objects())

    def _cluster_spec(self) -> dict[str, Any]:
        return {
            "accounting": {"mariadb": {"persistence": {"size": "1Gi"}}},
            "identity": {"passwd": {"configMapRef": {"name": USERS}}},
            "jobs": {"tenants": [{"namespaces": [TEAM], "user": "alice", "uid": 2001, "gid": 2001}]},
            "partitions": [{"name": "both", "nodeSets": [*NODES], "config": "Default=YES"}],
            "extraConf": "MinJobAge=3600\nLicenses=seat:3",
        }

    def _nodeset_spec(self, name: str) -> dict[str, Any]:
        volume = {"name": "witness", "hostPath": {"path": str(self.folder), "type": "Directory"}}
        mount = {"name": "slurmd", "volumeMounts": [{"name": "witness", "mountPath": WITNESS}]}
        return {
            "clusterName": self.slurm.name,
            "replicas": NODES[name],
            **({"features": ["fast"]} if name == "a" else {"gres": "craft:2"}),
            "image": self.slurm.image("slurmd"),
            "resources": {
                "requests": {"cpu": "10m", "memory": "64Mi"},
                "limits": {"cpu": "2", "memory": "512Mi"},
            },
            "template": {"spec": {"volumes": [volume], "containers": [mount]}},
        }

    # What an administrator does

    def restore(self) -> list[str]:
        """Put back what users have changed, as far as it can be now; returns what was done beyond that."""
        slurm, done = self.slurm, []
        for node in self.cluster.kubectl.get("nodes")["items"]:
            if node["spec"].get("unschedulable"):
                self.cluster.kubectl("uncordon", node["metadata"]["name"])
        own = {"controller": {"image": slurm.image("slurmctld")}, "restapi": {"image": slurm.image("slurmrestd")}}
        spec = {**own, **self._cluster_spec()}
        spec["accounting"] = {"image": slurm.image("slurmdbd"), **spec["accounting"]}
        self._put("Cluster", slurm.name, spec)
        for name in NODES:
            self._put("NodeSet", name, self._nodeset_spec(name))
        for line in slurm.control("sinfo", "--noheader", "--Node", "--format=%N|%T|%E").splitlines():
            node, state, reason = line.split("|", 2)
            by_slurm = any(one in reason for one in SLURMS_OWN)
            if state.startswith(("drain", "down")) and (reason == BY_HAND or by_slurm):
                done += [f"{node} was {state}: {reason}"] * by_slurm
                in_slurm(
                    slurm, "scontrol", "update", f"nodename={node}", f"state={'resume' if by_slurm else 'undrain'}"
                )
        for numbers in self._forgotten():
            done.append(f"slurmctld has forgotten the end of {numbers}")
            in_slurm(slurm, "scancel", *numbers)
        for job, state, reason in self._jobs():
            if state == "PENDING" and "held" in reason.lower():
                done += [f"job {job} was held: {reason}"] * (reason != "JobHeldUser")
                in_slurm(slurm, "scontrol", "release", job)
            if state == "SUSPENDED":
                in_slurm(slurm, "scontrol", "resume", job)
        return done

    def _forgotten(self) -> Iterator[list[str]]:
        """Jobs that the operator says an administrator has to cancel."""
        for obj in self.slurm.get("nodesets.slinky.slurm.net")["items"]:
            for one in obj.get("status", {}).get("conditions", ()):
                if one["type"] == "Degraded" and one["reason"] == "JobEndForgotten":
                    yield from (found.split() for found in re.findall(r"scancel ([\d ]+) ends", one["message"]))

    def _put(self, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        """Let an object have exactly this spec; one that is being deleted is made again when it has gone."""
        found = next((one for one in self.slurm.get(f"{kind.lower()}s.slinky.slurm.net")["items"]
                      if one["metadata"]["name"] == name), None)  # fmt: skip
        if found is None:
            self.slurm.kubectl.apply([self.slurm.object(kind, name, spec)])
        elif "deletionTimestamp" not in found["metadata"] and found["spec"] != spec:
            operations = json.dumps([{"op": "replace", "path": "/spec", "value": spec}])
            self.slurm.kube("patch", kind.lower(), name, "--type=json", f"--patch={operations}")

    def _jobs(self) -> Iterator[tuple[str, str, str]]:
        for line in self.slurm.control("squeue", "--all", "--noheader", "--format=%i|%T|%r").splitlines():
            job, state, reason = line.split("|", 2)
            yield job, state, reason

    def tidy(self) -> None:
        """Delete what users would delete after a look at it."""
        self.cluster.kubectl("delete", "slurmjobs.slinky.slurm.net", "--all", f"--namespace={TEAM}", "--wait=false")

    def _slurm_jobs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cluster.kubectl.get("slurmjobs.slinky.slurm.net", "--namespace", TEAM)[
            "items"
        ]
        return found

    # What is looked at

    def settle(self, patience: float, note: Callable[[str], None] = say) -> list[str]:
        """Wait until all is at rest; returns what is not, when that takes too long.

        Parameters
        ----------
        note
            Is told what an administrator had to do for it, beyond putting specs back.
        """
        deadline = time.monotonic() + patience
        while True:
            try:
                left = [*self._restless()]
            except (LocalKubeError, ValueError, KeyError) as error:
                left = [f"no look: {error}"]
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(2)
            try:
                for one in self.restore():
                    note(one)
            except (LocalKubeError, ValueError, KeyError) as error:
                left.append(f"not put back: {error}")

    def _restless(self) -> Iterator[str]:
        yield from self._restless_objects()
        yield from self._restless_slurm()
        for one in self._slurm_jobs():
            state = one.get("status", {}).get("state", "no state")
            if state not in {"Succeeded", "Failed"}:
                yield f"SlurmJob {one['metadata']['name']}: {state}"
        pods = self.operator.pods().values()
        ready = [
            all(one["ready"] for one in pod["status"].get("containerStatuses", [{"ready": False}])) for pod in pods
        ]
        if ready != [True] * self.operator.replicas:
            yield f"operator: {ready.count(True)} replicas are ready"

    def _restless_objects(self) -> Iterator[str]:
        slurm = self.slurm
        status = slurm.get("cluster", slurm.name).get("status", {})
        for one in status.get("conditions", ()):
            if (one["type"], one["status"]) in BAD_CONDITIONS:
                yield f"Cluster: {one['type']} is {one['status']}: {one['reason']}: {one['message']}"
        if not status.get("isReady"):
            yield "Cluster: not ready"
        objects = {one["metadata"]["name"]: one for one in slurm.get("nodesets.slinky.slurm.net")["items"]}
        for name, count in NODES.items():
            if name not in objects or not whole(slurm, name, count):
                conditions = objects.get(name, {}).get("status", {}).get("conditions", ())
                said = [f"{one['type']}={one['status']} {one['reason']}: {one['message']}" for one in conditions]
                yield f"NodeSet {name}: not whole: {'; '.join(said)}"

    def _restless_slurm(self) -> Iterator[str]:
        states = self.slurm.states()
        wanted = {f"{name}-{number}" for name, count in NODES.items() for number in range(count)}
        for node in sorted(wanted | set(states)):
            if states.get(node) != "idle" or node not in wanted:
                yield f"node {node}: {states.get(node, 'absent')}: {self.slurm.reason(node) if node in states else ''}"
        for job, state, reason in self._jobs():
            yield f"job {job}: {state} {reason}"

    def objects(self) -> Counter[str]:
        """Names of what the operator keeps in the namespace, and of slurmd pods; a hash in them is left out."""
        found = Counter(f"pod {name}" for name in self.slurm.slurmd_pods())
        for kind in OWNED:
            found.update(lasting_name(kind, one["metadata"]["name"]) for one in self.slurm.get(kind)["items"])
        return found

    def records(self) -> str:
        """What slurmdbd has of all jobs."""
        return in_slurm(
            self.slurm, "sacct", "--noheader", "--parsable2", "--allocations", "--allusers", "--duplicates",
            "--starttime=now-1days", f"--format={','.join(FIELDS)}", timeout=60,
        )  # fmt: skip
