"""A configuration change during which the operator, slurmctld or a kubelet fails: the end is the spec's."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from hack.localkube.cluster import Cluster
from hack.localkube.kubectl import Kubectl, wait_for
from hack.operator_install import Installation
from tests.support import processes
from tests.support.configuring import (
    CONFIG,
    NIGHT,
    PREFLIGHTS,
    edit,
    rendered,
    shows,
    wait_live,
    wait_reason,
)
from tests.support.operator_death import dead
from tests.support.pods import identities
from tests.support.slurm_in_kubernetes import SLURM_CONF, SlurmInKubernetes, fresh_namespace

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("operator")]


@pytest.fixture(scope="module")
def slurm(kubectl: Kubectl, operator: Installation) -> Iterator[SlurmInKubernetes]:
    """A Cluster with two nodes."""
    instance = SlurmInKubernetes(kubectl, fresh_namespace("config"), "26.05")
    instance.create(extraConf="KillWait=5")
    instance.nodeset("compute", 2)
    try:
        instance.wait_ready()
        instance.wait_idle(["compute-0", "compute-1"])
        yield instance
    finally:
        instance.abandon()


@pytest.fixture(scope="module", autouse=True)
def job(slurm: SlurmInKubernetes) -> Iterator[str]:
    """A job on compute-0, from the first test to the last, that no change may end."""
    found = slurm.hold("compute-0")
    yield found
    assert slurm.job_state(found) == "RUNNING"
    slurm.release(found, "compute-0")
    slurm.wait_job(found, "COMPLETED")


TOUCHED = "cluster.slinky.slurm.net/config-touched"
HASH = "cluster.slinky.slurm.net/config-hash"


def is_tried(slurm: SlurmInKubernetes, _: str) -> bool:
    return bool(slurm.get("pods", PREFLIGHTS)["items"])


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


def test_killed_between_any_two_steps_it_comes_to_the_same_end(
    slurm: SlurmInKubernetes, operator: Installation, kubectl: Kubectl
) -> None:
    before = identities(slurm)
    wanted: list[dict[str, Any]] = []
    for step in (is_tried, is_written, is_touched, is_loaded):
        name = step.__name__.replace("_", "-")
        wanted.append({"name": name, "nodeSets": ["compute"]})
        generation = edit(slurm, partitions=wanted)
        wait_for(name, partial(step, slurm, name), 30, poll=0.02)
        with dead(operator, kubectl):
            pass
        wait_live(slurm, generation, 90)
        assert name in partitions(slurm)
    wait_live(slurm, edit(slurm, partitions=None), 60)
    assert identities(slurm) == before


def test_a_kubelet_that_stands_still_right_after_the_write_is_waited_for(
    slurm: SlurmInKubernetes, cluster: Cluster
) -> None:
    node = slurm.get("pod", f"{slurm.name}-controller-0")["spec"]["nodeName"]
    generation = edit(slurm, partitions=[NIGHT])
    wait_for("the write", lambda: "night" in rendered(slurm), 30, poll=0.02)
    machine = cluster.machine(node)
    machine.send("kubelet", signal.SIGSTOP)
    try:
        time.sleep(10)
    finally:
        machine.send("kubelet", signal.SIGCONT)
    wait_live(slurm, generation, 60)
    wait_live(slurm, edit(slurm, partitions=None), 60)


def test_a_slurmctld_killed_while_it_is_to_reconfigure_comes_back_with_the_new_file(slurm: SlurmInKubernetes) -> None:
    generation = edit(slurm, partitions=[NIGHT])
    wait_for("the write", lambda: "night" in rendered(slurm), 30, poll=0.02)
    processes.send(slurm.get("pod", f"{slurm.name}-controller-0"), "slurmctld", signal.SIGKILL)
    wait_live(slurm, generation, 120)
    wait_for("the partition", lambda: "night" in partitions(slurm), 120)
    wait_live(slurm, edit(slurm, partitions=None), 60)


def test_two_edits_within_a_second_and_one_taken_back_end_as_the_spec_says(slurm: SlurmInKubernetes) -> None:
    edit(slurm, partitions=[{"name": "first", "nodeSets": ["compute"]}])
    wait_live(slurm, edit(slurm, partitions=[NIGHT]), 60)
    names = partitions(slurm)
    assert "night" in names
    assert "first" not in names
    edit(slurm, extraConf="KillWait=31")
    wait_live(slurm, edit(slurm, extraConf="KillWait=5"))
    assert shows(slurm, "KillWait = 5 sec")
    wait_live(slurm, edit(slurm, partitions=None), 60)


def test_a_key_that_needs_a_new_slurmctld_gets_one_and_jobs_live_on(slurm: SlurmInKubernetes, job: str) -> None:
    said = "/tmp/step-said"
    step = f"SLURM_CONF={SLURM_CONF} nohup srun -p compute -w compute-1 sh -c 'sleep 20; echo lived' > {said} 2>&1 &"
    slurm.kube("exec", "compute-1", "--container=slurmd", "--", "sh", "-c", step)
    before = identities(slurm)
    wait_live(slurm, edit(slurm, extraConf="CommunicationParameters=EnableIPv6"), 120)
    wait_for("another slurmctld", lambda: identities(slurm) != before, 60)
    slurm.wait_ready()
    after = identities(slurm)
    assert [name for name in before if after[name] != before[name]] == [f"{slurm.name}-controller-0"]
    assert slurm.job_state(job) == "RUNNING"

    def lived() -> bool:
        return "lived" in slurm.kube("exec", "compute-1", "--container=slurmd", "--", "cat", said)

    wait_for("the step's end", lived, 60)


def test_daemons_and_preflights_run_in_a_namespace_that_enforces_the_restricted_level(
    kubectl: Kubectl, operator: Installation
) -> None:
    instance = SlurmInKubernetes(kubectl, fresh_namespace("restricted"), "26.05")
    kubectl("create", "namespace", instance.namespace)
    kubectl("label", "namespace", instance.namespace, "pod-security.kubernetes.io/enforce=restricted")
    instance.create()
    try:
        instance.wait_ready()
        wait_live(instance, edit(instance, extraConf="KillWait=9"))
        message = wait_reason(instance, edit(instance, extraConf="Bogus=9"), "ConfigRefused")
        assert "Bogus" in message
    finally:
        instance.abandon()
