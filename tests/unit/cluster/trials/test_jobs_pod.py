"""What the trial of jobs finds in its ConfigMap and its variables, and what it can reach."""

from __future__ import annotations

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import TrialObjects
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.parts.slurmctld.manifests import stateful_set
from slinky_operator.cluster.trials import pods
from slinky_operator.cluster.trials.jobs_pod import jobs_trial
from slinky_operator.cluster.trials.pods import TrialInput
from slinky_operator.cluster.trials.state_pod import LIVE
from tests.unit.cluster.world import cluster_object

CLUSTER = Cluster.parse(cluster_object())
CONF = "PartitionName=a Nodes=ALL State=UP\nPartitionName=b Nodes=ALL\nPrologSlurmctld=/etc/slurm/p.sh\n"


def made(live: dict[str, str], files: dict[str, str]) -> TrialObjects:
    images = Images(
        {
            "slurmctld": "slurmctld:1",
            "slurmrestd": "slurmrestd:1",
            "agent": "agent:1",
            "slurmd": "slurmd:1",
            "sssd": "sssd:1",
        }
    )
    spec = stateful_set(CLUSTER, images, {})["spec"]["template"]["spec"]
    return jobs_trial(TrialInput(CLUSTER, images, files, spec, spec, "claim", "node-1"), live)


def test_both_configurations_are_there_and_what_only_one_of_them_has() -> None:
    same = {"cgroup.conf": "CgroupPlugin=disabled\n"}
    live = {**same, "slurm.conf": CONF, "acct_gather.conf": "# old\n"}
    files = {**same, "slurm.conf": CONF.replace("PartitionName=b Nodes=ALL\n", ""), "topology.conf": "SwitchName=s\n"}
    trial = made(live, files)
    assert trial.config_map is not None
    data = trial.config_map.body["data"]
    assert data.keys() == {
        "cgroup.conf",
        "slurm.conf",
        "topology.conf",
        "live.slurm.conf",
        "live.acct_gather.conf",
    }
    # No job starts there, and no program for one.
    assert "PartitionName=a Nodes=ALL State=DOWN" in data["slurm.conf"]
    assert "PartitionName=b Nodes=ALL State=DOWN" in data["live.slurm.conf"]
    assert not any("PrologSlurmctld" in text for text in data.values())
    (container,) = trial.pod.body["spec"]["containers"]
    assert {"name": "ABSENT", "value": "topology.conf"} in container["env"]


def test_the_state_is_only_read_and_other_trials_are_told_apart() -> None:
    trial = made({"slurm.conf": CONF}, {"slurm.conf": CONF})
    (container,) = trial.pod.body["spec"]["containers"]
    (mount,) = (one for one in container["volumeMounts"] if one["mountPath"] == LIVE)
    assert mount["readOnly"] is True
    state = {"name": "state", "persistentVolumeClaim": {"claimName": "claim", "readOnly": True}}
    assert state in trial.pod.body["spec"]["volumes"]
    assert pods.JOBS.has(CLUSTER, trial.pod.body)
    assert not pods.STATE.has(CLUSTER, trial.pod.body)
