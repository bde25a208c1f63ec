"""Configuration changes on real Slurm: valid ones are live in seconds, invalid ones change nothing, no job is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hack.localkube.kubectl import wait_for
from tests.support.configuring import (
    NIGHT,
    PREFLIGHTS,
    edit,
    refused_and_mended,
    rendered,
    shows,
    wait_live,
    wait_reason,
)
from tests.support.pods import identities
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("operator"),
    pytest.mark.long(240),
]


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with two nodes."""
    instance = new_slurm("config")
    instance.create(extraConf="KillWait=5")
    instance.nodeset("compute", 2)
    instance.wait_ready()
    instance.wait_idle(["compute-0", "compute-1"])
    return instance


@pytest.fixture(scope="module", autouse=True)
def job(slurm: SlurmInKubernetes) -> Iterator[str]:
    """A job on compute-0, from the first test to the last, that no change may end."""
    found = slurm.hold("compute-0")
    yield found
    assert slurm.job_state(found) == "RUNNING"
    slurm.release(found, "compute-0")
    slurm.wait_job(found, "COMPLETED")


@pytest.fixture(autouse=True)
def _nothing_is_restarted(slurm: SlurmInKubernetes) -> Iterator[None]:
    """No pod is replaced, no daemon restarted, and of preflights nothing is left."""
    before = identities(slurm)
    yield
    assert identities(slurm) == before
    wait_for("no preflight left", lambda: not slurm.get("pods,configmaps", PREFLIGHTS)["items"], PATIENCE)


def test_a_partition_added_under_a_running_job_is_usable_soon(slurm: SlurmInKubernetes) -> None:
    wait_live(slurm, edit(slurm, partitions=[NIGHT]))
    # A slurmd that is just reading the new configuration may lose a step.
    wait_for("a step there", lambda: srun(slurm, "night", "hostname") == "compute-1", PATIENCE)


def srun(slurm: SlurmInKubernetes, partition: str, *command: str) -> str:
    """Run a command on compute-1."""
    return slurm.run("srun", "-p", partition, "-w", "compute-1", "--immediate=30", *command).strip()


def test_a_key_in_extra_conf_is_live_soon(slurm: SlurmInKubernetes) -> None:
    wait_live(slurm, edit(slurm, extraConf="KillWait=17\nMinJobAge=400"))
    assert shows(slurm, "KillWait = 17 sec", "MinJobAge = 400 sec")


def test_a_prolog_runs_soon_and_goes_again(slurm: SlurmInKubernetes) -> None:
    mark = "/tmp/prolog-ran"
    script = f"#!/bin/sh\necho $SLURM_JOB_ID >> {mark}\n"
    wait_live(slurm, edit(slurm, prologScripts={"mark.sh": script}))

    def ran() -> bool:
        srun(slurm, "compute", "true")
        found = slurm.kube("exec", "compute-1", "--container=slurmd", "--", "sh", "-c", f"cat {mark} || true")
        return bool(found.strip())

    wait_for("the prolog", ran, PATIENCE)
    wait_live(slurm, edit(slurm, prologScripts=None))


def test_a_partition_in_use_goes_when_its_job_has_ended(slurm: SlurmInKubernetes) -> None:
    wait_live(slurm, edit(slurm, partitions=[NIGHT]))
    script = "--wrap=until [ -e /tmp/released-$SLURM_JOB_ID ]; do sleep 0.1; done"
    where = ("-p", "night", "-w", "compute-1", "--output=/dev/null")
    running = slurm.run("sbatch", "--parsable", *where, script, pod="compute-1").strip()
    slurm.wait_job(running, "RUNNING")
    generation = edit(slurm, partitions=None)
    wait_for("its closing", lambda: "INACTIVE" in rendered(slurm), PATIENCE)
    # While that is on its way to slurmctld, the condition has another reason, and may name the job, too.
    wait_reason(slurm, generation, "PartitionInUse", f"job {running}")
    assert slurm.job_state(running) == "RUNNING"
    slurm.release(running, "compute-1")
    slurm.wait_job(running, "COMPLETED")
    wait_live(slurm, generation)
    assert "night" not in slurm.control("sinfo", "--noheader", "--format=%R")


def test_a_partition_that_only_slurmctlds_state_knows_of_a_running_job(slurm: SlurmInKubernetes) -> None:
    """24.11 ends a running job if its list of partitions loses one, and shows only the one that the job runs in."""
    wait_live(slurm, edit(slurm, partitions=[NIGHT]))
    script = "--wrap=until [ -e /tmp/released-$SLURM_JOB_ID ]; do sleep 0.1; done"
    where = ("-p", "all,night", "-w", "compute-1", "--output=/dev/null")
    running = slurm.run("sbatch", "--parsable", *where, script, pod="compute-1").strip()
    slurm.wait_job(running, "RUNNING")
    assert slurm.control("squeue", "--noheader", "-j", running, "--format=%P").strip() == "all"
    generation = edit(slurm, partitions=None)
    if slurm.slurm == "24.11":
        wait_reason(slurm, generation, "WaitingForJobs", f"it would end job {running}")
    else:
        wait_live(slurm, generation)
    assert slurm.job_state(running) == "RUNNING"
    slurm.release(running, "compute-1")
    slurm.wait_job(running, "COMPLETED")
    wait_live(slurm, generation)


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({"extraConf": "Bogus=1"}, "unrecognized key: Bogus"),
        ({"partitions": [{"name": "x", "nodes": ["nosuch"]}]}, "nosuch"),
        ({"configFiles": {"cgroup.conf": "CgroupPlugin=cgroup/v9\n"}}, "error: cannot "),
    ],
    ids=["unknown key", "unknown node", "cgroup.conf that ends slurmd"],
)
def test_what_slurm_would_refuse_changes_nothing_and_is_told(
    slurm: SlurmInKubernetes, spec: dict[str, Any], word: str
) -> None:
    refused_and_mended(slurm, spec, "ConfigRefused", word)
