"""A NodeSet whose user gives up its jobs: they are reported, and Slurm sees at once that they have ended."""

from __future__ import annotations

import pytest

from hack.localkube.kubectl import wait_for
from tests.support.slurm_in_kubernetes import NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.full]

NODE = "given-0"
UNTIL_SLURM_MISSES_IT = 3600
"""SlurmdTimeout: what is seen before that is not Slurm's own doing."""


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with one NodeSet, whose slurmctld does not miss a node by itself."""
    instance = new_slurm("skip-drain")
    instance.create(extraConf=f"SlurmdTimeout={UNTIL_SLURM_MISSES_IT}")
    instance.nodeset("given", 1)
    instance.wait_ready()
    instance.wait_idle([NODE])
    return instance


def test_jobs_that_are_given_up_are_named_and_slurm_takes_them_back(slurm: SlurmInKubernetes) -> None:
    job = slurm.hold(NODE, "--no-requeue")
    slurm.kube("delete", "nodeset", "given", "--wait=false")
    wait_for("the drain", lambda: NODE in slurm.drained_nodes(), 120)
    assert slurm.job_state(job) == "RUNNING"

    slurm.kube("annotate", "nodeset", "given", "nodeset.slinky.slurm.net/skip-drain=true")

    slurm.wait_event("given", "JobsGivenUp", f"{NODE} (jobs {job})", "skip-drain=true")
    slurm.wait_event("given", "NodesDown", NODE)
    slurm.wait_job(job, "NODE_FAIL")
    wait_for("the NodeSet's end", lambda: not slurm.get("nodesets")["items"], 240)
    wait_for("the end of its record", lambda: NODE not in slurm.states(), 240)

    slurm.nodeset("given", 1)
    slurm.wait_idle([NODE])
    assert slurm.run("srun", "-p", "given", "hostname", pod=NODE).strip() == NODE
