"""A report holds no secret, and a conformance run fails where something failed."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from kubectl_slurm.facts.objects import PodFacts
from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules import redaction, verification
from kubectl_slurm.rules.verification import Result, Verdict
from slurm_client.testing import FakeSlurmrestd
from tests.unit.kubectl_slurm.conftest import Run
from tests.unit.kubectl_slurm.kubernetes_world import KubernetesWorld
from tests.unit.kubectl_slurm.samples import NOW, node, partition

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJyb290In0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"SLURM_JWT={JWT} was sent", JWT),
        (f"a token {JWT}.", JWT),
        ("StoragePass=hunter2x", "hunter2x"),
        ("Authorization: Bearer abcdefgh12345", "abcdefgh12345"),
        ('"password": "hunter2x",', "hunter2x"),
        ("api-key: hunter2x", "hunter2x"),
        ("AWS_SECRET_ACCESS_KEY=hunter2x", "hunter2x"),
        ("mysql://slurm:hunter2x@db/slurm", "hunter2x"),
        ("StoragePass=abc;def,hunter2x", "hunter2x"),
        ('password="foo hunter2x" next', "hunter2x"),
        ("MYSQL_PWD=hunter2x", "hunter2x"),
        (r"{\"password\": \"foo hunter2x\"}", "hunter2x"),
        ("Authorization: Basic c2x1cm06aHVudGVyMg==", "c2x1cm06aHVudGVyMg"),
        ("OPENAI_KEY=hunter2x", "hunter2x"),
        ("mysql --password hunter2x --host db", "hunter2x"),
        ("-----BEGIN RSA PRIVATE KEY-----\nhunter2x\n-----END RSA PRIVATE KEY-----", "hunter2x"),
        ("-----BEGIN PRIVATE KEY-----\nhunter2x", "hunter2x"),
    ],
)
def test_what_looks_like_a_secret_is_replaced(text: str, secret: str) -> None:
    assert secret in text
    assert secret not in redaction.text(text)
    assert redaction.REMOVED in redaction.text(text)


def test_what_follows_a_quoted_secret_is_kept() -> None:
    assert redaction.text('password="foo hunter2x" next') == f"password={redaction.REMOVED} next"


@pytest.mark.parametrize(
    "text",
    ["monkey: b", "the keyboard: c", "JobId=7 started", "PartitionName=all Nodes=ALL", "reason: new fans, 14:03"],
)
def test_what_does_not_is_kept(text: str) -> None:
    assert redaction.text(text) == text


def test_objects_keep_no_values_of_variables_and_no_data_of_secrets() -> None:
    pod = {
        "kind": "Pod",
        "metadata": {"name": "w-0", "managedFields": [{}], "annotations": {"note": f"x {JWT}"}},
        "spec": {
            "containers": [{"env": [{"name": "A", "value": "hunter2x"}, {"name": "B", "valueFrom": {"fieldRef": {}}}]}],
            "rootPassword": "hunter2x",
        },
    }
    shown = json.dumps(redaction.thing([pod, {"kind": "Secret", "data": {"k": "aHVudGVyMng="}, "type": "t"}]))
    assert "hunter2x" not in shown
    assert "aHVudGVyMng" not in shown
    assert JWT not in shown
    assert "managedFields" not in shown
    assert '"name": "A"' in shown
    assert "fieldRef" in shown


def test_arguments_fields_and_headers_keep_no_secret() -> None:
    found = redaction.thing(
        {
            "command": ["server", "--password", "hunter2x", "--port", "7"],
            "token": "hunter2x",
            "data": {"jwt.key": "hunter2x"},
            "headers": [{"name": "X-Token", "value": "hunter2x"}],
            "secretName": "kept",
        }
    )
    assert "hunter2x" not in json.dumps(found)
    assert found["command"] == ["server", "--password", redaction.REMOVED, "--port", "7"]
    assert found["secretName"] == "kept"


def test_scripts_of_users_are_not_in_a_report() -> None:
    job = {"kind": "SlurmJob", "spec": {"clusterName": "slurm", "script": "curl -u me:hunter2x", "args": ["hunter2x"]}}
    shown = json.dumps(redaction.thing(job))
    assert "hunter2x" not in shown
    assert "clusterName" in shown


def test_an_object_of_any_depth_ends() -> None:
    deep: object = "x"
    for _ in range(500):
        deep = {"a": [deep]}
    assert redaction.REMOVED in json.dumps(redaction.thing(deep))


def test_a_report_reads_each_secret_once_and_is_for_its_user_alone(
    run: Run, world: KubernetesWorld, fake_slurm: FakeSlurmrestd, tmp_path: Path
) -> None:
    world.add("slurmjobs", "j", {"script": "curl -u me:hunter2x"})
    world.add("secrets", "slurm-auth-slurm", data={})
    file = tmp_path / "report.tar.gz"
    run("report", "--to", str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    assert len([line for line in world.asked if line.endswith("/secrets/slurm-auth-slurm")]) == 1
    with tarfile.open(file) as archive:
        held = archive.extractfile("slurm-report/objects/slurmjobs.json")
        assert held is not None
        assert "hunter2x" not in held.read().decode()


def test_a_file_that_cannot_be_written_is_told_before_anything_is_asked(
    run: Run, world: KubernetesWorld, tmp_path: Path
) -> None:
    assert "/no/such/x" in run("report", "--to", "/no/such/x", code=1)
    assert world.asked == []
    # What fails later leaves no file.
    world.objects["clusters"].clear()
    run("report", "--to", str(tmp_path / "x"), code=5)
    assert not (tmp_path / "x").exists()


def pod(name: str, *, ready: bool = True) -> PodFacts:
    return PodFacts(name=name, nodeset="cpu", ready=ready)


def test_names_are_compared_both_ways() -> None:
    nodes = (node("cpu-0"), node("hpc-1", "IDLE"))
    assert verification.names(nodes, [pod("cpu-0")]).verdict is Verdict.PASSED
    renamed = PodFacts(name="x", slurm_node="cpu-0", nodeset="cpu", ready=True)
    assert verification.names(nodes, [renamed]).verdict is Verdict.PASSED
    assert verification.names(nodes, []).verdict is Verdict.SKIPPED
    assert verification.names(nodes, [pod("cpu-0"), pod("cpu-1", ready=False)]).verdict is Verdict.PASSED
    found = verification.names(nodes, [pod("cpu-0"), pod("cpu-1")])
    assert (found.verdict, "cpu-1" in found.detail) == (Verdict.FAILED, True)
    stray = node("cpu-9", "IDLE+DYNAMIC_NORM", extra="slurm/cpu")
    found = verification.names((*nodes, stray), [pod("cpu-0")])
    assert (found.verdict, "cpu-9" in found.detail) == (Verdict.FAILED, True)


def test_partitions_and_nodes_are_those_that_can_run_a_job_now() -> None:
    nodes = (
        node("a", partitions=("one", "off")),
        node("b", "IDLE+DRAIN", partitions=("two",)),
        node("c", partitions=("gpu",), gres="gpu:a100:2"),
    )
    parts = (*(partition(name) for name in ("one", "two", "gpu")), partition("off", "DOWN"))
    seen = SlurmPicture(now=NOW, nodes=nodes, partitions=parts)
    assert verification.partitions(seen) == ["gpu", "one"]
    assert verification.gpu_partition(seen) == "gpu"
    assert verification.confined_partition(seen, {"a": "set"}) == "one"
    assert verification.confined_partition(seen, {"b": "set"}) == ""
    assert verification.idle(seen) == "a"
    assert verification.idle(SlurmPicture(now=NOW)) == ""


def test_what_was_skipped_fails_nothing() -> None:
    assert verification.passed([Result("a", Verdict.PASSED), Result("b", Verdict.SKIPPED)])
    assert not verification.passed([Result("a", Verdict.PASSED), Result("b", Verdict.FAILED)])
