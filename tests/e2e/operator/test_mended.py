"""Corrections by users: claims that were retained, specs with which slurmd registers badly."""

from __future__ import annotations

import pytest

from hack.localkube.kubectl import wait_for
from slinky_api import labels
from tests.support.nodesets import whole
from tests.support.slurm_in_kubernetes import NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.full]


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster without NodeSets."""
    instance = new_slurm("mended")
    instance.create()
    instance.wait_ready()
    return instance


def test_a_change_of_policy_erases_no_claim_that_a_scale_in_has_kept(slurm: SlurmInKubernetes) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "16Mi"}}}
    mount = {"name": "slurmd", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}

    def apply(replicas: int, policy: str) -> None:
        slurm.nodeset(
            "disk",
            replicas,
            volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": claim}],
            template={"spec": {"containers": [mount]}},
            persistentVolumeClaimRetentionPolicy={"whenScaled": policy},
        )

    apply(3, "Retain")
    slurm.wait_idle_nodes("disk-0", "disk-1", "disk-2")
    slurm.scale("disk", 2)
    slurm.wait_gone("disk-2")
    apply(2, "Delete")
    wait_for("the policy seen", lambda: settled(slurm, "disk", 2), 120)
    assert claims(slurm) == {"data-disk-0", "data-disk-1", "data-disk-2"}

    slurm.scale("disk", 1)
    slurm.wait_gone("disk-1")
    slurm.wait_event("disk", "ClaimDeleted", "data-disk-1")
    wait_for("the claim of this scale-in is gone", lambda: claims(slurm) == {"data-disk-0", "data-disk-2"}, 120)
    slurm.kube("delete", "nodeset", "disk", timeout=300)
    assert claims(slurm) == {"data-disk-0", "data-disk-2"}


def settled(slurm: SlurmInKubernetes, nodeset: str, count: int) -> bool:
    """Whether the operator has seen the spec, and so many pods are ready."""
    obj = slurm.get("nodeset", nodeset)
    status = obj.get("status", {})
    seen = status.get("observedGeneration") == obj["metadata"]["generation"]
    return bool(seen and status.get("readyReplicas") == status.get("replicas") == count)


def claims(slurm: SlurmInKubernetes) -> set[str]:
    items = slurm.get("pvc", f"--selector={labels.LABEL_NODESET_NAME}=disk")["items"]
    return {item["metadata"]["name"] for item in items}


def test_a_spec_with_which_slurmd_registers_badly_stops_at_the_budget_and_heals(slurm: SlurmInKubernetes) -> None:
    slurm.nodeset("fit", 2)
    slurm.wait_idle_nodes("fit-0", "fit-1")
    job = slurm.hold("fit-0", partition="fit")
    # A pod that is not Ready yet would be the first to be replaced.
    slurm.wait_seen("fit", slurmAllocated=1, readyReplicas=2)
    before = slurm.pod_uid("fit-0")

    slurm.nodeset("fit", 2, extraConf="RealMemory=99999999")
    wait_for("Slurm's words in a condition", lambda: is_rejected(slurm, "fit-1: Low RealMemory (reported:"), 240)
    assert "INVALID_REG" in slurm.node("fit-1")["State"]
    assert slurm.condition("nodeset", "fit", "Ready")["status"] == "False"
    assert slurm.job_state(job) == "RUNNING"

    slurm.nodeset("fit", 2)
    slurm.wait_idle_nodes("fit-1")
    wait_for("all is as the spec says", lambda: whole(slurm, "fit", 2), 240)
    wait_for("nothing is wrong", lambda: slurm.condition("nodeset", "fit", "Degraded")["status"] == "False", 120)
    # The update with the mistake has never come to it, and the job runs where it did.
    assert slurm.pod_uid("fit-0") == before
    assert slurm.job_state(job) == "RUNNING"
    slurm.release(job, "fit-0")
    slurm.wait_job(job, "COMPLETED")


def is_rejected(slurm: SlurmInKubernetes, words: str) -> bool:
    found = slurm.condition("nodeset", "fit", "Degraded")
    return found.get("reason") == "InvalidRegistration" and words in found["message"]
