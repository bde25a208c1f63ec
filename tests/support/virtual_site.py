"""A cluster with virtual Nodes: the operator as its charts run it, Kubernetes' controllers, and a fake slurmrestd."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from hack.localkube.kubectl import wait_for
from hack.machine import ports
from hack.packaging.render import ROOT, render
from slurm_client.testing import FakeSlurmrestd
from slurm_client.testing.threaded import running as fake_running
from tests.support import audit, control_plane, deployed_operator, service_account
from tests.support.control_plane import ControlPlane
from tests.support.host_address import host_address
from tests.support.served import apply_crds, apply_job_crds, wait_until_allowed

PATIENCE = 240
OPERATOR, TEAM = "slurm-operator", "team"
NODE = "slurm-site-main"
KEY = b"k" * 32
POD = "slurm-operator-1"


class VirtualSite:
    """A cluster whose Slurm has the partitions all and main."""

    def __init__(self, plane: ControlPlane, slurm: FakeSlurmrestd, folder: Path, address: str) -> None:
        self.plane, self.slurm, self.folder, self.address = plane, slurm, folder, address
        self.kubectl = plane.kubectl
        self.user = service_account.user_of(OPERATOR)
        self._log = folder / "operator.log"
        self._stack = ExitStack()
        values = {"jobs": {"enabled": True}, "virtualNodes": {"clusters": [f"{TEAM}/slurm", f"{TEAM}/younger"]}}
        self._objects = render(values=values, namespace=OPERATOR)
        self._rights = render(
            ROOT / "helm" / "slurm-virtual-nodes", {"policy": {"hosts": ["site"]}}, release="slurm-virtual-nodes"
        )

    def install(self) -> None:
        """Both charts, and the Cluster."""
        for namespace in (OPERATOR, TEAM):
            self.kubectl("create", "namespace", namespace)
        apply_crds(self.kubectl)
        apply_job_crds(self.kubectl)
        self.kubectl.apply(self._objects)
        self.kubectl.apply(self._rights)
        for verb, resource in (("create", "pods"), ("create", "nodes"), ("patch", "pods/status")):
            wait_until_allowed(self.kubectl, self.user, verb, resource, TEAM)
        # No kubelet: it stands for the process that this test starts.
        spec = {"serviceAccountName": OPERATOR, "containers": [{"name": "operator", "image": "x"}]}
        about = {"name": POD, "namespace": OPERATOR}
        self.kubectl.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}])
        status = {"status": {"podIP": self.address, "podIPs": [{"ip": self.address}]}}
        self.kubectl("patch", "pod", POD, "-n", OPERATOR, "--subresource=status", "-p", json.dumps(status))
        own = {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": "Cluster"}
        consent = {"cluster.slinky.slurm.net/server": self.slurm.url}
        self.kubectl.apply(
            [
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": "jwt", "namespace": TEAM, "annotations": consent},
                    "data": {"jwt_hs256.key": base64.b64encode(KEY).decode()},
                },
                {
                    **own,
                    "metadata": {"name": "slurm", "namespace": TEAM},
                    "spec": {
                        "server": self.slurm.url,
                        "auth": {"jwtKeyRef": {"name": "jwt"}},
                        "jobs": {
                            "tenants": [{"namespaces": [TEAM], "user": "alice"}],
                            "virtualNodes": {"host": "site"},
                        },
                    },
                },
            ]
        )

    def said(self) -> str:
        """The operator's log."""
        return self._log.read_text()

    def start(self) -> None:
        """Run the operator."""
        kubeconfig = service_account.kubeconfig_of(
            self.kubectl, self.plane.kubeconfig, OPERATOR, self.folder / "kubeconfig"
        )
        url = self._stack.enter_context(
            deployed_operator.running(
                deployed_operator.arguments_of(self._objects),
                kubeconfig,
                OPERATOR,
                self._log,
                instead={"--virtual-nodes-port": str(ports.hold(1)[0])},
                environment={
                    "SLURM_OPERATOR_VIRTUAL_NODES_ADDRESS": self.address,
                    "SLURM_OPERATOR_VIRTUAL_NODES_POD": POD,
                },
            )
        )
        self.until("the operator is ready", lambda: deployed_operator.fetch(f"{url}/readyz").rstrip().endswith("\nok"))

    def stop(self) -> None:
        """End the operator, also one that never became ready."""
        self._stack.close()

    def until(self, what: str, holds: Callable[[], Any], poll: float = 0.2) -> None:
        """Wait; what the operator has said is in the failure."""
        try:
            wait_for(what, lambda: bool(holds()), PATIENCE, poll)
        except Exception as error:
            shown = self.kubectl("get", "nodes,pods,slurmjobs,clusters.slinky.slurm.net", "-n", TEAM, "-o", "yaml")
            raise AssertionError(f"{error}\n{shown}\n{self.said()[-8000:]}") from error

    def find(self, kind: str, name: str) -> dict[str, Any]:
        """An object; empty if there is none."""
        shown = self.kubectl("get", kind, name, "-n", TEAM, "--ignore-not-found", "-o", "json")
        found: dict[str, Any] = json.loads(shown or "{}")
        return found

    def pod(self, name: str, **spec: Any) -> dict[str, Any]:
        """Make a pod on the Node."""
        self.kubectl.apply([pod_body(name, **spec)])
        return self.find("pod", name)

    def phase(self, name: str) -> str:
        """Phase of a pod; empty if there is none."""
        found: str = self.find("pod", name).get("status", {}).get("phase", "")
        return found

    def job_of(self, uid: str) -> dict[str, Any]:
        """The SlurmJob that was made for a pod."""
        return self.find("slurmjob", f"pod-{uid}")

    def runs(self, name: str) -> tuple[dict[str, Any], int]:
        """Wait until a pod runs; gives it, and the number of its job."""
        self.until(f"pod {name} runs", lambda: self.phase(name) == "Running")
        pod = self.find("pod", name)
        return pod, int(self.job_of(pod["metadata"]["uid"])["status"]["jobId"])

    def state(self, number: int) -> str:
        """State of a job in Slurm."""
        return str(self.slurm.world.jobs[number].state.base)

    def writes(self) -> list[tuple[str, str, str]]:
        """What the operator has written of Nodes, pods and SlurmJobs, also if nothing changed by it."""
        of_interest = {"nodes", "pods", "slurmjobs", "clusters"}
        return [
            (one.verb, one.resource, one.name)
            for one in audit.writes(self.plane.audit_log)
            if one.user == self.user and one.resource.partition("/")[0] in of_interest
        ]

    def renewed(self) -> str:
        """When the Node's Lease was renewed last; empty while it has none, as after a Node was made again."""
        path = "jsonpath={.spec.renewTime}"
        return self.kubectl("get", "lease", NODE, "-n", "kube-node-lease", "--ignore-not-found", "-o", path)


def pod_body(name: str, **spec: Any) -> dict[str, Any]:
    """A pod on the Node."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": TEAM},
        "spec": pod_spec(**spec),
    }


def pod_spec(**more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "no-image", "command": ["sleep", "600"]}
    return {"nodeName": NODE, "restartPolicy": "Never", "containers": [container], **more}


def is_ready(site: VirtualSite) -> bool:
    """Whether Kubernetes takes the Node for ready, and lets pods onto it."""
    node = site.find("node", NODE)
    taints = {one["key"] for one in node.get("spec", {}).get("taints", ())}
    conditions = {one["type"]: one["status"] for one in node.get("status", {}).get("conditions", ())}
    return conditions.get("Ready") == "True" and taints == {"virtual-kubelet.io/provider"}


@contextmanager
def running(folder: Path, *, scheduler: bool = False) -> Iterator[VirtualSite]:
    """Run all of it; the Node of partition main is there."""
    with (
        control_plane.running("virtual-nodes", controllers=True, scheduler=scheduler) as plane,
        fake_running(key=KEY) as slurm,
        host_address() as address,
    ):
        slurm.world.add_partition("main")
        for number in range(4):
            slurm.add_node(f"w-{number}", cpus=8)
        made = VirtualSite(plane, slurm, folder, address)
        made.install()
        try:
            made.start()
            made.until("the Node", lambda: made.find("node", NODE))
            yield made
        finally:
            made.stop()
