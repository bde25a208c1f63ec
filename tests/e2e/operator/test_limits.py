"""Keys of slurm.conf that would end running jobs wait for them, on real Slurm."""

from __future__ import annotations

import pytest

from hack.localkube.kubectl import wait_for
from tests.support.configuring import edit, rendered, shows, wait_live, wait_reason
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.full]

RECORDS = "MinJobAge=2\nMaxJobCount="
JOBS = 5


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with five nodes, where finished jobs are soon forgotten."""
    instance = new_slurm("limits")
    instance.create(extraConf=f"{RECORDS}500")
    instance.nodeset("compute", JOBS)
    instance.wait_ready()
    instance.wait_idle([f"compute-{number}" for number in range(JOBS)])
    return instance


def test_fewer_records_than_jobs_and_flags_they_did_not_start_with_wait_for_them(slurm: SlurmInKubernetes) -> None:
    nodes = [f"compute-{number}" for number in range(JOBS)]
    jobs = {slurm.hold(node): node for node in nodes}
    generation = edit(slurm, extraConf=f"{RECORDS}4\nPrologFlags=Alloc\nKillWait=17")
    wait_reason(slurm, generation, "WaitingForJobs", f"MaxJobCount stays 500 while there are {JOBS} job records")
    wait_reason(slurm, generation, "WaitingForJobs", "PrologFlags stays unset until no job runs; there are jobs ")
    wait_for("what harms no job", lambda: shows(slurm, "KillWait = 17 sec", "MaxJobCount = 500"), PATIENCE)
    slurm.wait_event(slurm.name, "WaitingForJobs", "MaxJobCount stays 500")
    assert {job: slurm.job_state(job) for job in jobs} == dict.fromkeys(jobs, "RUNNING")
    for job, node in jobs.items():
        slurm.release(job, node)
    wait_live(slurm, generation)
    assert "MaxJobCount=4\n" in rendered(slurm)
    assert shows(slurm, "MaxJobCount = 4", "PrologFlags = Alloc")
    slurm.wait_idle(nodes)
