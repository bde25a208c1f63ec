"""`preflight` lets Slurm try a changed configuration: what is asked, what its pods mean, and that nothing is left.

The kubelet is played here: the operator's program answers, and the trial's pod ends as a test says. The same with real
pods and a real slurmctld is `tests/e2e/operator/test_what_a_cluster_shows.py`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_slurm.rules.changes import trial
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.parts.slurmctld import manifests
from slinky_operator.preview import command, configuration
from slinky_operator.slurm.conf import ConfInputs, render
from slurm_client.testing import FakeSlurmrestd
from tests.unit.kubectl_slurm.conftest import Run
from tests.unit.kubectl_slurm.kubernetes_world import API, KubernetesWorld

IMAGES = Images({"slurmctld": "slurmctld:1", "slurmrestd": "slurmrestd:1", "agent": "operator:1", "slurmd": "slurmd:1"})
CLUSTER: dict[str, Any] = {"apiVersion": API, "kind": "Cluster", "metadata": {"name": "slurm", "namespace": "slurm"}}

Json = dict[str, Any]


def ends(phase: str, **containers: tuple[int, str]) -> Json:
    """The status of a pod whose containers have ended, by exit code and message."""
    found = [
        {"name": name.replace("_", "-"), "state": {"terminated": {"exitCode": code, "message": message}}}
        for name, (code, message) in containers.items()
    ]
    return {"phase": phase, "containerStatuses": found}


PASSED = ends("Succeeded", slurmctld=(0, "slurm 26.05.1"), slurmd_0=(0, ""))
BOGUS = (
    "slurmctld: error: _parse_next_key: Parsing error at unrecognized key: Bogus\nslurmctld: fatal: Unable to process"
)


@pytest.fixture
def filled(world: KubernetesWorld) -> KubernetesWorld:
    """The Cluster runs with the configuration of an empty spec."""
    running = Cluster.parse({**CLUSTER, "spec": {}})
    world.objects["clusters"]["slurm"]["spec"] = {}
    world.add("statefulsets", "slurm-controller", manifests.stateful_set(running, IMAGES, {})["spec"])
    world.add("configmaps", "slurm-config-good", data=dict(render(ConfInputs.of(running, ())).files))
    return world


@pytest.fixture
def kubelet(filled: KubernetesWorld) -> Callable[[Json], list[Json]]:
    """Runs the operator's program, and ends the pod of the trial with a status; returns all pods that were created."""

    def playing(status: Json) -> list[Json]:
        pods: list[Json] = []

        def run_pod(pod: Json) -> tuple[Json, str]:
            pods.append(pod)
            if pod["spec"]["containers"][0]["name"] != trial.CONTAINER:
                return status, ""
            data = filled.objects["configmaps"][pod["metadata"]["name"]]["binaryData"][trial.INPUT]
            answer = configuration.preview(command.unpacked(base64.b64decode(data)))
            return {"phase": "Succeeded"}, "\n".join(("a library logs", *command.lines(answer)))

        filled.run_pod = run_pod
        return pods

    return playing


def manifest(tmp_path: Path, *objects: Json) -> str:
    file = tmp_path / "objects.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return str(file)


def changed(tmp_path: Path, **spec: Any) -> str:
    return manifest(tmp_path, {**CLUSTER, "spec": spec})


def test_slurm_takes_a_configuration(
    run: Run, filled: KubernetesWorld, kubelet: Callable[[Json], list[Json]], tmp_path: Path
) -> None:
    pods = kubelet(PASSED)
    shown = run("preflight", "-f", changed(tmp_path, extraConf="SchedulerTimeSlice=31"))
    assert "Slurm of Cluster slurm would take the configuration" in shown
    asking, trying = pods
    assert asking["spec"]["containers"][0]["image"] == "operator:1"
    assert asking["spec"]["automountServiceAccountToken"] is False
    assert [one["name"] for one in trying["spec"]["containers"]] == ["slurmctld", "slurmd-0"]
    assert all(one["metadata"]["labels"] == trial.LABELS for one in pods)
    # Nothing stays.
    assert not filled.objects["pods"]
    assert list(filled.objects["configmaps"]) == ["slurm-config-good"]


def test_slurm_refuses_one_with_its_own_words(
    run: Run, filled: KubernetesWorld, kubelet: Callable[[Json], list[Json]], tmp_path: Path
) -> None:
    kubelet(ends("Failed", slurmctld=(1, BOGUS), slurmd_0=(0, "")))
    shown = run("preflight", "-f", changed(tmp_path, extraConf="Bogus=1"), code=1)
    assert "Slurm of Cluster slurm would refuse the configuration" in shown
    assert "slurmctld: error: _parse_next_key: Parsing error at unrecognized key: Bogus" in shown
    assert not filled.objects["pods"]
    found = json.loads(run("preflight", "-f", changed(tmp_path, extraConf="Bogus=1"), "-o", "json", code=1))
    assert found["trials"][0]["verdict"] == "refused"


def test_what_the_operator_would_not_write_needs_no_trial(
    run: Run, kubelet: Callable[[Json], list[Json]], tmp_path: Path
) -> None:
    pods = kubelet(PASSED)
    shown = run("preflight", "-f", changed(tmp_path, extraConf="AuthType=auth/munge"), code=1)
    assert "spec.extraConf" in shown
    assert len(pods) == 1


def test_a_configmap_of_the_file_is_a_part_of_the_configuration(
    run: Run, filled: KubernetesWorld, kubelet: Callable[[Json], list[Json]], tmp_path: Path
) -> None:
    filled.objects["clusters"]["slurm"]["spec"] = {"configFileRefs": [{"name": "more"}]}
    pods = kubelet(PASSED)
    more = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more"}, "data": {"acct_gather.conf": "#"}}
    shown = run("preflight", "-f", manifest(tmp_path, more))
    assert "looked at only as a part of configurations" in shown
    assert "would take the configuration" in shown
    assert len(pods) == 2


def test_what_reaches_no_file_of_slurm_is_not_tried(
    run: Run, filled: KubernetesWorld, kubelet: Callable[[Json], list[Json]], tmp_path: Path
) -> None:
    pods = kubelet(PASSED)
    spec = {"clusterName": "slurm", "replicas": 1}
    filled.add("nodesets", "w", spec)
    nodeset = {"apiVersion": API, "kind": "NodeSet", "metadata": {"name": "w", "namespace": "slurm"}}
    run("preflight", "-f", manifest(tmp_path, {**nodeset, "spec": {**spec, "replicas": 2}}))
    assert pods == []
    run("preflight", "-f", changed(tmp_path, extraConf="SchedulerTimeSlice=31"), "--no-trial")
    assert pods == []


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"phase": "Failed", "reason": "Evicted"}, "the pod of the trial gave no result: Evicted"),
        (ends("Failed", slurmctld=(2, "out of memory")), "gave no result: slurmctld: out of memory"),
        (
            {
                "phase": "Pending",
                "containerStatuses": [
                    {"name": "slurmctld", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "nowhere"}}}
                ],
            },
            "slurmctld: ImagePullBackOff: nowhere",
        ),
    ],
)
def test_a_trial_without_a_result_is_not_taken_for_a_good_one(
    run: Run,
    filled: KubernetesWorld,
    kubelet: Callable[[Json], list[Json]],
    tmp_path: Path,
    status: Json,
    words: str,
) -> None:
    kubelet(status)
    shown = run("preflight", "-f", changed(tmp_path, extraConf="SchedulerTimeSlice=31"), "--timeout=1", code=1)
    assert "was not asked about the configuration" in shown
    assert words in shown
    assert not filled.objects["pods"]


def test_an_operator_that_is_older_than_the_plugin_is_named(run: Run, filled: KubernetesWorld, tmp_path: Path) -> None:
    said = "usage: slurm-operator\nslurm-operator: error: unrecognized arguments: preview /input/input"
    filled.run_pod = lambda _: (ends("Failed", preview=(2, said)), "")
    shown = run("preflight", "-f", changed(tmp_path, extraConf="SchedulerTimeSlice=31"), code=1)
    assert "the operator's image did not render the configuration: slurm-operator: error: unrecognized argume" in shown


def test_a_cluster_without_a_slurmctld_ends_no_job_and_is_not_tried(
    run: Run, filled: KubernetesWorld, tmp_path: Path
) -> None:
    del filled.objects["statefulsets"]["slurm-controller"]
    assert "it has no slurmctld yet" in run("preflight", "-f", changed(tmp_path, extraConf="SchedulerTimeSlice=31"))


def test_what_a_killed_run_has_left_is_deleted_once_it_is_old(
    run: Run, filled: KubernetesWorld, kubelet: Callable[[Json], list[Json]], tmp_path: Path
) -> None:
    kubelet(PASSED)
    for name, made in (("old", "2020-01-01T00:00:00Z"), ("young", "9999-01-01T00:00:00Z")):
        filled.add("pods", name, labels=dict(trial.LABELS))
        filled.objects["pods"][name]["metadata"]["creationTimestamp"] = made
    run("preflight", "-f", changed(tmp_path, extraConf="SchedulerTimeSlice=31"))
    assert list(filled.objects["pods"]) == ["young"]


def test_jobs_that_keep_a_part_of_the_configuration_are_named(
    run: Run,
    filled: KubernetesWorld,
    fake_slurm: FakeSlurmrestd,
    kubelet: Callable[[Json], list[Json]],
    tmp_path: Path,
) -> None:
    kubelet(PASSED)
    fake_slurm.add_job(user="bob")
    before = Cluster.parse({**CLUSTER, "spec": {"extraConf": "MaxJobCount=50"}})
    filled.add("configmaps", "slurm-config-good", data=dict(render(ConfInputs.of(before, ())).files))
    shown = run("preflight", "-f", changed(tmp_path, extraConf="MaxJobCount=1"))
    assert "Stays for jobs at first" in shown


def test_a_nodeset_that_the_operator_holds_back_is_given_with_the_reason_unless_the_file_has_it() -> None:
    refused = [
        {"name": "w", "message": "spec.partition.config: slurmctld: error: Nonsense"},
        {"name": "x", "message": "metadata.name: the Cluster has a node x outside Kubernetes (spec.nodes)"},
    ]
    cluster = {"status": {"config": {"refused": refused}}}
    assert trial.held_back(cluster, ()) == {"w": "slurmctld: error: Nonsense"}
    assert trial.held_back(cluster, {"w"}) == trial.held_back({}, ()) == {}
