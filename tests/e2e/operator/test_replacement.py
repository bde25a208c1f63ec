"""slurmctld's pod is replaced only by one that starts: if it cannot, the cause is reported, and slurmctld stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hack.localkube.kubectl import Kubectl, wait_for
from tests.support.configuring import edit, shows, wait_live
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.long, pytest.mark.full]

CLAIM = {"spec": {"volumes": [{"name": "more", "persistentVolumeClaim": {"claimName": "unbound"}}]}}
NOWHERE = "localhost/slinky/nowhere:1"
SIDECAR = {"name": "side", "image": "localhost/slinky/busybox:1", "command": ["sleep", "infinity"]}
BETTER = {"spec": {"containers": [{"name": "slurmctld", "env": [{"name": "BETTER", "value": "yes"}]}, SIDECAR]}}


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm, kubectl: Kubectl) -> SlurmInKubernetes:
    """A Cluster with one node, and a claim that nobody binds."""
    instance = new_slurm("replaced")
    instance.create(extraConf="KillWait=5")
    instance.nodeset("compute", 1)
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "16Mi"}}}
    metadata = {"name": "unbound", "namespace": instance.namespace}
    kubectl.apply([{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}])
    instance.wait_ready()
    instance.wait_idle(["compute-0"])
    return instance


def controller(slurm: SlurmInKubernetes) -> str:
    """The uid of slurmctld's pod; empty while there is none."""
    items = slurm.get("pods", f"--field-selector=metadata.name={slurm.name}-controller-0")["items"]
    return str(items[0]["metadata"]["uid"]) if items else ""


def wait_said(slurm: SlurmInKubernetes, condition: str, reason: str, *words: str) -> dict[str, Any]:
    """Wait until a condition of the Cluster has this reason and these words."""

    def said() -> bool:
        found = slurm.condition("cluster", slurm.name, condition)
        return found["reason"] == reason and all(word in found["message"] for word in words)

    wait_for(f"{condition} {reason}: {words}", said, PATIENCE)
    return slurm.condition("cluster", slurm.name, condition)


def wait_serving(slurm: SlurmInKubernetes) -> None:
    """Wait for a slurmctld that has just taken another's place: the status may not have noticed yet."""
    wait_for("slurmctld answers", lambda: "UP" in slurm.control("scontrol", "ping"), PATIENCE)
    slurm.wait_ready()


def test_what_would_not_come_up_replaces_nothing_and_what_does_leaves_the_job(slurm: SlurmInKubernetes) -> None:
    second = replace(slurm, name="second")
    second.create(controller={"image": slurm.image("slurmctld"), "template": CLAIM})
    job, before = slurm.hold("compute-0"), controller(slurm)

    edit(slurm, controller={"template": CLAIM})
    wait_said(slurm, "Degraded", "ReplacementHeldBack", "spec.controller.template", "PersistentVolumeClaim")
    slurm.wait_event(slurm.name, "ReplacementHeldBack", "PersistentVolumeClaim")
    # Changes of the configuration go on meanwhile.
    wait_live(slurm, edit(slurm, extraConf="KillWait=6"))
    assert shows(slurm, "KillWait = 6 sec")
    assert controller(slurm) == before

    edit(slurm, controller={"template": None, "image": NOWHERE})
    wait_said(slurm, "Degraded", "ReplacementHeldBack", "spec.controller.image", NOWHERE)
    assert controller(slurm) == before
    assert slurm.get("cluster", slurm.name)["status"]["isReady"] is True
    assert slurm.job_state(job) == "RUNNING"

    edit(slurm, controller={"template": BETTER, "image": slurm.image("slurmctld")})
    wait_for("another slurmctld", lambda: controller(slurm) not in {"", before}, PATIENCE)
    wait_serving(slurm)
    wait_said(slurm, "Degraded", "AsExpected")
    assert "BETTER=yes" in slurm.control("env")
    assert slurm.job_state(job) == "RUNNING"

    # What is removed from the template goes, from pods with jobs beside them too.
    better = controller(slurm)
    edit(slurm, controller={"template": None})
    wait_for("a slurmctld without what was removed", lambda: controller(slurm) not in {"", better}, PATIENCE)
    wait_serving(slurm)
    assert "BETTER" not in slurm.control("env")
    pod = slurm.get("pods", f"--field-selector=metadata.name={slurm.name}-controller-0")["items"][0]
    assert {one["name"] for one in pod["spec"]["containers"]} == {"slurmctld", "agent"}
    assert slurm.job_state(job) == "RUNNING"
    slurm.release(job, "compute-0")
    slurm.wait_job(job, "COMPLETED")

    # A new Cluster has nothing to protect: there the scheduler's words are shown.
    wait_said(second, "Ready", "DaemonStuck", "second-controller-0 does not start: not scheduled", "PersistentVolume")
