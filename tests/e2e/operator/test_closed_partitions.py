"""Partitions closed by an administrator, and one removed although Slurm is set to keep states, on real Slurm."""

from __future__ import annotations

import pytest

from hack.localkube.kubectl import wait_for
from tests.support.configuring import NIGHT, config_applied, edit, rendered, wait_live, wait_reason
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.full]


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with one node, and a partition of its own."""
    instance = new_slurm("closed")
    instance.create(extraConf="ReconfigFlags=KeepPartState", partitions=[NIGHT])
    instance.nodeset("compute", 1)
    instance.wait_ready()
    instance.wait_idle(["compute-0"])
    return instance


def state(slurm: SlurmInKubernetes, partition: str) -> str:
    words = slurm.control("scontrol", "--oneliner", "show", "partition", partition).split()
    return dict(word.split("=", 1) for word in words if "=" in word)["State"]


def test_a_partition_goes_closed_and_without_its_job(slurm: SlurmInKubernetes) -> None:
    job = slurm.hold("compute-0", partition="night")
    generation = edit(slurm, partitions=None)
    wait_reason(slurm, generation, "PartitionInUse", f"for job {job}")
    assert state(slurm, "night") == "INACTIVE"
    assert slurm.job_state(job) == "RUNNING"
    slurm.release(job, "compute-0")
    slurm.wait_job(job, "COMPLETED")
    wait_live(slurm, generation)
    assert "night" not in slurm.control("sinfo", "--noheader", "--format=%R")
    assert "ReconfigFlags=KeepPartState" in rendered(slurm)


def test_a_partition_closed_by_hand_stays_so_when_a_node_set_comes(slurm: SlurmInKubernetes) -> None:
    wait_live(slurm, edit(slurm, extraConf=None))
    slurm.control("scontrol", "update", "PartitionName=compute", "State=DRAIN")
    slurm.nodeset("more", 0)
    wait_for("the NodeSet in the file", lambda: "NodeSet=more" in rendered(slurm), PATIENCE)
    slurm.wait_event(slurm.name, "PartitionStateKept", "compute DRAIN")
    word = "partition compute stays DRAIN, as set by scontrol"
    wait_for("the condition", lambda: said(slurm, word), PATIENCE)
    assert state(slurm, "compute") == "DRAIN"
    assert "more" in slurm.control("sinfo", "--noheader", "--format=%R")

    slurm.control("scontrol", "update", "PartitionName=compute", "State=UP")
    wait_for("the file to follow", lambda: "State=DRAIN" not in rendered(slurm), PATIENCE)
    wait_for("the end of it", lambda: config_applied(slurm)["status"] == "True" and not said(slurm, word), PATIENCE)
    assert state(slurm, "compute") == "UP"


def said(slurm: SlurmInKubernetes, word: str) -> bool:
    found = config_applied(slurm)
    return bool(found["status"] == "True" and word in found["message"])
