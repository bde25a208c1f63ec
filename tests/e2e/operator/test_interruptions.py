"""slurmctld, the API server and the operator are replaced during operations, which are then completed.

No job is lost, no pod is created twice, and none is deleted before its job ends.
"""

from __future__ import annotations

import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hack.installing.operator import CHART, RELEASE, Installation
from hack.localkube.cluster import CONTROL_PLANE, Cluster
from hack.localkube.kubectl import Kubectl, wait_for
from hack.localkube.paths import PROJECT
from tests.support import audit, loaded_images
from tests.support.nodesets import uids
from tests.support.slurm_in_kubernetes import NewSlurm, SlurmInKubernetes

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("operator"),
    pytest.mark.full,
    pytest.mark.alone,
    pytest.mark.only_slurm("26.05"),
    pytest.mark.long(190),
]

SIX = [f"wide-{number}" for number in range(6)]
EARLIER = PROJECT / "tests" / "integration" / "helm" / "charts_0_1_0" / "slurm-operator-0.1.0.tgz"
OPERATOR, NEXT_OPERATOR = "localhost/slinky/slurm-operator:dev", "localhost/slinky/slurm-operator:next"
SLURMD, NEXT_SLURMD = "localhost/slinky/slurmd:26.05", "localhost/slinky/slurmd:next"


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm, kubectl: Kubectl) -> SlurmInKubernetes:
    """A Cluster with a NodeSet for each test."""
    instance = new_slurm("interrupted")
    instance.create()
    instance.nodeset("drained", 2)
    instance.nodeset("wide", 0)
    instance.nodeset("calm", 1)
    # One that leaves its image to the operator, which another release may choose otherwise.
    kubectl.apply([instance.object("NodeSet", "plain", {"clusterName": instance.name, "replicas": 1})])
    instance.wait_ready()
    instance.wait_idle(["drained-0", "drained-1", "calm-0", "plain-0"])
    return instance


def deletions(log: Path, slurm: SlurmInKubernetes, pod: str) -> list[datetime]:
    """When the operator deleted a pod."""
    return [one.at for one in audit.pod_deletions(log, slurm.namespace) if one.name == pod]


def test_a_slurmctld_replaced_in_mid_drain_goes_on_with_the_drain_and_the_job(
    slurm: SlurmInKubernetes, cluster: Cluster
) -> None:
    node = "drained-1"
    before, job = uids(slurm), slurm.hold(node)
    slurm.scale("drained", 0)
    wait_for("the idle node's end", lambda: "drained-0" not in slurm.states(), 180)
    wait_for("the drain", lambda: node in slurm.drained_nodes(), 120)

    controller = f"{slurm.name}-controller-0"
    old = slurm.get("pod", controller)["metadata"]["uid"]
    slurm.kube("delete", "pod", controller, "--wait=false")
    wait_for("another slurmctld", lambda: slurm.get("pod", controller)["metadata"]["uid"] != old, 180)
    wait_for("its word on the drain", lambda: node in slurm.drained_nodes(), 180)
    assert slurm.reason(node).startswith("slurm-operator: scale-in")
    assert slurm.job_state(job) == "RUNNING"
    assert uids(slurm)[node] == before[node]

    released_at = datetime.now(UTC)
    slurm.release(job, node)
    slurm.wait_job(job, "COMPLETED")
    slurm.wait_gone(node)
    assert slurm.job(job)["Restarts"] == "0"
    found = deletions(cluster.paths.audit_log, slurm, node)
    assert found
    assert min(found) > released_at


def test_an_api_server_killed_in_mid_scale_makes_nothing_twice_and_costs_no_job(
    slurm: SlurmInKubernetes, cluster: Cluster
) -> None:
    slurm.scale("wide", 6)
    wait_for("the first pods", lambda: any(name in slurm.slurmd_pods() for name in SIX), 120, poll=0.02)
    kill_api_server(cluster)
    wait_for("six nodes", lambda: all(slurm.states().get(name) == "idle" for name in SIX), 240)
    pods = uids(slurm)
    for name in SIX:
        assert f"InstanceId={pods[name]}" in slurm.control("scontrol", "show", "node", name)
    # The first pod to have a name kept it: none was made, lost from sight, and made again.
    made = audit.made_pods(cluster.paths.audit_log, slurm.namespace)
    assert {name: made[name] for name in SIX if made[name] > 1} == {}

    busy = {name: slurm.hold(name) for name in ("wide-1", "wide-4")}
    slurm.scale("wide", 0)
    wait_for("the first drains", lambda: bool(set(SIX) & slurm.drained_nodes()), 120, poll=0.02)
    kill_api_server(cluster)
    wait_for("the idle nodes' end", lambda: set(SIX) & set(slurm.states()) == set(busy), 240)
    assert {name: uid for name, uid in uids(slurm).items() if name in busy} == {name: pods[name] for name in busy}
    assert [slurm.job_state(job) for job in busy.values()] == ["RUNNING", "RUNNING"]
    released_at = datetime.now(UTC)
    for node, job in busy.items():
        slurm.release(job, node)
        slurm.wait_job(job, "COMPLETED")
        assert slurm.job(job)["Restarts"] == "0"
    wait_for("nothing left", lambda: not set(SIX) & ({*slurm.states()} | {*slurm.slurmd_pods()}), 180)
    for node in busy:
        assert min(deletions(cluster.paths.audit_log, slurm, node)) > released_at


def kill_api_server(cluster: Cluster) -> None:
    """Kill it, and wait until another one answers."""
    machine = cluster.machine(CONTROL_PLANE)
    before = machine.services()["kube-apiserver"]["restarts"]
    machine.send("kube-apiserver", signal.SIGKILL)
    wait_for("its end", lambda: machine.services()["kube-apiserver"]["restarts"] > before, 60)
    wait_for("another one", lambda: cluster.kubectl("get", "--raw", "/readyz") == "ok", 120)


def test_another_release_of_the_operator_replaces_no_node(
    slurm: SlurmInKubernetes, operator: Installation, cluster: Cluster
) -> None:
    before, job = uids(slurm), slurm.hold("calm-0")
    revisions = {name: revision(slurm, name) for name in ("calm", "plain")}
    controller, leaders = slurm.get("pod", f"{slurm.name}-controller-0")["metadata"]["uid"], set(operator.pods())
    try:
        upgrade(operator, cluster)
        wait_for("a leader of the new release", lambda: operator.leader() not in {"", *leaders}, 240)
        slurm.wait_ready()
        # What the new release makes now is of the same revision, and from the image that the Cluster was given.
        slurm.scale("plain", 2)
        slurm.wait_idle_nodes("plain-0", "plain-1")
        wait_for("a look at both", lambda: all(looked_at(slurm, name) for name in revisions), 120)
        assert {name: revision(slurm, name) for name in revisions} == revisions
        assert {name: uid for name, uid in uids(slurm).items() if name in before} == before
        assert (image_of(slurm, "plain-0"), image_of(slurm, "plain-1")) == (SLURMD, SLURMD)
        # The agent beside slurmctld is a part of the operator; the one that runs stays, and slurmctld with it.
        assert slurm.get("pod", f"{slurm.name}-controller-0")["metadata"]["uid"] == controller
        assert slurm.drained_nodes() == set()
        assert slurm.job_state(job) == "RUNNING"
        slurm.release(job, "calm-0")
        slurm.wait_job(job, "COMPLETED")
        assert slurm.job(job)["Restarts"] == "0"
    finally:
        operator.install()


def test_the_chart_of_0_1_0_and_its_upgrade_and_no_chart_at_all_cost_no_job(
    slurm: SlurmInKubernetes, operator: Installation
) -> None:
    before, busy, late = uids(slurm), slurm.hold("calm-0"), slurm.hold("plain-0")
    controller = slurm.get("pod", f"{slurm.name}-controller-0")["metadata"]["uid"]
    kinds = ("clusters.slinky.slurm.net", "nodesets.slinky.slurm.net")
    objects = {kind: [one["metadata"]["uid"] for one in slurm.get(kind)["items"]] for kind in kinds}
    try:
        operator.helm("uninstall", RELEASE, "--wait", "--timeout=120s")
        wait_for("no operator", lambda: not operator.pods(), 120)
        # Nobody is there who could repair it.
        slurm.release(busy, "calm-0")
        slurm.wait_job(busy, "COMPLETED")
        operator.helm("install", RELEASE, str(EARLIER), "--wait", "--timeout=300s")
        wait_for("a leader by the chart of 0.1.0", lambda: operator.leader() in operator.pods(), 240)
        slurm.wait_ready()
        leaders = set(operator.pods())
    finally:
        operator.install()
    wait_for("a leader by this chart", lambda: operator.leader() in {*operator.pods()} - leaders, 240)
    slurm.wait_ready()
    assert slurm.job_state(late) == "RUNNING"
    slurm.release(late, "plain-0")
    slurm.wait_job(late, "COMPLETED")
    assert [slurm.job(job)["Restarts"] for job in (busy, late)] == ["0", "0"]
    assert slurm.get("pod", f"{slurm.name}-controller-0")["metadata"]["uid"] == controller
    assert {name: uid for name, uid in uids(slurm).items() if name in before} == before
    assert {kind: [one["metadata"]["uid"] for one in slurm.get(kind)["items"]] for kind in kinds} == objects


def upgrade(operator: Installation, cluster: Cluster) -> None:
    """Install a release that has another image of its own, prefers another slurmd, and says so in a label."""
    loaded_images.tag(cluster, OPERATOR, NEXT_OPERATOR)
    loaded_images.tag(cluster, SLURMD, NEXT_SLURMD)
    values = {
        "image.tag": "next",
        "slurm.images.slurmd": NEXT_SLURMD,
        r"podLabels.app\.kubernetes\.io/version": "next",
    }
    settings = (f"--set-string={key}={value}" for key, value in values.items())
    operator.helm("upgrade", RELEASE, str(CHART), "--reset-then-reuse-values", *settings, "--wait", "--timeout=300s")


def looked_at(slurm: SlurmInKubernetes, name: str) -> bool:
    """Whether somebody has reconciled a NodeSet after a change that no pod is about, which is made here."""
    slurm.kube("patch", "nodeset", name, "--type=merge", '--patch={"spec":{"drain":{"timeout":"1h"}}}')
    obj = slurm.get("nodeset", name)
    return bool(obj["status"]["observedGeneration"] == obj["metadata"]["generation"])


def revision(slurm: SlurmInKubernetes, name: str) -> str:
    status = slurm.get("nodeset", name)["status"]
    assert status["currentRevision"] == status["updateRevision"]
    return str(status["currentRevision"])


def image_of(slurm: SlurmInKubernetes, pod: str) -> str:
    (image,) = (one["image"] for one in slurm.slurmd_pods()[pod]["spec"]["containers"] if one["name"] == "slurmd")
    return str(image)
