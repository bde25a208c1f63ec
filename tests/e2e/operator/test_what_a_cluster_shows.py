"""The output of `kubectl get` and `describe` for a Cluster in each situation of docs/troubleshooting.md."""

from __future__ import annotations

import json
import logging
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.localkube.kubectl import Kubectl, wait_for
from kubectl_slurm.commands.verify import kubernetes as verify_kubernetes
from slinky_api import labels
from slinky_operator.kube.objects import is_ready
from tests.support import plugin, processes
from tests.support.configuring import edit, wait_live, wait_reason
from tests.support.plugin import Editor
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.full]

logger = logging.getLogger(__name__)

NOWHERE = "localhost/slinky/nowhere:1"
KIND = "clusters.slinky.slurm.net"
CLAIM = "state-slurm-controller-0"
SERVER = "http://nowhere.example:6820"
STAYS_DOWN = "ReturnToService=1"
"""With the operator's default of 2 a node that is set DOWN comes back at slurmctld's next ping."""


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm, kubectl: Kubectl) -> SlurmInKubernetes:
    """A Cluster with two nodes; beside it one with a bad image, one that fits no Node, and one nowhere."""
    instance = new_slurm("shown")
    instance.create(extraConf=STAYS_DOWN)
    instance.nodeset("compute", 2)
    good, unplaced = instance.image("slurmctld"), {"spec": {"nodeSelector": {"nosuch": "label"}}}
    secret: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "token",
            "namespace": instance.namespace,
            "annotations": {"cluster.slinky.slurm.net/server": SERVER},
        },
        "stringData": {"auth-token": "abc"},
    }
    elsewhere = {"server": SERVER, "token": {"secretRef": {"name": "token", "key": "auth-token"}}}
    kubectl.apply(
        [
            instance.object("Cluster", "bad-image", {"controller": {"image": NOWHERE}}),
            instance.object("Cluster", "unplaced", {"controller": {"image": good, "template": unplaced}}),
            secret,
            instance.object("Cluster", "elsewhere", elsewhere),
        ]
    )
    instance.wait_ready()
    instance.wait_idle(["compute-0", "compute-1"])
    return instance


def wait_shown(slurm: SlurmInKubernetes, summary: str, *, ready: bool) -> None:
    """Wait for the status text, and log all that is shown then."""

    def shown() -> bool:
        status = slurm.get("cluster", slurm.name).get("status", {})
        return bool(status.get("summary") == summary and status.get("isReady") is ready)

    wait_for(f"Cluster {slurm.name}: {summary}", shown, PATIENCE)
    logger.info("%s\n%s", slurm.kube("get", KIND, slurm.name), slurm.kube("describe", KIND, slurm.name))


def wait_words(slurm: SlurmInKubernetes, condition: str, *words: str | tuple[str, ...]) -> None:
    """Wait until a condition says these words; of a tuple, one of them."""

    def said() -> bool:
        message = slurm.condition("cluster", slurm.name, condition)["message"]
        return all(any(one in message for one in ([word] if isinstance(word, str) else word)) for word in words)

    wait_for(f"{condition} of {slurm.name}: {words}", said, PATIENCE)


def test_one_that_is_fine_runs(slurm: SlurmInKubernetes) -> None:
    wait_shown(slurm, "Running", ready=True)
    wait_words(slurm, "Ready", "slurmctld and slurmrestd answer")
    assert slurm.condition("cluster", slurm.name, "NodesOutOfService")["status"] == "False"


def test_a_refused_configuration_leaves_it_ready(slurm: SlurmInKubernetes) -> None:
    since = slurm.condition("cluster", slurm.name, "Ready")["lastTransitionTime"]
    wait_reason(slurm, edit(slurm, extraConf=f"{STAYS_DOWN}\nBogus=1"), "ConfigRefused", "unrecognized key: Bogus")
    wait_shown(slurm, "Running, configuration refused", ready=True)
    wait_live(slurm, edit(slurm, extraConf=STAYS_DOWN))
    wait_shown(slurm, "Running", ready=True)
    assert slurm.condition("cluster", slurm.name, "Ready")["lastTransitionTime"] == since


@pytest.fixture(scope="module")
def editor(slurm: SlurmInKubernetes, kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """An ordinary editor of the namespace, and of another one."""
    other = f"{slurm.namespace}-other"
    kubectl("create", "namespace", other)
    yield plugin.editor(kubectl, tmp_path_factory.mktemp("editor"), slurm.namespace, other)
    kubectl("delete", "namespace", other, "--wait=false")


def test_an_editor_asks_slurm_before_a_change(slurm: SlurmInKubernetes, editor: Editor, tmp_path: Path) -> None:
    cluster, file = slurm.object("Cluster", slurm.name, {}), tmp_path / "cluster.yaml"
    spec = slurm.get("cluster", slurm.name)["spec"]

    def asked(extra: str, code: int) -> str:
        file.write_text(yaml.safe_dump({**cluster, "spec": {**spec, "extraConf": f"{STAYS_DOWN}\n{extra}"}}))
        return editor.run("preflight", "-f", str(file), "--timeout=600", code=code)

    shown = asked("Bogus=1", 1)
    assert "Slurm of Cluster slurm would refuse the configuration" in shown
    assert "unrecognized key: Bogus" in shown
    assert "Slurm of Cluster slurm would take the configuration" in asked("SchedulerTimeSlice=31", 0)
    assert "kubectl-slurm-" not in slurm.kube("get", "pods,configmaps,tokens", "--output=name")
    assert slurm.get("cluster", slurm.name)["spec"] == spec


def test_an_editor_verifies_a_cluster(slurm: SlurmInKubernetes, editor: Editor) -> None:
    slurm.wait_idle(["compute-0", "compute-1"])
    asked = ("verify", f"--cluster={slurm.name}", f"--other-namespace={slurm.namespace}-other")
    found = {one["name"]: one for one in json.loads(editor.run(*asked, "--timeout=240", "--output=json"))}
    logger.info("%s", json.dumps(found, indent=1))
    left_out = {name: one["detail"] for name, one in found.items() if one["verdict"] != "passed"}
    assert left_out == {
        "a job sees no more CPUs than it has": "no partition has only nodes of NodeSets with confinement: Constrain",
        "a job with one GPU sees one": "no GPUs, not checked",
        verify_kubernetes.NODE_CORDON: "name a Kubernetes node with --cordon-node; it needs the right to patch nodes",
    }
    assert found[verify_kubernetes.USERS]["detail"].endswith("in 3 daemons")
    assert not slurm.drained_nodes()


def test_an_editor_reads_the_output_of_a_job(slurm: SlurmInKubernetes, editor: Editor) -> None:
    script = "--wrap=echo from the job; echo from its errors >&2; sleep 600"
    files = ("--output=/tmp/%j.out", "--error=/tmp/%j.err")
    job = slurm.run("sbatch", "--parsable", "--chdir=/tmp", *files, script).strip()
    slurm.submitted.append(job)
    slurm.wait_job(job, "RUNNING")
    asked = ("logs", f"job/{job}", f"--cluster={slurm.name}")
    # The script may still be on its way.
    wait_for("its output", lambda: editor.run(*asked) == "from the job\n", PATIENCE)
    wait_for("its errors", lambda: editor.run(*asked, "--stderr") == "from its errors\n", PATIENCE)
    assert job in editor.run("logs", f"job/{job}", "--about", f"--cluster={slurm.name}")
    slurm.control("scancel", job)
    slurm.wait_idle(["compute-0", "compute-1"])


def test_nodes_that_somebody_drained_or_set_down_are_named(slurm: SlurmInKubernetes) -> None:
    slurm.control("scontrol", "update", "nodename=compute-0", "state=drain", "reason=disk is loud")
    wait_words(slurm, "NodesOutOfService", "1 node drained by others: compute-0 (IDLE+DRAIN: disk is loud, set by ")
    slurm.control("scontrol", "update", "nodename=compute-1", "state=down", "reason=gone")
    wait_words(slurm, "NodesOutOfService", "1 node down, 1 node drained by others: compute-1 (DOWN: gone, set by ")
    wait_shown(slurm, "Running, 1 node down", ready=True)
    slurm.wait_event(slurm.name, "NodeDown", "compute-1 (DOWN: gone")
    nodes = slurm.get("cluster", slurm.name)["status"]["nodes"]
    assert (nodes["total"], nodes["down"], nodes["drain"]) == (2, 1, 1)
    slurm.control("scontrol", "update", "nodename=compute-[0-1]", "state=resume")
    slurm.wait_idle(["compute-0", "compute-1"])
    wait_shown(slurm, "Running", ready=True)


def test_one_of_two_slurmrestds_that_hangs_stops_nothing_and_leaves_the_service(slurm: SlurmInKubernetes) -> None:
    edit(slurm, restapi={"replicas": 2})
    wait_for("two slurmrestds", lambda: len(slurmrestds(slurm, ready=True)) == 2, PATIENCE)
    budget = slurm.get("poddisruptionbudget", f"{slurm.name}-restapi")["spec"]
    assert budget["maxUnavailable"] == 1
    # Whichever the operator calls now, it is frozen in one of the two turns.
    for number, hanging in enumerate(slurmrestds(slurm, ready=True)):
        processes.send(hanging, "slurmrestd -a", signal.SIGSTOP)
        try:
            slurm.scale("compute", 1 + number)
            slurm.wait_seen("compute", replicas=1 + number, readyReplicas=1 + number)
            if number == 1:
                wait_for("it leaves the Service", lambda: len(slurmrestds(slurm, ready=True)) == 1, PATIENCE)
                assert slurm.condition("cluster", slurm.name, "Ready")["status"] == "True"
        finally:
            processes.send(hanging, "slurmrestd -a", signal.SIGCONT)
    wait_for("both answer", lambda: len(slurmrestds(slurm, ready=True)) == 2, PATIENCE)
    slurm.wait_idle(["compute-0", "compute-1"])


def slurmrestds(slurm: SlurmInKubernetes, *, ready: bool) -> list[dict[str, Any]]:
    """Pods of this Cluster's slurmrestd that are ready, or not."""
    of_cluster = f"app.kubernetes.io/component=restapi,{labels.LABEL_CLUSTER_NAME}={slurm.name}"
    pods = slurm.get("pods", f"--selector={of_cluster}")["items"]
    return [pod for pod in pods if is_ready(pod) is ready]


def test_a_slurmctld_whose_image_is_missing_names_it(slurm: SlurmInKubernetes) -> None:
    bad = replace(slurm, name="bad-image")
    wait_words(bad, "Ready", "pod bad-image-controller-0 does not start: slurmctld: ImagePullBackOff: image " + NOWHERE)
    wait_shown(bad, "slurmctld: ImagePullBackOff", ready=False)


def test_a_slurmctld_without_a_node_shows_the_schedulers_words(slurm: SlurmInKubernetes) -> None:
    unplaced = replace(slurm, name="unplaced")
    wait_words(unplaced, "Ready", "unplaced-controller-0 does not start: not scheduled", "node affinity/selector")
    wait_shown(unplaced, "slurmctld: Unschedulable", ready=False)


def test_a_slurm_that_is_not_there_is_named_with_its_address(slurm: SlurmInKubernetes) -> None:
    elsewhere = replace(slurm, name="elsewhere")
    # What is seen first stays: where DNS takes its time, that is a call without an answer.
    wait_words(elsewhere, "ApiReachable", ("cannot connect", "no answer within"))
    wait_shown(elsewhere, "slurmrestd does not answer", ready=False)


def test_a_slurmctld_that_waits_for_a_claim_that_is_being_deleted_says_so(slurm: SlurmInKubernetes) -> None:
    hold = json.dumps({"metadata": {"finalizers": ["example.com/hold"]}})
    slurm.kube("patch", "pvc", CLAIM, "--type=merge", f"--patch={hold}")
    slurm.kube("delete", "pvc", CLAIM, "--wait=false")
    slurm.kube("delete", "pod", f"{slurm.name}-controller-0", "--wait=false")
    wait_words(slurm, "Ready", f"slurmctld has no pod: its claim {CLAIM} has been marked for deletion at ")
    wait_shown(slurm, "slurmctld: ClaimTerminating", ready=False)
    slurm.kube("patch", "pvc", CLAIM, "--type=merge", "--patch=" + json.dumps({"metadata": {"finalizers": None}}))
    wait_shown(slurm, "Running", ready=True)
