"""An outage cancels no job, and starts none twice: real controllers and scheduler of Kubernetes, the operator dead.

Kubernetes evicts nothing while all Nodes are not ready, so another Node is, by a Lease that the test renews.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from hack.localkube.kubectl import KubectlFailed
from slinky_api import labels
from slurm_client.testing import FakeSlurmrestd
from tests.support import virtual_site
from tests.support.virtual_site import NODE, TEAM, VirtualSite

pytestmark = [pytest.mark.timeout(900), pytest.mark.long(150)]

OTHER = "slurm-site-all"
"""The Node of Slurm's other partition."""

REAL = "real-1"
TAINTED, COLLECTED = "DeletionByTaintManager", "DeletionByPodGC"
TOLERATED: list[dict[str, Any]] = [{"key": "virtual-kubelet.io/provider", "operator": "Exists"}]
SHORT: list[dict[str, Any]] = [
    *TOLERATED,
    *(
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
        for key in ("not-ready", "unreachable")
    ),
]
"""Without these, Kubernetes deletes pods five minutes after their Node has become not ready.

Only pods that an outage is to take have them: on a busy machine, an operator that starts again may be late as well.
"""

logger = logging.getLogger(__name__)


@contextmanager
def real_node(site: VirtualSite) -> Iterator[None]:
    """A Node that is ready, and that pods of the tests do not fit."""
    ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}]
    taint = [{"key": "site/real", "effect": "NoSchedule"}]
    about = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": REAL}, "spec": {"taints": taint}}
    site.kubectl("create", "-f", "-", stdin=json.dumps({**about, "status": {"conditions": ready}}))
    ended = threading.Event()

    def renew() -> None:
        while True:
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            spec = {"holderIdentity": REAL, "leaseDurationSeconds": 40, "renewTime": now}
            about = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
            lease = {**about, "metadata": {"name": REAL, "namespace": "kube-node-lease"}, "spec": spec}
            try:
                site.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(lease), timeout=20)
            except KubectlFailed as error:
                # The next one counts as well: Kubernetes waits for four of them or more.
                logger.warning("the Lease of %s was not renewed: %s", REAL, error)
            if ended.wait(5):
                return

    renewing = threading.Thread(target=renew)
    renewing.start()
    try:
        yield
    finally:
        ended.set()
        renewing.join()
        site.kubectl("delete", "node", REAL)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualSite]:
    with virtual_site.running(tmp_path_factory.mktemp("operator"), scheduler=True) as made, real_node(made):
        for node in (NODE, OTHER):
            made.until(f"{node} is ready", lambda node=node: ready(made, node) == "True")  # type: ignore[misc]
        yield made


def ready(site: VirtualSite, node: str) -> str:
    """The condition Ready of a Node; empty if there is none."""
    found = site.find("node", node).get("status", {}).get("conditions", ())
    return next((one["status"] for one in found if one["type"] == "Ready"), "")


def spec(node: str, **more: Any) -> dict[str, Any]:
    """The spec of a pod that the scheduler binds to a virtual Node."""
    selector = {"kubernetes.io/hostname": node}
    return {**virtual_site.pod_spec(nodeName=None), "nodeSelector": selector, "tolerations": TOLERATED, **more}


def create_pod(site: VirtualSite, name: str, node: str, **more: Any) -> None:
    """Create a pod without a controller."""
    about = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": TEAM, "labels": {"set": name}}}
    site.kubectl.apply([{**about, "spec": spec(node, **more)}])


def create_job(
    site: VirtualSite, name: str, node: str, tolerations: list[dict[str, Any]] = TOLERATED, **more: Any
) -> None:
    """Create a batch Job."""
    template = {"metadata": {"labels": {"set": name}}, "spec": spec(node, tolerations=tolerations)}
    about = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": TEAM}}
    site.kubectl.apply([{**about, "spec": {"template": template, **more}}])


def pods(site: VirtualSite, *names: str) -> list[dict[str, Any]]:
    """Pods of bare pods and Jobs of these names."""
    found: list[dict[str, Any]] = site.kubectl.get("pods", "-n", TEAM)["items"]
    return [pod for pod in found if pod["metadata"].get("labels", {}).get("set") in names]


def running(site: VirtualSite, *names: str) -> dict[str, dict[str, Any]]:
    """Pods that run and are to stay, by the ids of their jobs in Slurm."""
    found: dict[str, dict[str, Any]] = {}
    for pod in pods(site, *names):
        if pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp"):
            (container,) = pod["status"]["containerStatuses"]
            found[container["containerID"]] = pod
    return found


def disruption(pod: dict[str, Any]) -> str:
    """Why Kubernetes deletes a pod."""
    conditions = pod["status"].get("conditions", ())
    return next((one["reason"] for one in conditions if one["type"] == "DisruptionTarget"), "")


def reasons(site: VirtualSite, job: str) -> set[str]:
    """Reasons of the conditions of a Job."""
    status = site.kubectl.get("job", job, "-n", TEAM).get("status", {})
    return {one.get("reason", "") for one in status.get("conditions", ())}


def succeeded(site: VirtualSite, job: str) -> int:
    """Pods of a Job that have succeeded, once the Job is complete."""
    status = site.kubectl.get("job", job, "-n", TEAM).get("status", {})
    is_complete = any((one["type"], one["status"]) == ("Complete", "True") for one in status.get("conditions", ()))
    return int(status.get("succeeded", 0)) if is_complete else 0


def jobs(slurm: FakeSlurmrestd) -> dict[int, str]:
    """All jobs of Slurm, with their states."""
    return {number: str(job.state.base) for number, job in list(slurm.world.jobs.items())}


def left(site: VirtualSite) -> list[dict[str, Any]]:
    """SlurmJobs that run on without a pod."""
    items = site.kubectl.get("slurmjobs.slinky.slurm.net", "-n", TEAM)["items"]
    return [one for one in items if labels.ANNOTATION_VIRTUAL_POD_LEFT in one["metadata"].get("annotations", {})]


@pytest.mark.full
def test_no_job_is_lost_while_the_operator_is_away(site: VirtualSite) -> None:
    """Of one Node the Lease ends, the other is deleted; one job ends meanwhile.

    The next pods of Jobs take the jobs over. Those of bare pods, and of a Job without another pod, keep running.
    """
    names = {"bare": 1, "batch": 1, "indexed": 2, "collected": 1, "lone": 1, "once": 1}
    create_pod(site, "bare", NODE, tolerations=SHORT)
    create_job(site, "batch", NODE, SHORT)
    create_job(site, "indexed", NODE, SHORT, completionMode="Indexed", completions=2, parallelism=2)
    create_job(site, "collected", OTHER, SHORT)
    create_pod(site, "lone", OTHER, tolerations=SHORT)
    create_job(site, "once", NODE, SHORT, backoffLimit=0)
    site.until("all run", lambda: len(running(site, *names)) == sum(names.values()))
    before = running(site, *names)
    numbers = {int(one.removeprefix("slurm://")): pod for one, pod in before.items()}

    site.stop()
    site.kubectl("delete", "node", OTHER)
    site.until("the Lease has ended", lambda: ready(site, NODE) == "Unknown", 1.0)

    def taken() -> dict[str, str]:
        return {pod["metadata"]["uid"]: disruption(pod) for pod in pods(site, *names)}

    def all_are_taken() -> bool:
        found = taken()
        wanted = {
            pod["metadata"]["uid"]: TAINTED if pod["spec"]["nodeName"] == NODE else COLLECTED for pod in before.values()
        }
        return all(found.get(uid) == reason for uid, reason in wanted.items())

    site.until("Kubernetes has deleted all pods", all_are_taken, 1.0)
    assert ready(site, REAL) == "True"
    assert set(jobs(site.slurm).values()) == {"RUNNING"}
    early = next(number for number, pod in numbers.items() if pod["metadata"]["labels"]["set"] == "indexed")
    _ = site.slurm.world.finish_job(early)

    site.start()
    for node in (NODE, OTHER):
        site.until(f"{node} is ready", lambda node=node: ready(site, node) == "True")  # type: ignore[misc]
    of_jobs = {
        one
        for one, pod in before.items()
        if pod["metadata"]["labels"]["set"] in {"batch", "indexed", "collected"} and one != f"slurm://{early}"
    }
    gone = {pod["metadata"]["uid"] for pod in before.values()}

    def taken_over() -> bool:
        found = running(site, *names)
        return of_jobs == set(found) and not gone & {pod["metadata"]["uid"] for pod in found.values()}

    site.until("the next pods have the jobs", taken_over)
    site.until("the pods of before have gone", lambda: not gone & set(taken()))
    site.until("jobs without a pod run on", lambda: len(left(site)) == 3)
    assert jobs(site.slurm) == {number: "COMPLETED" if number == early else "RUNNING" for number in numbers}
    for number in numbers:
        if number != early:
            _ = site.slurm.world.finish_job(number)
    for job, count in (("batch", 1), ("indexed", 2), ("collected", 1)):
        site.until(f"Job {job} is complete", lambda job=job, count=count: succeeded(site, job) == count)  # type: ignore[misc]
    # Kubernetes counts a pod that an outage took as failed, and this Job may have no other.
    site.until("Job once has failed", lambda: "BackoffLimitExceeded" in reasons(site, "once"))
    site.until("what ran on shows its end", lambda: {one["status"]["state"] for one in left(site)} == {"Succeeded"})
    assert jobs(site.slurm) == dict.fromkeys(numbers, "COMPLETED")


def conditions(site: VirtualSite) -> dict[str, str]:
    """Conditions of the Node."""
    found = site.find("node", NODE).get("status", {}).get("conditions", ())
    return {one["type"]: one["status"] for one in found}


def taints(site: VirtualSite) -> dict[str, str]:
    """Effects of the taints of the Node."""
    return {one["key"]: one["effect"] for one in site.find("node", NODE).get("spec", {}).get("taints", ())}


@pytest.mark.full
def test_a_slurm_that_is_away_fails_no_pod(site: VirtualSite) -> None:
    """The operator is started again meanwhile: it knows of the job by the SlurmJob alone."""
    create_job(site, "patient", NODE)
    site.until("it runs", lambda: running(site, "patient"))
    ((one, pod),) = running(site, "patient").items()
    number = int(one.removeprefix("slurm://"))
    before = set(jobs(site.slurm))
    fault = site.slurm.faults.controller_down()
    site.until("the Node says so", lambda: conditions(site).get("SlurmReachable") == "False")
    site.stop()
    site.start()
    create_pod(site, "late", NODE, nodeName=NODE)
    site.until("a new pod waits", lambda: waits(site, "late"))
    site.until("the Node is ready", lambda: conditions(site).get("Ready") == "True")
    # After a start that was slow, Kubernetes takes its own taints away a little later.
    site.until("nothing evicts pods", lambda: "NoExecute" not in taints(site).values())
    (found,) = pods(site, "patient")
    assert (found["metadata"]["uid"], found["status"]["phase"]) == (pod["metadata"]["uid"], "Running")
    # Nothing but the Node's taint keeps new pods away.
    assert taints(site)[labels.TAINT_VIRTUAL_NODE_UNAVAILABLE] == "NoSchedule"
    _ = site.slurm.world.finish_job(number)
    site.slurm.faults.remove(fault)
    site.until("the Job is complete", lambda: succeeded(site, "patient") == 1)
    site.until("the new pod runs", lambda: running(site, "late"))
    assert len(set(jobs(site.slurm)) - before) == 1
    assert jobs(site.slurm)[number] == "COMPLETED"
    site.kubectl("delete", "pod", "late", "-n", TEAM)


def waits(site: VirtualSite, name: str) -> bool:
    """Whether a pod shows that it waits for Slurm."""
    for pod in pods(site, name):
        for container in pod["status"].get("containerStatuses", ()):
            return pod["status"]["phase"] == "Pending" and "waiting" in container["state"]
    return False


def test_a_drain_is_a_persons_decision(site: VirtualSite) -> None:
    """The job ends, and the next pod of the controller waits until the Node is uncordoned."""
    create_job(site, "drained", NODE)
    site.until("it runs", lambda: running(site, "drained"))
    ((one, _),) = running(site, "drained").items()
    number = int(one.removeprefix("slurm://"))
    try:
        said = site.kubectl("drain", NODE, "--pod-selector=set=drained", "--timeout=120s", timeout=180)
        assert "evicting pod team/drained" in said
        assert jobs(site.slurm)[number] == "CANCELLED"
        site.until("a pod waits", lambda: [p for p in pods(site, "drained") if not p["spec"].get("nodeName")])
        assert not running(site, "drained")
    finally:
        site.kubectl("uncordon", NODE)
    site.until("the next one runs", lambda: running(site, "drained"))
    ((other, _),) = running(site, "drained").items()
    assert other != one
    site.kubectl("delete", "job", "drained", "-n", TEAM)
    site.until("its pods have gone", lambda: not pods(site, "drained"))


def test_a_cordon_leaves_pods_alone(site: VirtualSite) -> None:
    create_pod(site, "stays", NODE)
    site.until("it runs", lambda: running(site, "stays"))
    site.kubectl("cordon", NODE)
    try:
        create_pod(site, "waits", NODE)

        def is_held() -> bool:
            for pod in pods(site, "waits"):
                found = {one["type"]: one.get("reason") for one in pod["status"].get("conditions", ())}
                return found.get("PodScheduled") == "Unschedulable"
            return False

        site.until("another waits", is_held)
        assert running(site, "stays")
    finally:
        site.kubectl("uncordon", NODE)
    site.until("it runs, too", lambda: running(site, "waits"))
    site.kubectl("delete", "pod", "stays", "waits", "-n", TEAM)


def test_preemption_is_a_decision_where_the_partition_is_offered(site: VirtualSite) -> None:
    def offer(allocatable: str) -> None:
        jobs = {"virtualNodes": {"allocatable": allocatable}}
        site.kubectl(
            *("patch", "cluster", "slurm", "-n", TEAM, "--type=merge"), "-p", json.dumps({"spec": {"jobs": jobs}})
        )

    def cpus() -> str:
        return str(site.find("node", NODE)["status"]["allocatable"]["cpu"])

    unlimited = cpus()
    offer("Partition")
    site.until("the Node offers what the partition has", lambda: cpus() != unlimited)
    each = {"requests": {"cpu": str(int(cpus()) // 4)}}
    main = {**virtual_site.pod_spec()["containers"][0], "resources": each}
    for number in range(4):
        create_pod(site, f"low-{number}", NODE, containers=[main])
    names = [f"low-{number}" for number in range(4)]
    site.until("they run", lambda: len(running(site, *names)) == 4)
    before = {int(one.removeprefix("slurm://")) for one in running(site, *names)}
    about = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}}
    site.kubectl.apply([{**about, "value": 1000}])
    create_pod(site, "high", NODE, containers=[main], priorityClassName="urgent")
    site.until("it runs in the place of another", lambda: running(site, "high"))
    assert sorted(jobs(site.slurm)[number] for number in before) == ["CANCELLED", "RUNNING", "RUNNING", "RUNNING"]
    offer("Unlimited")
    site.until("the Node offers more", lambda: cpus() == unlimited)
    site.kubectl("delete", "pods", "--all", "-n", TEAM, timeout=180)


def test_the_operator_has_failed_nowhere(site: VirtualSite) -> None:
    """The last test: nothing that the others have made it do was refused, or ended in an error of its own."""
    said = site.said()
    assert "Traceback" not in said
    assert "orbidden" not in said
