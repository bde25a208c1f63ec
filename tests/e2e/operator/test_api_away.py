"""The API server is unreachable for three minutes: jobs continue, the operator waits, and recovers without help."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from hack.installing.operator import NAMESPACE, Installation
from hack.localkube.cluster import CONTROL_PLANE, Cluster
from hack.localkube.kubectl import KubectlFailed, wait_for
from tests.support.operator_death import LEASE, wait_whole
from tests.support.pods import restarts
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("operator"),
    pytest.mark.alone,
    pytest.mark.full,
    pytest.mark.long(340),
]

AWAY: Final = 180.0
"""Seconds; the operator ended and was started again and again within 150."""

API_SERVER: Final = "kube-apiserver"


@pytest.fixture
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    instance = new_slurm("away")
    instance.create(extraConf="MinJobAge=3600")
    instance.nodeset("away", 2)
    instance.wait_ready()
    instance.wait_idle(["away-0", "away-1"])
    return instance


@contextmanager
def without_api_server(cluster: Cluster) -> Iterator[None]:
    machine = cluster.machine(CONTROL_PLANE)
    machine.stop(API_SERVER)
    try:
        yield
    finally:
        machine.resume(API_SERVER)
        wait_for("the API server", lambda: answers(cluster), PATIENCE)


def answers(cluster: Cluster) -> bool:
    try:
        return cluster.kubectl("get", "--raw=/readyz").strip() == "ok"
    except KubectlFailed:
        return False


def holder(slurm: SlurmInKubernetes) -> str:
    """The process that leads."""
    return str(slurm.kubectl.get(*LEASE)["spec"].get("holderIdentity", ""))


def waits_to_start(pod: dict[str, Any]) -> list[str]:
    """Why its containers are not started, `CrashLoopBackOff` for instance."""
    states = [one["state"] for one in pod["status"].get("containerStatuses") or ()]
    return [state["waiting"]["reason"] for state in states if "waiting" in state]


def test_the_api_server_is_away_for_three_minutes(
    slurm: SlurmInKubernetes, operator: Installation, cluster: Cluster
) -> None:
    wait_whole(operator)
    before = operator.pods()
    leader, held = operator.leader(), holder(slurm)
    pods = {name: pod["metadata"]["uid"] for name, pod in slurm.slurmd_pods().items()}
    job = slurm.hold("away-0")

    with without_api_server(cluster):
        # How long it is away is what is tried here.
        time.sleep(AWAY)

    wait_for("another process that leads", lambda: holder(slurm) not in {"", held}, PATIENCE)
    wait_for("the kubelet's word", lambda: restarts(operator.pods()[leader]) > restarts(before[leader]), PATIENCE)
    wait_whole(operator)
    after = operator.pods()
    assert after.keys() == before.keys()
    assert {name: restarts(pod) - restarts(before[name]) for name, pod in after.items()} == {
        name: int(name == leader) for name in before
    }
    assert [waits_to_start(pod) for pod in after.values()] == [[]] * len(after)

    assert slurm.job_state(job) == "RUNNING"
    assert {name: pod["metadata"]["uid"] for name, pod in slurm.slurmd_pods().items()} == pods
    slurm.scale("away", 1)
    wait_for("the idle node gone", lambda: set(slurm.slurmd_pods()) == {"away-0"}, PATIENCE)
    assert slurm.job_state(job) == "RUNNING"
    slurm.release(job, "away-0")
    slurm.wait_job(job, "COMPLETED")

    ended = slurm.kubectl("logs", "--namespace", NAMESPACE, leader, "--previous")
    assert ended.count("the operator exits: leadership lost: ") == 1
    for text in (ended, operator.logs()):
        assert "Traceback" not in text
