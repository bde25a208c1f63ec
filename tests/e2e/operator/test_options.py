"""Fields of a NodeSet and their visible effect: what nodes offer, their names, updates and claims."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from hack.localkube.kubectl import wait_for
from slinky_api import labels
from tests.support.nodesets import whole
from tests.support.slurm_in_kubernetes import NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.long(190), pytest.mark.full]

MIN_READY = 8


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster that counts GPUs, with NodeSets of one and two nodes, and a partition over both."""
    instance = new_slurm("options")
    instance.create(
        extraConf="GresTypes=gpu",
        configFiles={"gres.conf": "Name=gpu File=/dev/zero\nName=gpu File=/dev/full\n"},
        partitions=[{"name": "both", "nodeSets": ["sized", "padded"], "config": "Default=YES"}],
    )
    sized(instance, cpus="2", memory="300Mi", gres="gpu:2", features=["fast"])
    instance.nodeset("padded", 2, ordinalPadding=3)
    instance.wait_ready()
    instance.wait_idle(["sized-0", "padded-000", "padded-001"])
    return instance


def sized(slurm: SlurmInKubernetes, cpus: str, memory: str, **spec: Any) -> None:
    """Create or replace a NodeSet of one node with limits of its own."""
    resources = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"cpu": cpus, "memory": memory}}
    slurm.nodeset("sized", 1, resources=resources, weight=7, extraConf="MemSpecLimit=32", **spec)


def revision_of(slurm: SlurmInKubernetes, pod: str) -> str:
    """The revision a pod was made from; empty if there is no such pod."""
    found = slurm.slurmd_pods().get(pod)
    return str(found["metadata"]["labels"][labels.LABEL_REVISION]) if found else ""


def test_a_node_offers_what_its_nodeset_says(slurm: SlurmInKubernetes) -> None:
    shown = slurm.node("sized-0")
    assert (shown["CPUTot"], shown["RealMemory"], shown["MemSpecLimit"]) == ("2", "300", "32")
    assert shown["Gres"].startswith("gpu:2")
    assert (shown["AvailableFeatures"], shown["Weight"]) == ("sized,fast", "7")
    options = ("-p", "sized", "-C", "fast", "--gres=gpu:2", "-n2", "-N1")
    job = slurm.run("sbatch", "--parsable", "--wait", "--output=/tmp/%j.out", *options, "--wrap=true", pod="sized-0")
    # It may still be completing when sbatch takes it for over.
    slurm.wait_job(job.strip(), "COMPLETED")


def test_what_it_offers_follows_the_spec(slurm: SlurmInKubernetes) -> None:
    before = slurm.pod_uid("sized-0")
    sized(slurm, cpus="1", memory="200Mi", gres="gpu:1", features=["slow"])
    wait_for("the update", lambda: whole(slurm, "sized", 1), 240)
    slurm.wait_idle_nodes("sized-0")
    assert slurm.pod_uid("sized-0") != before
    shown = slurm.node("sized-0")
    assert (shown["CPUTot"], shown["RealMemory"], shown["AvailableFeatures"]) == ("1", "200", "sized,slow")
    assert shown["Gres"].startswith("gpu:1")
    assert (
        slurm.run("srun", "-p", "sized", "-C", "slow", "--gres=gpu:1", "hostname", pod="sized-0").strip() == "sized-0"
    )


def test_a_job_over_two_nodesets_finds_all_its_nodes_by_name(slurm: SlurmInKubernetes) -> None:
    script = "for host in $(scontrol show hostnames $SLURM_JOB_NODELIST); do getent ahostsv4 $host || exit 1; done"

    def found() -> bool:
        shown = slurm.run("srun", "-p", "both", "-N3", "bash", "-c", script, pod="sized-0").split()
        addresses = [slurm.slurmd_pods()[name]["status"]["podIP"] for name in ("sized-0", "padded-000", "padded-001")]
        # Three lines for each address, one for each kind of socket, from each of three nodes.
        return [shown.count(address) for address in addresses] == [9, 9, 9]

    # The names of a new pod come to the cluster's DNS some time after its slurmd has come to Slurm.
    wait_for("all addresses on all nodes", found, 240)
    domain = slurm.run("cat", "/etc/resolv.conf", pod="sized-0").partition("svc.")[2].split()[0]
    assert domain != "cluster.local"


def test_padded_ordinals_make_a_hostlist(slurm: SlurmInKubernetes) -> None:
    shown = slurm.run("srun", "-p", "padded", "-w", "padded-[000-001]", "hostname", pod="padded-000")
    assert sorted(shown.split()) == ["padded-000", "padded-001"]
    slurm.scale("padded", 1)
    # Which of the two goes depends on where the job was over first.
    wait_for("one of them left", lambda: sum(name.startswith("padded-") for name in slurm.states()) == 1, 180)


def test_a_paused_update_replaces_nothing_and_remakes_what_is_lost_as_it_was(slurm: SlurmInKubernetes) -> None:
    slurm.nodeset("held", 2)
    wait_for("both as they were first", lambda: whole(slurm, "held", 2), 240)
    before, first = slurm.pod_uid("held-0"), revision_of(slurm, "held-0")
    job = slurm.hold("held-0")
    slurm.nodeset("held", 2, features=["second"], updateStrategy={"rollingUpdate": {"paused": True}})
    wait_for(
        "why nothing moves",
        lambda: slurm.condition("nodeset", "held", "Progressing").get("reason") == "UpdatePaused",
        120,
    )
    lost = slurm.pod_uid("held-1")
    slurm.kube("delete", "pod", "held-1", "--wait")
    wait_for("another pod", lambda: slurm.is_replaced("held-1", lost), 120)
    slurm.wait_idle_nodes("held-1")
    assert (slurm.pod_uid("held-0"), revision_of(slurm, "held-1")) == (before, first)
    assert slurm.job_state(job) == "RUNNING"

    slurm.release(job, "held-0")
    slurm.wait_job(job, "COMPLETED")
    slurm.nodeset("held", 2, features=["second"])
    wait_for("both updated", lambda: whole(slurm, "held", 2), 240)
    assert first not in {revision_of(slurm, "held-0"), revision_of(slurm, "held-1")}


def test_an_update_gives_each_node_time_to_prove_itself(slurm: SlurmInKubernetes) -> None:
    slurm.nodeset("held", 2, features=["third"], minReadySeconds=MIN_READY)
    wait_for("both updated", lambda: whole(slurm, "held", 2), 240)
    first, second = sorted((slurm.slurmd_pods()[name] for name in ("held-0", "held-1")), key=created_at)
    # The API server keeps whole seconds.
    assert created_at(second) - ready_at(first) >= timedelta(seconds=MIN_READY - 1)


def created_at(pod: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(pod["metadata"]["creationTimestamp"])


def ready_at(pod: dict[str, Any]) -> datetime:
    (ready,) = (one for one in pod["status"]["conditions"] if one["type"] == "Ready")
    return datetime.fromisoformat(ready["lastTransitionTime"])


def test_an_earlier_spec_brings_its_revision_back(slurm: SlurmInKubernetes) -> None:
    seen = []
    for feature in ("first", "second", "third", "second"):
        slurm.nodeset("kept", 1, features=[feature], revisionHistoryLimit=1)
        wait_for(f"features {feature}", lambda: whole(slurm, "kept", 1), 240)
        seen.append(revision_of(slurm, "kept-0"))
    assert seen[3] == seen[1]
    assert len(set(seen)) == 3
    # The newest of those that are not in use is kept beside the one that is.
    wait_for("two revisions", lambda: recorded(slurm, "kept") == [seen[2], seen[1]], 120)
    slurm.wait_idle_nodes("kept-0")
    assert slurm.node("kept-0")["AvailableFeatures"] == "kept,second"


def recorded(slurm: SlurmInKubernetes, nodeset: str) -> list[str]:
    """The hashes that are recorded, the newest last."""
    items = slurm.get("controllerrevisions", f"--selector={labels.LABEL_NODESET_NAME}={nodeset}")["items"]
    return [one["metadata"]["labels"][labels.LABEL_REVISION] for one in sorted(items, key=lambda one: one["revision"])]


def test_a_file_on_a_claim_outlives_pod_and_nodeset(slurm: SlurmInKubernetes) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "16Mi"}}}
    mount = {"name": "slurmd", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    given: dict[str, Any] = {
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        "template": {"spec": {"containers": [mount]}},
    }

    def on_disk(command: str) -> str:
        slurm.wait_idle_nodes("disk-0")
        return slurm.run("srun", "-p", "disk", "bash", "-c", command, pod="disk-0").strip()

    slurm.nodeset("disk", 1, **given)
    on_disk("echo kept > /data/file")
    slurm.scale("disk", 0)
    wait_for("no node", lambda: "disk-0" not in slurm.states(), 180)
    slurm.scale("disk", 1)
    assert on_disk("cat /data/file") == "kept"
    slurm.kube("delete", "nodeset", "disk", timeout=300)
    slurm.nodeset("disk", 1, **given, persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"})
    assert on_disk("cat /data/file") == "kept"
    slurm.scale("disk", 0)
    selector = f"--selector={labels.LABEL_NODESET_NAME}=disk"
    wait_for("no claim", lambda: not slurm.get("pvc", selector)["items"], 180)
    slurm.scale("disk", 1)
    assert on_disk("ls /data") == ""
