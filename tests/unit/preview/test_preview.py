"""`slurm-operator preview` renders what the operator would, and builds a trial that is none of the operator's."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kubectl_slurm.rules.changes import trial
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.cli import main
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.parts.slurmctld import manifests
from slinky_operator.preview import command, configuration
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import ConfInputs, NodeSetConf, render
from tests.unit.cluster.world import cluster_object, node_set_object

IMAGES = Images({"slurmctld": "slurmctld:1", "slurmrestd": "slurmrestd:1", "agent": "operator:1", "slurmd": "slurmd:1"})


def question(spec: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """About a Cluster with a NodeSet `w` and a slurmctld that runs; its spec is to become this one."""
    obj = cluster_object(spec)
    pod = manifests.stateful_set(Cluster.parse(cluster_object()), IMAGES, {})["spec"]["template"]["spec"]
    found = {
        "name": "kubectl-slurm-1",
        "cluster": obj,
        "nodeSets": [node_set_object("w")],
        "configMaps": [],
        "running": {},
        "slurmctld": pod,
        "slurmds": [],
        "slurm": None,
    }
    return {**found, **more}


def running(spec: Mapping[str, Any]) -> dict[str, str]:
    """The files of a Cluster's spec."""
    cluster, node_set = Cluster.parse(cluster_object(spec)), NodeSet.parse(node_set_object("w"))
    return dict(render(ConfInputs.of(cluster, [NodeSetConf.of(node_set)])).files)


def asked(jobs: list[dict[str, Any]], **states: str) -> dict[str, Any]:
    return {"jobs": jobs, "records": len(jobs), "reservations": [], "states": states, "nodes": 1}


def test_what_changes_nothing_is_not_tried() -> None:
    found = configuration.preview(question({}, running=running({})))
    assert (found["change"], found["problems"], found["stays"]) == (False, [], [])
    assert "pod" not in found


def test_a_change_is_tried_by_a_pod_that_is_none_of_the_operators() -> None:
    found = configuration.preview(question({"extraConf": "SchedulerTimeSlice=31"}, running=running({})))
    for obj in (found["pod"], found["configMap"]):
        assert obj["metadata"] == {"name": "kubectl-slurm-1", "labels": dict(trial.LABELS)}
        assert not naming.is_preflight("slurm", obj["metadata"]["name"])
    spec = found["pod"]["spec"]
    assert [one["name"] for one in spec["containers"]] == ["slurmctld", "slurmd-0"]
    assert {one["configMap"]["name"] for one in spec["volumes"] if "configMap" in one} == {"kubectl-slurm-1"}
    assert "SchedulerTimeSlice=31" in found["configMap"]["data"]["slurm.conf"]
    assert found["slurmds"] == {"slurmd-0": ["w"]}
    assert spec["securityContext"]["runAsNonRoot"] is True


def test_what_the_operator_would_not_write_is_a_problem_with_its_field() -> None:
    found = configuration.preview(question({"extraConf": "AuthType=auth/munge"}, running=running({})))
    assert found["problems"]
    assert "spec.extraConf" in found["problems"][0]
    assert "pod" not in found
    found = configuration.preview(question({"configFileRefs": [{"name": "nosuch"}]}, running=running({})))
    assert "nosuch" in found["problems"][0]
    found = configuration.preview(question({"partitions": 3}))
    assert "spec.partitions" in found["problems"][0]


def test_what_jobs_need_stays_and_names_them() -> None:
    before = running({"partitions": [{"name": "old", "nodeSets": ["w"], "config": "State=INACTIVE"}]})
    pending = {"id": 7, "state": ["PENDING"], "partition": "old"}
    found = configuration.preview(question({}, running=before, slurm=asked([pending], old="INACTIVE", all="UP")))
    assert "old" in found["stays"][0]
    assert "7" in found["stays"][0]
    assert "PartitionName=old" in found["configMap"]["data"]["slurm.conf"]


def test_configmaps_are_read_as_the_operator_reads_them() -> None:
    source = {"metadata": {"name": "more"}, "data": {"gres.conf": "Name=gpu Count=1\n"}}
    found = configuration.preview(
        question({"configFileRefs": [{"name": "more"}]}, running=running({}), configMaps=[source])
    )
    assert "Name=gpu" in found["configMap"]["data"]["gres.conf"]


def test_the_command_answers_in_marked_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "input"
    file.write_bytes(trial.packed(question({"extraConf": "SchedulerTimeSlice=31"})))
    assert main(["preview", str(file)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert all(line.startswith(command.MARK) and len(line) < 9000 for line in printed)
    found = trial.answer(["a library says something", *printed])
    assert found is not None
    assert found["pod"]["metadata"]["name"] == "kubectl-slurm-1"


@pytest.mark.parametrize(
    "data", [b"", b"x", gzip.compress(b"[]", mtime=0), gzip.compress(b"{", mtime=0), gzip.compress(b"{}", mtime=0)]
)
def test_what_is_no_question_is_an_error_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes
) -> None:
    file = tmp_path / "input"
    file.write_bytes(data)
    assert command.main([str(file)]) == command.UNUSABLE
    assert capsys.readouterr().err.startswith("slurm-operator preview: the input cannot be used: ")


def test_an_input_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "LARGEST", 1000)
    with pytest.raises(ValueError, match="larger than 1000"):
        command.unpacked(gzip.compress(json.dumps({"a": "x" * 2000}).encode()))


def test_a_node_that_is_live_stays_so_and_one_that_waits_stays_left_out() -> None:
    spec = {"nodes": [{"name": f"metal{number}", "config": "CPUs=4"} for number in (1, 2)]}
    files = running(spec)
    waiting = files["slurm.conf"].replace("NodeName=metal2 CPUs=4", "NodeName=metal2 CPUs=4 State=FUTURE")
    assert waiting != files["slurm.conf"]
    found = configuration.preview(question(spec, running={**files, "slurm.conf": waiting}))
    assert found["change"] is False, "what the operator has written, it would write again"


def test_a_nodeset_that_the_operator_holds_back_keeps_its_part() -> None:
    node_sets = [node_set_object("w", {"partition": {"config": "Nonsense=1"}})]
    held = {"w": "slurmctld: error: Nonsense"}
    found = configuration.preview(question({}, running=running({}), nodeSets=node_sets, held=held))
    assert (found["change"], found["problems"]) == (False, [])
    assert [(one["nodeSet"], "Nonsense" in one["why"]) for one in found["refused"]] == [("w", True)]
    assert configuration.preview(question({}, running=running({}), nodeSets=node_sets))["change"]
