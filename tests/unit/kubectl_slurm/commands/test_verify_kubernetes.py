"""Checks of `verify` beside jobs: each proves what it says, and undoes what it does.

The operator is played by a program that stands for kubectl; the same with a real one is
`tests/e2e/operator/test_what_a_cluster_shows.py`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubectl_slurm.commands.verify import kubernetes as verify_kubernetes
from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules import verification
from kubectl_slurm.rules.verification import User, Verdict
from slinky_api import labels
from slinky_api.conditions import PodCondition
from slurm_client.models import PartitionState
from slurm_client.testing import FakeSlurmrestd
from tests.unit.kubectl_slurm.conftest import Run
from tests.unit.kubectl_slurm.kubernetes_world import KubernetesWorld
from tests.unit.kubectl_slurm.samples import NOW, node, partition

SLURM = "slurm:x:64030:64030::/:/bin/false\n64030\n"
READY: dict[str, Any] = {"type": "Ready", "status": "True"}
OF_CLUSTER = {labels.LABEL_CLUSTER_NAME: "slurm"}
OF_W = {**OF_CLUSTER, labels.LABEL_DAEMON: "slurmd", labels.LABEL_NODESET_NAME: "w"}


@pytest.fixture(autouse=True)
def pods(world: KubernetesWorld, fake_slurm: FakeSlurmrestd) -> None:
    """slurmctld, slurmrestd and an idle node of a NodeSet; no partition takes jobs."""
    fake_slurm.add_partition("all", state=PartitionState("DOWN", frozenset()))
    fake_slurm.add_node("w-0")
    for name, component in (("slurm-controller-0", "controller"), ("slurm-restapi-x", "restapi")):
        own = {**OF_CLUSTER, labels.LABEL_APP_COMPONENT: component}
        world.add("pods", name, labels=own, status={"conditions": [READY]})
    drained = {"type": PodCondition.SLURM_DRAINED, "status": "False", "message": "drained: kubectl slurm verify (dev)"}
    world.add("pods", "w-0", {"nodeName": "host-7"}, labels=OF_W, status={"conditions": [READY, drained]})


@pytest.fixture
def results(run: Run) -> Callable[..., dict[str, Any]]:
    def found(*arguments: str, code: int = 0, timeout: int = 120) -> dict[str, Any]:
        shown = json.loads(run("verify", f"--timeout={timeout}", "-o", "json", *arguments, code=code))
        return {one["name"]: one for one in shown}

    return found


def operator(world: KubernetesWorld, fake_slurm: FakeSlurmrestd, folder: Path) -> None:
    """Drain a node whose pod or Node is cordoned, and undrain it: at the next question to slurmrestd."""
    world.acts(f"""case "$1" in
patch) case "$*" in *'"true"'*) touch {folder}/cordoned ;; *) rm -f {folder}/cordoned ;; esac ;;
cordon) touch {folder}/cordoned ;;
uncordon) rm -f {folder}/cordoned ;;
exec) printf '{SLURM}' ;;
esac
echo "$*" >> {folder}/acted""")
    answer = world.answer

    def answered(method: str, path: str, body: bytes, token: str) -> tuple[int, bytes]:
        is_drained = fake_slurm.nodes["w-0"].is_drain and "slurm-operator" in fake_slurm.nodes["w-0"].reason
        if (folder / "cordoned").exists() != is_drained and "/nodes" in path:
            change: dict[str, Any] = {"remove": ["DRAIN"]} if is_drained else {"add": ["DRAIN"]}
            fake_slurm.set_flags("w-0", **change)
            fake_slurm.update_node("w-0", reason="" if is_drained else "slurm-operator: pod-cordon")
        return answer(method, path, body, token)

    world.answer = answered  # type: ignore[method-assign]


def test_cordons_are_seen_both_ways_and_end(
    results: Callable[..., dict[str, Any]], world: KubernetesWorld, fake_slurm: FakeSlurmrestd, tmp_path: Path
) -> None:
    operator(world, fake_slurm, tmp_path)
    found = results("--cordon-node=host-7")
    for title in (verify_kubernetes.CORDON, verify_kubernetes.NODE_CORDON, verify_kubernetes.VISIBLE):
        assert found[title]["verdict"] == "passed", found[title]
    assert found[verify_kubernetes.USERS]["detail"] == "slurm: uid 64030, gid 64030, groups 64030 in 3 daemons"
    assert not fake_slurm.nodes["w-0"].is_drain
    assert not (tmp_path / "cordoned").exists()
    acted = (tmp_path / "acted").read_text()
    assert "cordon host-7\nuncordon host-7" in acted


def test_a_cordon_that_drains_nothing_fails_and_is_taken_back(
    results: Callable[..., dict[str, Any]], world: KubernetesWorld, tmp_path: Path
) -> None:
    world.acts(f'echo "$*" >> {tmp_path}/acted')
    found = results("--cordon-node=host-7", code=1, timeout=5)
    assert found[verify_kubernetes.CORDON]["detail"] == "w-0: not drained after 5 s"
    assert found[verify_kubernetes.NODE_CORDON]["verdict"] == "FAILED"
    acted = (tmp_path / "acted").read_text()
    assert f'{{"{labels.ANNOTATION_POD_CORDON}": null}}' in acted
    assert acted.endswith("uncordon host-7\n")


def test_a_right_that_is_missing_skips_the_check_and_is_named(
    results: Callable[..., dict[str, Any]], world: KubernetesWorld
) -> None:
    world.acts(
        'case "$1" in cordon | exec) echo "Error: nodes is forbidden: User dev cannot $1" >&2; exit 1 ;; esac; echo {}'
    )
    found = results("--cordon-node=host-7", code=1, timeout=5)
    for title, verb in ((verify_kubernetes.NODE_CORDON, "cordon"), (verify_kubernetes.USERS, "exec")):
        assert found[title]["verdict"] == "skipped"
        assert f"User dev cannot {verb}" in found[title]["detail"]


def test_what_cannot_be_checked_says_what_is_missing(
    results: Callable[..., dict[str, Any]], world: KubernetesWorld, fake_slurm: FakeSlurmrestd, tmp_path: Path
) -> None:
    operator(world, fake_slurm, tmp_path)
    found = results()
    assert "--cordon-node" in found[verify_kubernetes.NODE_CORDON]["detail"]
    assert "--other-namespace" in found[verify_kubernetes.ELSEWHERE]["detail"]
    assert "own namespace" in results("--other-namespace=slurm")[verify_kubernetes.ELSEWHERE]["detail"]


@pytest.mark.parametrize(
    ("condition", "verdict", "words"),
    [
        ({"status": "False", "reason": "NotGranted", "message": "does not grant"}, "passed", "does not grant"),
        ({"status": "True"}, "FAILED", "team-b was given a token of slurm"),
    ],
)
def test_a_token_for_another_namespace_must_be_refused(
    results: Callable[..., dict[str, Any]],
    world: KubernetesWorld,
    fake_slurm: FakeSlurmrestd,
    tmp_path: Path,
    condition: dict[str, str],
    verdict: str,
    words: str,
) -> None:
    operator(world, fake_slurm, tmp_path)
    answer, asked = world.answer, []

    def answered(method: str, path: str, body: bytes, token: str) -> tuple[int, bytes]:
        if "/namespaces/team-b/" not in path:
            return answer(method, path, body, token)
        asked.append(f"{method} {path.rpartition('/')[2]}")
        found: dict[str, Any] = {"metadata": {"name": "t"}, "spec": {"secretRef": {"name": "s"}}}
        found["status"] = {"conditions": [{"type": "Ready", **condition}]}
        return 200, json.dumps({**found, "data": {"auth-token": "eA=="}}).encode()

    world.answer = answered  # type: ignore[method-assign]
    found = results("--other-namespace=team-b", code=0 if verdict == "passed" else 1)[verify_kubernetes.ELSEWHERE]
    assert (found["verdict"], words in found["detail"]) == (verdict, True)
    assert asked[0] == "POST tokens"
    assert asked[-1] == "DELETE t"


def test_a_granted_token_is_no_failure(
    results: Callable[..., dict[str, Any]], world: KubernetesWorld, fake_slurm: FakeSlurmrestd, tmp_path: Path
) -> None:
    operator(world, fake_slurm, tmp_path)
    grants = [{"namespaces": ["team-b"], "usernames": ["slurm"]}]
    world.objects["clusters"]["slurm"]["spec"] = {"auth": {"tokens": grants}}
    found = results("--other-namespace=team-b")[verify_kubernetes.ELSEWHERE]
    assert (found["verdict"], "spec.auth.tokens" in found["detail"]) == ("skipped", True)


def test_a_user_whom_daemons_know_differently_is_a_failure() -> None:
    alice = verification.user_of("alice:x:1000:2001:Alice:/home/alice:/bin/bash\n2001 2100\n")
    assert alice == User("1000", "2001", ("2001", "2100"))
    assert verification.user_of("none\nnone\n") == User()
    found = verification.alike("users", "alice", {"slurmctld": alice, "login": User(), "slurmd of w": alice})
    assert found.verdict is Verdict.FAILED
    assert "slurmctld, slurmd of w: uid 1000, gid 2001, groups 2001,2100; login: unknown" in found.detail
    assert verification.alike("users", "alice", {"slurmctld": User(), "login": User()}).verdict is Verdict.FAILED


def test_where_there_are_no_gpus_the_row_says_so() -> None:
    assert verification.without_gpu(SlurmPicture(now=NOW, nodes=(node("a"),))) == "no GPUs, not checked"
    busy = SlurmPicture(now=NOW, nodes=(node("a", "ALLOCATED", gres="gpu:2"),))
    assert verification.without_gpu(busy) == "no node with GPUs is idle: a"
    having = SlurmPicture(
        now=NOW, nodes=(node("a", partitions=("gpu",), gres="gpu:2"),), partitions=(partition("gpu"),)
    )
    assert verification.confined_gpu_partition(having, {"a": "w"}) == "gpu"
    assert verification.confined_gpu_partition(having, {}) == ""


@pytest.mark.parametrize(
    ("environment", "passes"),
    [
        ({"CUDA_VISIBLE_DEVICES": "0"}, True),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, False),
        ({"CUDA_VISIBLE_DEVICES": ""}, False),
        ({"ROCR_VISIBLE_DEVICES": "1"}, True),
        ({"ZE_AFFINITY_MASK": "0,1"}, False),
        ({"SLURM_JOB_GPUS": "3"}, True),
        ({}, False),
    ],
)
def test_a_job_counts_its_gpus_by_the_variables_of_each_maker(environment: dict[str, str], passes: bool) -> None:
    done = subprocess.run(["/bin/sh", "-c", verification.GPUS], env=environment, check=False)
    assert (done.returncode == 0) is passes


def test_a_job_counts_the_devices_that_it_can_open(tmp_path: Path) -> None:
    here = verification.DEVICES.replace("/dev/", f"{tmp_path}/")

    def passes() -> bool:
        return subprocess.run(["/bin/sh", "-c", here], check=False).returncode == 0

    assert not passes()
    (tmp_path / "nvidia0").symlink_to("/dev/null")
    (tmp_path / "nvidiactl").symlink_to("/dev/null")
    assert passes()
    (tmp_path / "nvidia1").symlink_to("/dev/null")
    assert not passes()
