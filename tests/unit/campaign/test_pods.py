"""Pods of the stream: what they ask for, and what they write."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from slinky_api import labels
from tests.campaign.lanes import pods
from tests.campaign.lanes.pods import POD_KINDS, job_name, pod, witness_of_pod
from tests.campaign.witness import lines_of


def test_a_pod_that_slurm_places_has_its_gate_and_one_on_a_virtual_node_has_none() -> None:
    placed, virtual = (pod(name, {"seconds": 3}, "m-7", "image", "/folder") for name in POD_KINDS)
    assert placed["spec"]["schedulingGates"] == [{"name": labels.GATE_BRIDGE}]
    assert placed["metadata"]["labels"] == {labels.LABEL_BRIDGE_POD: "true"}
    assert "schedulingGates" not in virtual["spec"]
    assert virtual["spec"]["nodeSelector"] == {"kubernetes.io/hostname": pods.VIRTUAL_NODE}
    for one in (placed, virtual):
        assert one["metadata"]["name"] == "m-7"
        assert one["spec"]["restartPolicy"] == "Never"


@pytest.mark.parametrize("name", POD_KINDS)
def test_the_job_of_a_pod_is_named_by_its_uid(name: str) -> None:
    assert job_name(name, "u-1") == ("bridge-u-1" if POD_KINDS[name].is_bridged else "pod-u-1")


def test_the_program_of_a_pod_writes_what_a_witness_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods, "WITNESS", str(tmp_path))
    program = witness_of_pod(0, "m-7", "$NODE")
    subprocess.run(["sh", "-c", program], check=True, env={"PATH": "/usr/bin:/bin", "NODE": "node-2"})
    lines = [*lines_of((tmp_path / "m-7").read_text())]
    assert [(one.what, one.job, one.node) for one in lines] == [("start", "pod", "node-2"), ("end", "pod", "node-2")]
    assert lines[0].at <= lines[1].at
