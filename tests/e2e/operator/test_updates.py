"""Updates under load, with bad images, held back and taken back; names, claims, and autoscaling."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from hack.localkube.kubectl import Kubectl, wait_for
from hack.operator_install import Installation
from tests.support.nodesets import features, uids, whole
from tests.support.slurm_in_kubernetes import SlurmInKubernetes, fresh_namespace

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator")]
IMAGE = "localhost/slinky/slurmd:26.05"
DEFAULT = {"config": "Default=YES"}
THREE = ["compute-0", "compute-1", "compute-2"]


@pytest.fixture(scope="module")
def slurm(kubectl: Kubectl, operator: Installation) -> Iterator[SlurmInKubernetes]:
    """A Cluster."""
    instance = SlurmInKubernetes(kubectl, fresh_namespace("updates"), "26.05")
    instance.create()
    try:
        instance.wait_ready()
        yield instance
    except BaseException:
        logging.getLogger(__name__).exception("the operator's log:\n%s", operator.logs()[-20000:])
        raise
    finally:
        instance.delete()


@pytest.fixture
def three(slurm: SlurmInKubernetes) -> SlurmInKubernetes:
    """The same with a NodeSet of three nodes, as it was first."""
    slurm.nodeset("compute", 3, partition=DEFAULT)
    wait_for("three nodes as they were first", lambda: whole(slurm, "compute", 3), 180)
    slurm.wait_idle_nodes(*THREE)
    return slurm


def test_a_job_finds_every_other_node_by_its_name(three: SlurmInKubernetes) -> None:
    script = "for host in $(scontrol show hostnames compute-[0-2]); do getent ahostsv4 $host || exit 1; done"
    found = three.run("srun", "-w", "compute-1", "bash", "-c", script)

    pods = three.slurmd_pods()
    for name in THREE:
        assert pods[name]["status"]["podIP"] in found


def test_an_update_under_a_stream_of_jobs_loses_none(three: SlurmInKubernetes) -> None:
    slurm, before = three, uids(three)
    jobs = [submit(slurm) for _ in range(6)]
    slurm.nodeset("compute", 3, partition=DEFAULT, features=["second"])

    def done() -> bool:
        jobs.append(submit(slurm))
        return whole(slurm, "compute", 3)

    wait_for("all updated", done, 300)
    assert not set(uids(slurm).values()) & set(before.values())
    for job in jobs:
        slurm.wait_job(job, "COMPLETED", 180)
        # Requeued would mean that a pod was taken from under it.
        assert slurm.job(job)["Restarts"] == "0"
    # What slurmd registers with has changed: the records are new ones.
    assert {features(slurm, name) for name in THREE} == {"compute,second"}


def submit(slurm: SlurmInKubernetes) -> str:
    """Submit a short job from a pod that no update takes away, and return its id."""
    return slurm.control("sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", "--wrap=sleep 3").strip()


def test_a_bad_image_stops_at_the_budget_and_an_older_spec_takes_it_back(three: SlurmInKubernetes) -> None:
    slurm, before = three, uids(three)
    first = slurm.get("nodeset", "compute")["status"]["currentRevision"]
    slurm.nodeset("compute", 3, partition=DEFAULT, image="localhost/slinky/slurmd:none", revisionHistoryLimit=3)
    wait_for("one pod that does not come up", lambda: stuck(slurm) != "", 120)
    broken = stuck(slurm)
    job = submit(slurm)
    slurm.wait_job(job, "COMPLETED")
    now = uids(slurm)
    assert {name for name in THREE if now[name] == before[name]} == set(THREE) - {broken}
    states = slurm.states()
    assert {states.get(name, "idle") for name in THREE} == {"idle"}

    slurm.nodeset("compute", 3, partition=DEFAULT, revisionHistoryLimit=3)
    wait_for("it is taken back", lambda: whole(slurm, "compute", 3), 120)
    after = uids(slurm)
    assert {name for name in THREE if after[name] == before[name]} == set(THREE) - {broken}
    assert slurm.get("nodeset", "compute")["status"]["currentRevision"] == first


def stuck(slurm: SlurmInKubernetes) -> str:
    """Name of a pod whose image cannot be had."""
    for name, pod in slurm.slurmd_pods().items():
        for container in pod["status"].get("containerStatuses", ()):
            if container["state"].get("waiting", {}).get("reason") in {"ErrImagePull", "ImagePullBackOff"}:
                return name
    return ""


def test_the_partition_holds_an_update_back(three: SlurmInKubernetes) -> None:
    slurm, before = three, uids(three)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    slurm.nodeset("compute", 3, partition=DEFAULT, features=["third"], updateStrategy=strategy)
    wait_for("one is updated", lambda: "third" in features(slurm, "compute-2"), 120)
    slurm.kube("delete", "pod", "compute-0", "--wait=true")
    wait_for("compute-0 is back", lambda: uids(slurm).get("compute-0", before["compute-0"]) != before["compute-0"], 60)
    slurm.wait_idle_nodes(*THREE)
    assert features(slurm, "compute-0") == features(slurm, "compute-1") == "compute"
    assert uids(slurm)["compute-1"] == before["compute-1"]


def test_on_delete_waits_for_a_hand(three: SlurmInKubernetes) -> None:
    slurm, before = three, uids(three)
    slurm.nodeset("compute", 3, partition=DEFAULT, features=["fourth"], updateStrategy={"type": "OnDelete"})
    slurm.kube("delete", "pod", "compute-1", "--wait=true")
    wait_for("compute-1 is new", lambda: "fourth" in new_features(slurm, before, "compute-1"), 120)
    assert features(slurm, "compute-0") == "compute"
    assert {name for name, uid in uids(slurm).items() if before[name] == uid} == {"compute-0", "compute-2"}


def new_features(slurm: SlurmInKubernetes, before: dict[str, str], node: str) -> str:
    if uids(slurm).get(node, before[node]) == before[node]:
        return ""
    return features(slurm, node)


def test_a_claim_serves_the_pods_of_its_ordinal_one_after_the_other(slurm: SlurmInKubernetes) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "16Mi"}}},
    }
    mount = {"name": "slurmd", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    given = {
        "volumeClaimTemplates": [claim],
        "template": {"spec": {"containers": [mount]}},
        "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Delete"},
    }
    slurm.nodeset("disk", 2, **given)
    slurm.wait_idle_nodes("disk-0", "disk-1")
    for node in ("disk-0", "disk-1"):
        slurm.run("srun", "-p", "disk", "-w", node, "bash", "-c", f"echo {node} > /data/name", pod="disk-0")
    slurm.nodeset("disk", 2, features=["second"], **given)
    wait_for("both are updated", lambda: whole(slurm, "disk", 2), 180)
    slurm.wait_idle_nodes("disk-0", "disk-1")
    for node in ("disk-0", "disk-1"):
        assert slurm.run("srun", "-p", "disk", "-w", node, "cat", "/data/name", pod="disk-0").strip() == node

    slurm.scale("disk", 1)
    # Which of the two goes depends on whose job has just ended.
    wait_for("one pod is left", lambda: len(disks(slurm)) == 1, 120)
    wait_for("its claim is left", lambda: claims(slurm) == {f"data-{pod}" for pod in disks(slurm)}, 120)
    slurm.kube("delete", "nodeset", "disk", timeout=180)
    wait_for("no claim is left", lambda: claims(slurm) == set(), 60)


def disks(slurm: SlurmInKubernetes) -> set[str]:
    return {name for name in slurm.slurmd_pods() if name.startswith("disk-")}


def claims(slurm: SlurmInKubernetes) -> set[str]:
    items = slurm.get("pvc", "--selector=nodeset.slinky.slurm.net/name=disk")["items"]
    return {item["metadata"]["name"] for item in items}


def test_an_autoscaler_scales_a_nodeset(slurm: SlurmInKubernetes) -> None:
    slurm.nodeset("auto", 1)
    slurm.wait_idle_nodes("auto-0")
    resource = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
    }
    target = {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": "NodeSet", "name": "auto"}
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "auto", "namespace": slurm.namespace},
        "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 3, "metrics": [resource]},
    }
    slurm.kubectl.apply([scaler])
    slurm.wait_idle_nodes("auto-0", "auto-1", timeout=120)
    assert slurm.get("nodeset", "auto")["spec"]["replicas"] == 2
    slurm.kube("delete", "hpa", "auto")
    slurm.kube("delete", "nodeset", "auto", timeout=180)
