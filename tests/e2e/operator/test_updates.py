"""Updates under load, with bad images, paused and reverted; names, claims, and autoscaling."""

from __future__ import annotations

import pytest

from hack.localkube.kubectl import wait_for
from tests.support.nodesets import features, uids, whole
from tests.support.slurm_in_kubernetes import NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.long(170)]
DEFAULT = {"config": "Default=YES"}
THREE = ["compute-0", "compute-1", "compute-2"]
STREAM = 6
"""Jobs that are under way at a time while an update is."""


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster."""
    instance = new_slurm("updates")
    # Slurm is to remember the first job of a stream when the last one is over, however long that takes.
    instance.create(extraConf="MinJobAge=86400")
    instance.wait_ready()
    return instance


@pytest.fixture
def three(slurm: SlurmInKubernetes) -> SlurmInKubernetes:
    """The same with a NodeSet of three nodes, as it was first."""
    slurm.nodeset("compute", 3, partition=DEFAULT)
    wait_for("three nodes as they were first", lambda: whole(slurm, "compute", 3), 300)
    slurm.wait_idle_nodes(*THREE)
    return slurm


def test_a_job_finds_every_other_node_by_its_name(three: SlurmInKubernetes) -> None:
    script = "for host in $(scontrol show hostnames compute-[0-2]); do getent ahostsv4 $host || exit 1; done"

    def found() -> bool:
        shown = three.run("srun", "-w", "compute-1", "bash", "-c", script).split()
        return {three.slurmd_pods()[name]["status"]["podIP"] for name in THREE} <= set(shown)

    # The names of a new pod come to the cluster's DNS some time after its slurmd has come to Slurm.
    wait_for("the address of each", found, 240)


def test_an_update_under_a_stream_of_jobs_loses_none(three: SlurmInKubernetes) -> None:
    slurm, before = three, uids(three)
    jobs = [submit(slurm) for _ in range(STREAM)]
    slurm.nodeset("compute", 3, partition=DEFAULT, features=["second"])

    def done() -> bool:
        # Enough to keep all nodes busy, and no more: a queue that grows may take longer than the test has.
        if len(under_way(slurm)) < STREAM:
            jobs.append(submit(slurm))
        return whole(slurm, "compute", 3)

    wait_for("all updated", done, 400)
    assert not set(uids(slurm).values()) & set(before.values())
    wait_for("the end of all jobs", lambda: not under_way(slurm), 240)
    for job in jobs:
        ended = slurm.job(job)
        # Requeued would mean that a pod was taken from under it.
        assert (ended["JobState"], ended["Restarts"]) == ("COMPLETED", "0")
    # What slurmd registers with has changed: the records are new ones.
    assert {features(slurm, name) for name in THREE} == {"compute,second"}


def submit(slurm: SlurmInKubernetes) -> str:
    """Submit a short job from a pod that no update takes away, and return its id."""
    return slurm.control("sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", "--wrap=sleep 3").strip()


def under_way(slurm: SlurmInKubernetes) -> list[str]:
    """The jobs that have not ended."""
    return slurm.control("squeue", "--noheader", "--format=%i").split()


def test_a_bad_image_stops_at_the_budget_and_an_older_spec_takes_it_back(three: SlurmInKubernetes) -> None:
    slurm, before = three, uids(three)
    first = slurm.get("nodeset", "compute")["status"]["currentRevision"]
    slurm.nodeset("compute", 3, partition=DEFAULT, image="localhost/slinky/slurmd:none", revisionHistoryLimit=3)
    wait_for("one pod that does not start", lambda: stuck(slurm) != "", 240)
    broken = stuck(slurm)
    job = submit(slurm)
    slurm.wait_job(job, "COMPLETED")
    now = uids(slurm)
    assert {name for name in THREE if now[name] == before[name]} == set(THREE) - {broken}
    slurm.wait_idle_nodes(*set(THREE) - {broken})
    assert broken not in slurm.states()

    slurm.nodeset("compute", 3, partition=DEFAULT, revisionHistoryLimit=3)
    wait_for("it is taken back", lambda: whole(slurm, "compute", 3), 240)
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


@pytest.mark.full
def test_the_partition_holds_an_update_back(three: SlurmInKubernetes) -> None:
    slurm, before = three, uids(three)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    slurm.nodeset("compute", 3, partition=DEFAULT, features=["third"], updateStrategy=strategy)
    wait_for("one is updated", lambda: "third" in features(slurm, "compute-2"), 240)
    slurm.kube("delete", "pod", "compute-0", "--wait=true")
    wait_for("compute-0 is back", lambda: uids(slurm).get("compute-0", before["compute-0"]) != before["compute-0"], 120)
    slurm.wait_idle_nodes(*THREE)
    assert features(slurm, "compute-0") == features(slurm, "compute-1") == "compute"
    assert uids(slurm)["compute-1"] == before["compute-1"]


@pytest.mark.full
def test_on_delete_waits_for_a_hand(three: SlurmInKubernetes) -> None:
    slurm, before = three, uids(three)
    slurm.nodeset("compute", 3, partition=DEFAULT, features=["fourth"], updateStrategy={"type": "OnDelete"})
    # What is deleted before the operator has seen the new spec is remade by the old one, and stays so.
    wait_for("the spec seen", lambda: progress(slurm) == "UpdateOnDelete", 120)
    slurm.kube("delete", "pod", "compute-1", "--wait=true")
    wait_for("compute-1 is new", lambda: "fourth" in new_features(slurm, before, "compute-1"), 240)
    assert features(slurm, "compute-0") == "compute"
    assert {name for name, uid in uids(slurm).items() if before[name] == uid} == {"compute-0", "compute-2"}


def progress(slurm: SlurmInKubernetes) -> str:
    return str(slurm.condition("nodeset", "compute", "Progressing").get("reason"))


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
    wait_for("both are updated", lambda: whole(slurm, "disk", 2), 300)
    slurm.wait_idle_nodes("disk-0", "disk-1")
    for node in ("disk-0", "disk-1"):
        assert slurm.run("srun", "-p", "disk", "-w", node, "cat", "/data/name", pod="disk-0").strip() == node

    slurm.scale("disk", 1)
    # Which of the two goes depends on whose job has just ended.
    wait_for("one pod is left", lambda: len(disks(slurm)) == 1, 180)
    wait_for("its claim is left", lambda: claims(slurm) == {f"data-{pod}" for pod in disks(slurm)}, 180)
    slurm.kube("delete", "nodeset", "disk", timeout=300)
    wait_for("no claim is left", lambda: claims(slurm) == set(), 180)


def disks(slurm: SlurmInKubernetes) -> set[str]:
    return {name for name in slurm.slurmd_pods() if name.startswith("disk-")}


def claims(slurm: SlurmInKubernetes) -> set[str]:
    items = slurm.get("pvc", "--selector=nodeset.slinky.slurm.net/name=disk")["items"]
    return {item["metadata"]["name"] for item in items}


@pytest.mark.full
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
    slurm.wait_idle_nodes("auto-0", "auto-1")
    assert slurm.get("nodeset", "auto")["spec"]["replicas"] == 2
    slurm.kube("delete", "hpa", "auto")
    slurm.kube("delete", "nodeset", "auto", timeout=300)
