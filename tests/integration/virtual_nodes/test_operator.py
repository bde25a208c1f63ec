"""Virtual Nodes by the operator as its charts run it, with the controllers of Kubernetes and a fake slurmrestd.

Pods name their Node, since there is no kube-scheduler. The operator has the rights of both charts and no others.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hack import ports
from hack.localkube.kubectl import wait_for
from hack.packaging.render import ROOT, render
from slinky_api import labels
from slurm_client.testing import FakeSlurmrestd
from slurm_client.testing.threaded import running as fake_running
from tests.support import audit, control_plane, deployed_operator, service_account
from tests.support.control_plane import ControlPlane
from tests.support.served import apply_crds, apply_job_crds, wait_until_allowed

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]

PATIENCE = 120
OPERATOR, TEAM = "slurm-operator", "team"
NODE = "slurm-site-main"
KEY = b"k" * 32


class Site:
    """A cluster whose Slurm has the partitions all and main."""

    def __init__(self, plane: ControlPlane, slurm: FakeSlurmrestd, folder: Path) -> None:
        self.plane, self.slurm, self.folder = plane, slurm, folder
        self.kubectl = plane.kubectl
        self.user = service_account.user_of(OPERATOR)
        self._log = folder / "operator.log"
        self._stack = ExitStack()
        values = {"jobs": {"enabled": True}, "virtualNodes": {"clusters": [f"{TEAM}/slurm"]}}
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
                environment={"SLURM_OPERATOR_VIRTUAL_NODES_ADDRESS": "127.0.0.1"},
            )
        )
        self.until("the operator is ready", lambda: deployed_operator.fetch(f"{url}/readyz").rstrip().endswith("\nok"))

    def stop(self) -> None:
        """End the operator."""
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
        self.kubectl.apply([_pod(name, **spec)])
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


def _pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": TEAM}, "spec": _spec(**spec)}


def _spec(**more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "no-image", "command": ["sleep", "600"]}
    return {"nodeName": NODE, "restartPolicy": "Never", "containers": [container], **more}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("operator")
    with control_plane.running("virtual-nodes", controllers=True) as plane, fake_running(key=KEY) as slurm:
        slurm.world.add_partition("main")
        for number in range(4):
            slurm.add_node(f"w-{number}", cpus=8)
        made = Site(plane, slurm, folder)
        made.install()
        made.start()
        try:
            made.until("the Node", lambda: made.find("node", NODE))
            yield made
        finally:
            made.stop()


def is_ready(site: Site) -> bool:
    """Whether Kubernetes takes the Node for ready, and lets pods onto it."""
    node = site.find("node", NODE)
    taints = {one["key"] for one in node.get("spec", {}).get("taints", ())}
    conditions = {one["type"]: one["status"] for one in node.get("status", {}).get("conditions", ())}
    return conditions.get("Ready") == "True" and taints == {"virtual-kubelet.io/provider"}


def test_a_node_is_ready_and_comes_back(site: Site) -> None:
    site.until("the Node is ready", lambda: is_ready(site))
    node = site.find("node", NODE)
    assert node["spec"]["providerID"] == f"slurm://{NODE}"
    assert node["metadata"]["labels"][labels.LABEL_VIRTUAL_NODE] == "main"
    site.kubectl("delete", "node", NODE, "--wait=false")
    uid = node["metadata"]["uid"]
    site.until("another Node", lambda: site.find("node", NODE).get("metadata", {}).get("uid", uid) != uid)
    site.until("it is ready", lambda: is_ready(site))


def test_a_bare_pod_runs_as_a_job(site: Site) -> None:
    _ = site.pod("ends")
    pod, number = site.runs("ends")
    (owner,) = site.job_of(pod["metadata"]["uid"])["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Pod", pod["metadata"]["uid"])
    (container,) = pod["status"]["containerStatuses"]
    assert (container["ready"], container["containerID"]) == (True, f"slurm://{number}")
    _ = site.slurm.world.finish_job(number)
    site.until("the pod has succeeded", lambda: site.phase("ends") == "Succeeded")
    site.until("its finalizer is gone", lambda: not site.find("pod", "ends")["metadata"].get("finalizers"))
    site.kubectl("delete", "pod", "ends", "-n", TEAM, "--wait=false")
    site.until("the pod has gone", lambda: not site.find("pod", "ends"))


@pytest.mark.parametrize("options", [(), ("--grace-period=0", "--force")], ids=["usual", "by force"])
def test_a_pod_that_is_deleted_takes_its_job_along(site: Site, options: tuple[str, ...]) -> None:
    _ = site.pod("goes")
    pod, number = site.runs("goes")
    site.kubectl("delete", "pod", "goes", "-n", TEAM, "--wait=false", *options)
    site.until("the pod has gone", lambda: not site.find("pod", "goes"))
    site.until("the job is cancelled", lambda: site.state(number) == "CANCELLED")
    site.until("the SlurmJob has gone", lambda: not site.job_of(pod["metadata"]["uid"]))


def test_nothing_is_written_while_nothing_changes(site: Site) -> None:
    _ = site.pod("rests")
    _, number = site.runs("rests")
    site.until("the Node is ready", lambda: is_ready(site))

    def seen() -> tuple[list[tuple[str, str, str]], str, str]:
        pod, node = site.find("pod", "rests"), site.find("node", NODE)
        return site.writes(), pod["metadata"]["resourceVersion"], node["metadata"]["resourceVersion"]

    def a_while() -> None:
        """Until Slurm was asked again for its partitions, and the Lease renewed."""
        asked, renewed = len(site.slurm.calls("get_partitions")), site.renewed()
        site.until("Slurm is asked again", lambda: len(site.slurm.calls("get_partitions")) > asked)
        site.until("the Lease is renewed", lambda: site.renewed() != renewed)

    a_while()
    before = seen()
    a_while()
    assert seen() == before
    _ = site.slurm.world.finish_job(number)
    site.until("the pod has succeeded", lambda: site.phase("rests") == "Succeeded")


def test_an_indexed_job_completes(site: Site) -> None:
    spec = {"completions": 3, "parallelism": 2, "completionMode": "Indexed", "template": {"spec": _spec()}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "many", "namespace": TEAM}, "spec": spec}
    site.kubectl.apply([job])

    def is_complete() -> bool:
        for number, one in list(site.slurm.world.jobs.items()):
            if one.state.base == "RUNNING":
                _ = site.slurm.world.finish_job(number)
        conditions = site.find("job", "many").get("status", {}).get("conditions", ())
        return any((one["type"], one["status"]) == ("Complete", "True") for one in conditions)

    site.until("the Job is complete", is_complete)
    assert site.find("job", "many")["status"]["completedIndexes"] == "0-2"
    pods = site.kubectl.get("pods", "-n", TEAM, "-l", "job-name=many")["items"]
    assert len(pods) == 3


def is_left(site: Site, uid: str) -> bool:
    """Whether the SlurmJob of a pod goes on without it."""
    about = site.job_of(uid).get("metadata", {})
    return labels.ANNOTATION_VIRTUAL_POD_LEFT in about.get("annotations", {}) and not about.get("ownerReferences")


def test_a_pod_that_a_taint_deletes_leaves_its_job(site: Site) -> None:
    _ = site.pod("tainted")
    pod, number = site.runs("tainted")
    site.kubectl("taint", "node", NODE, "site/works=here:NoExecute")
    try:
        site.until("the pod has gone", lambda: not site.find("pod", "tainted"))
    finally:
        site.kubectl("taint", "node", NODE, "site/works-")
    assert is_left(site, pod["metadata"]["uid"])
    assert site.state(number) == "RUNNING"


def test_the_rights_of_the_charts_suffice(site: Site) -> None:
    """The last test: of all that the others have made the operator do, nothing was refused."""
    asked = [one for one in audit.writes(site.plane.audit_log) if one.user == site.user]
    assert {("nodes", 201)} <= {(one.resource, one.code) for one in asked}
    assert not [one for one in asked if one.code == 403]
    assert "orbidden" not in site.said()
