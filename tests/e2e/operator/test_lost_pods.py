"""Pods lost without a drain: evicted, killed, out of memory; their jobs, their records, their successors.

A pod deleted by hand is in `test_drain`, one lost with its Node in `test_places`.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass

import pytest

from hack.localkube.kubectl import KubectlFailed, wait_for
from tests.support import processes
from tests.support.pods import restarts
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator")]

NODESETS = ["kept", "open", "killed", "eaten"]
"""One for each test, with one node; the second is not protected."""

MISSED = "00:00:25"
"""How long a job must have run for Slurm to miss it when its slurmd comes back without it. One that has just begun it
takes to be on its way to the node: for 20 s, BatchStartTimeout and MessageTimeout."""

EATS_ALL_MEMORY = "sleep 25; ulimit -v 2000000; tail /dev/zero"
"""Far beyond the pod's 256 MiB; where nobody held it to them it would end by itself, and with another exit code."""

KILLED = {"137:0", "0:9"}
"""Exit codes of a job whose process was killed."""


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with these NodeSets."""
    instance = new_slurm("lost")
    instance.create()
    for name in NODESETS:
        instance.nodeset(name, 1, workloadDisruptionProtection=name != "open")
    instance.wait_ready()
    instance.wait_idle(f"{name}-0" for name in NODESETS)
    return instance


@dataclass(frozen=True, slots=True)
class OldJobs:
    """Jobs that have run for a while when their test comes."""

    held: str
    eats: str


@pytest.fixture(scope="module", autouse=True)
def old(slurm: SlurmInKubernetes) -> OldJobs:
    """One that is held, one that eats all memory in the end."""
    submit = ("sbatch", "--parsable", "--output=/dev/null", "--no-requeue", "-p", "eaten")
    eats = slurm.run(*submit, f"--wrap={EATS_ALL_MEMORY}", pod="eaten-0").strip()
    return OldJobs(slurm.hold("killed-0"), eats)


def test_an_eviction_is_refused_under_a_job(slurm: SlurmInKubernetes) -> None:
    before = slurm.pod_uid("kept-0")
    job = slurm.hold("kept-0")
    with pytest.raises(KubectlFailed, match="disruption budget"):
        slurm.evict("kept-0")
    assert "deletionTimestamp" not in slurm.slurmd_pods()["kept-0"]["metadata"]
    slurm.release(job, "kept-0")
    slurm.wait_job(job, "COMPLETED")
    assert slurm.pod_uid("kept-0") == before


def test_an_evicted_pod_is_replaced_and_its_job_taken_back(slurm: SlurmInKubernetes) -> None:
    before = slurm.pod_uid("open-0")
    job = slurm.hold("open-0")
    slurm.evict("open-0")
    wait_for("the job taken back", lambda: slurm.job(job).get("Restarts") == "1", 120)
    wait_for("another pod", lambda: slurm.is_replaced("open-0", before), 120)
    slurm.control("scancel", job)
    slurm.wait_idle_nodes("open-0")


def test_a_slurmd_that_is_killed_comes_back_and_its_job_is_taken_back(slurm: SlurmInKubernetes, old: OldJobs) -> None:
    before, job = slurm.pod_uid("killed-0"), old.held
    wait_for("a job that Slurm misses", lambda: slurm.job(job)["RunTime"] >= MISSED, 120)
    processes.send(slurm.slurmd_pods()["killed-0"], "slurmd -D", signal.SIGKILL)
    wait_for("slurmd restarted", lambda: restarts(slurm.slurmd_pods()["killed-0"]) > 0, 120)
    wait_for("the job taken back", lambda: slurm.job(job).get("Restarts") == "1", 180)
    slurm.control("scancel", job)
    slurm.wait_idle_nodes("killed-0")
    assert slurm.pod_uid("killed-0") == before
    shown = slurm.run("srun", "-p", "killed", "hostname", pod="killed-0")
    assert shown.strip() == "killed-0"


def test_a_job_that_eats_all_memory_leaves_a_node_that_works(slurm: SlurmInKubernetes, old: OldJobs) -> None:
    before, job = slurm.pod_uid("eaten-0"), old.eats
    # The kernel kills the job's process, or slurmd, or with version 2 of cgroups all of the container's.
    wait_for("the job's end", lambda: slurm.job_state(job) in {"FAILED", "NODE_FAIL"}, 180)
    slurm.wait_idle_nodes("eaten-0")
    # The kubelet reports a container's end some time after it has started it again. How it ended is known of the last
    # end only, and a slurmd that does not reach slurmctld at once ends by itself.
    wait_for(
        "what was killed",
        lambda: slurm.job(job)["ExitCode"] in KILLED or restarts(slurm.slurmd_pods()["eaten-0"]) > 0,
        PATIENCE,
    )
    assert slurm.pod_uid("eaten-0") == before
    assert slurm.run("srun", "-p", "eaten", "hostname", pod="eaten-0").strip() == "eaten-0"
