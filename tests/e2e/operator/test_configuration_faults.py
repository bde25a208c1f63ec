"""The operator, slurmctld or a kubelet fails during a configuration change: the result still matches the spec."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from hack.installing.operator import Installation
from hack.localkube.cluster import Cluster
from hack.localkube.kubectl import Kubectl, wait_for
from tests.support import audit, processes
from tests.support.configuring import (
    CONFIG,
    HASH,
    NIGHT,
    edit,
    rendered,
    shows,
    wait_live,
    wait_reason,
)
from tests.support.operator_death import dead
from tests.support.pods import identities
from tests.support.slurm_in_kubernetes import (
    PATIENCE,
    RELEASED,
    SLURM_CONF,
    NewSlurm,
    SlurmInKubernetes,
)

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.long(160), pytest.mark.full]


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


TOUCHED = "cluster.slinky.slurm.net/config-touched"


def tries(slurm: SlurmInKubernetes, cluster: Cluster) -> int:
    """How many preflights there have been: the pod of one may be gone before anybody has looked."""
    made = audit.made_pods(cluster.paths.audit_log, slurm.namespace)
    return sum(count for name, count in made.items() if "preflight" in name)


def is_tried(cluster: Cluster, before: int, slurm: SlurmInKubernetes, _: str) -> bool:
    return tries(slurm, cluster) > before


def is_written(slurm: SlurmInKubernetes, name: str) -> bool:
    return name in rendered(slurm)


def is_touched(slurm: SlurmInKubernetes, name: str) -> bool:
    written = slurm.get("configmap", CONFIG)
    annotations = slurm.get("pod", f"{slurm.name}-controller-0")["metadata"]["annotations"]
    digest = written["metadata"]["annotations"][HASH]
    return name in written["data"]["slurm.conf"] and annotations.get(TOUCHED, "").startswith(digest)


def is_loaded(slurm: SlurmInKubernetes, name: str) -> bool:
    return name in partitions(slurm)


def partitions(slurm: SlurmInKubernetes) -> list[str]:
    return slurm.control("sinfo", "--noheader", "--format=%R").split()


STEPS = {"is-written": is_written, "is-touched": is_touched, "is-loaded": is_loaded}
"""What shows that a partition of that name has come so far."""


@pytest.mark.alone
def test_killed_between_any_two_steps_it_comes_to_the_same_end(
    slurm: SlurmInKubernetes, operator: Installation, kubectl: Kubectl, cluster: Cluster
) -> None:
    before = identities(slurm)
    wanted: list[dict[str, Any]] = []
    for name in ("is-tried", *STEPS):
        step = STEPS.get(name, partial(is_tried, cluster, tries(slurm, cluster)))
        wanted.append({"name": name, "nodeSets": ["compute"]})
        generation = edit(slurm, partitions=wanted)
        wait_for(name, partial(step, slurm, name), PATIENCE, poll=0.02)
        with dead(operator, kubectl):
            pass
        wait_live(slurm, generation)
        assert name in partitions(slurm)
    wait_live(slurm, edit(slurm, partitions=None))
    assert identities(slurm) == before


@pytest.mark.alone
def test_a_kubelet_that_stands_still_right_after_the_write_is_waited_for(
    slurm: SlurmInKubernetes, cluster: Cluster
) -> None:
    node = slurm.get("pod", f"{slurm.name}-controller-0")["spec"]["nodeName"]
    generation = edit(slurm, partitions=[NIGHT])
    wait_for("the write", lambda: "night" in rendered(slurm), PATIENCE, poll=0.02)
    machine = cluster.machine(node)
    machine.send("kubelet", signal.SIGSTOP)
    try:
        time.sleep(10)
    finally:
        machine.send("kubelet", signal.SIGCONT)
    wait_live(slurm, generation)
    wait_live(slurm, edit(slurm, partitions=None))


def test_a_slurmctld_killed_while_it_is_to_reconfigure_comes_back_with_the_new_file(slurm: SlurmInKubernetes) -> None:
    generation = edit(slurm, partitions=[NIGHT])
    wait_for("the write", lambda: "night" in rendered(slurm), PATIENCE, poll=0.02)
    processes.send(slurm.get("pod", f"{slurm.name}-controller-0"), "slurmctld", signal.SIGKILL)
    wait_live(slurm, generation)
    wait_for("the partition", lambda: "night" in partitions(slurm), PATIENCE)
    wait_live(slurm, edit(slurm, partitions=None))


def test_two_edits_within_a_second_and_one_taken_back_end_as_the_spec_says(slurm: SlurmInKubernetes) -> None:
    edit(slurm, partitions=[{"name": "first", "nodeSets": ["compute"]}])
    wait_live(slurm, edit(slurm, partitions=[NIGHT]))
    names = partitions(slurm)
    assert "night" in names
    assert "first" not in names
    edit(slurm, extraConf="KillWait=31")
    wait_live(slurm, edit(slurm, extraConf="KillWait=5"))
    assert shows(slurm, "KillWait = 5 sec")
    wait_live(slurm, edit(slurm, partitions=None))


def test_a_key_that_needs_a_new_slurmctld_gets_one_and_jobs_live_on(slurm: SlurmInKubernetes, job: str) -> None:
    said, controller = "/tmp/step-said", f"{slurm.name}-controller-0"
    script = f"echo begun; until [ -e {RELEASED}step ]; do sleep 0.1; done; echo lived"
    step = f"SLURM_CONF={SLURM_CONF} nohup srun -p compute -w compute-1 sh -c '{script}' > {said} 2>&1 &"
    slurm.kube("exec", "compute-1", "--container=slurmd", "--", "sh", "-c", step)

    def says(word: str) -> bool:
        return word in slurm.kube("exec", "compute-1", "--container=slurmd", "--", "cat", said)

    wait_for("the step's beginning", lambda: says("begun"), PATIENCE)
    before = identities(slurm)
    generation = edit(slurm, extraConf="CommunicationParameters=EnableIPv6")
    wait_for(
        "another slurmctld",
        lambda: identities(slurm).get(controller, before[controller]) != before[controller],
        PATIENCE,
    )
    wait_live(slurm, generation)
    slurm.wait_ready()
    wait_for("word from it", lambda: slurm.job_state(job) == "RUNNING", PATIENCE)
    after = identities(slurm)
    assert {name for name in before if after[name] != before[name]} == {controller}
    slurm.release("step", "compute-1")
    wait_for("the step's end", lambda: says("lived"), PATIENCE)


def test_daemons_and_preflights_run_in_a_namespace_that_enforces_the_restricted_level(
    kubectl: Kubectl, new_slurm: NewSlurm
) -> None:
    instance = new_slurm("restricted")
    kubectl("create", "namespace", instance.namespace)
    kubectl("label", "namespace", instance.namespace, "pod-security.kubernetes.io/enforce=restricted")
    instance.create()
    instance.wait_ready()
    wait_live(instance, edit(instance, extraConf="KillWait=9"))
    wait_reason(instance, edit(instance, extraConf="Bogus=9"), "ConfigRefused", "Bogus")
