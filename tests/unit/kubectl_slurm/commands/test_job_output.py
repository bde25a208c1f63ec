"""`logs job/ID`: where the output of a job is read, as whom, and what is said where it cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubectl_slurm.rules.jobs import job as rules
from slinky_api import labels
from slurm_client.testing import FakeSlurmrestd
from tests.unit.kubectl_slurm.conftest import Run
from tests.unit.kubectl_slurm.kubernetes_world import KubernetesWorld, refusal
from tests.unit.kubectl_slurm.samples import job

OUTPUT = "/var/spool/job-output/7.out"


@pytest.fixture(autouse=True)
def nodes(world: KubernetesWorld, fake_slurm: FakeSlurmrestd, tmp_path: Path) -> None:
    """A node of a NodeSet; commands in its pod are written down."""
    fake_slurm.add_node("w-0")
    world.add("pods", "w-0", labels={labels.LABEL_NODESET_NAME: "w"})
    world.acts(f'echo "$@" > {tmp_path}/acted; printf "one\\ntwo\\n"')


def running(fake_slurm: FakeSlurmrestd, **values: Any) -> int:
    given = {
        "user": "alice",
        "user_id": 1000,
        "group_id": 2001,
        "standard_output_expanded": OUTPUT,
        "batch_host": "w-0",
    }
    return fake_slurm.add_job(nodes=["w-0"], **{**given, **values}).id


def test_the_file_of_a_job_is_read_on_its_node_as_its_user(
    run: Run, fake_slurm: FakeSlurmrestd, tmp_path: Path
) -> None:
    assert run("logs", f"job/{running(fake_slurm)}", "--lines=5") == "one\ntwo\n"
    acted = (tmp_path / "acted").read_text().split()
    assert acted[:4] == ["exec", "--namespace=slurm", "w-0", "--container=slurmd"]
    assert acted[-4:] == ["1000", "2001", "5", OUTPUT]


def test_errors_have_a_file_of_their_own_or_go_where_the_output_goes(
    run: Run, fake_slurm: FakeSlurmrestd, tmp_path: Path
) -> None:
    run("logs", f"job/{running(fake_slurm, standard_error_expanded='/tmp/7.err')}", "--stderr")
    assert (tmp_path / "acted").read_text().split()[-1] == "/tmp/7.err"
    assert rules.output_of(job(1, standard_output_expanded=OUTPUT), "stderr") == OUTPUT
    assert rules.output_of(job(1, standard_output="slurm-%j.out"), "stdout") == ""


def test_the_log_pod_of_a_slurmjob_comes_first(run: Run, world: KubernetesWorld, fake_slurm: FakeSlurmrestd) -> None:
    number = running(fake_slurm)
    world.add("slurmjobs", "train", status={"jobId": number})
    world.objects["slurmjobs"]["train"]["metadata"]["uid"] = "u"
    containers = [{"name": "stdout"}, {"name": "stderr"}]
    world.add("pods", "train-logs", {"containers": containers}, labels={labels.LABEL_JOB_LOGS: "true"})
    world.objects["pods"]["train-logs"]["metadata"]["ownerReferences"] = [{"uid": "u"}]
    world.logs["train-logs"] = "epoch 1\n"
    assert run("logs", f"job/{number}") == "epoch 1\n"


def test_without_a_right_on_slurmjobs_the_file_is_read(
    run: Run, world: KubernetesWorld, fake_slurm: FakeSlurmrestd
) -> None:
    answer = world.answer

    def answered(method: str, path: str, body: bytes, token: str) -> tuple[int, bytes]:
        if "/slurmjobs" in path:
            return refusal(403, 'slurmjobs is forbidden: User "dev" cannot list resource "slurmjobs"')
        return answer(method, path, body, token)

    world.answer = answered  # type: ignore[method-assign]
    assert run("logs", f"job/{running(fake_slurm)}") == "one\ntwo\n"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"standard_output_expanded": "/dev/null"}, "it writes no file"),
        ({"batch_host": "gone-0"}, "on node gone-0, which has no pod in namespace 'slurm': read it there"),
    ],
)
def test_what_cannot_be_read_says_why_and_what_to_do(
    run: Run, fake_slurm: FakeSlurmrestd, values: dict[str, Any], words: str
) -> None:
    number = running(fake_slurm, **values)
    shown = run("logs", f"job/{number}", code=5)
    assert words in shown
    assert f"kubectl slurm logs job/{number} --about --namespace=slurm" in shown


def test_jobs_that_wait_and_jobs_that_slurm_forgot_have_a_sentence(run: Run, fake_slurm: FakeSlurmrestd) -> None:
    waiting = fake_slurm.add_job(user="alice").id
    assert "it is PENDING and has not started" in run("logs", f"job/{waiting}", code=5)
    assert "Slurm does not know it any more" in run("logs", "job/9999999", code=5)


def test_a_refused_command_is_named(run: Run, world: KubernetesWorld, fake_slurm: FakeSlurmrestd) -> None:
    world.acts('echo "error: pods w-0 is forbidden: User dev cannot create resource pods/exec" >&2; exit 1')
    shown = run("logs", f"job/{running(fake_slurm)}", code=5)
    assert "User dev cannot create resource pods/exec" in shown


def test_what_slurmctld_says_is_there_too(run: Run, world: KubernetesWorld, fake_slurm: FakeSlurmrestd) -> None:
    own = {labels.LABEL_CLUSTER_NAME: "slurm", labels.LABEL_APP_COMPONENT: "controller"}
    world.add("pods", "slurm-controller-0", labels=own)
    world.logs["slurm-controller-0"] = "sched: Allocate JobId=7\nother JobId=77\n"
    assert run("logs", "job/7", "--about") == "sched: Allocate JobId=7\n"
