"""What the test of random arrivals would see of cores that are promised twice, and of pods and jobs that are apart."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from slinky_api import labels
from slinky_operator.kube.objects import Object
from tests.support.bridged.ledger import Ledger


def pod(name: str, job: str, node: str, cpu: str = "1500m") -> Object:
    pin = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [pin]}}
    about = {"name": name, "namespace": "team", "annotations": {labels.ANNOTATION_BRIDGE_SLURMJOB: job}}
    spec = {"containers": [{"resources": {"requests": {"cpu": cpu}}}], "affinity": {"nodeAffinity": required}}
    return {"metadata": about, "spec": spec, "status": {"phase": "Running"}}


def line(number: int, name: str, *cores: str, state: str = "RUNNING") -> str:
    given = " ".join(f"Nodes={one.partition(':')[0]} CPU_IDs={one.partition(':')[2]} Mem=64 GRES=" for one in cores)
    return f"JobId={number} JobName={name} UserId=daemon(1) JobState={state} Partition=pods NumNodes=1 {given}"


async def looked(pods: list[Object], *lines: str) -> Ledger:
    """The ledger after a look at pods of SlurmJobs whose names are the numbers of their jobs, and at these jobs."""
    site = SimpleNamespace(
        groups=pods,
        kube=SimpleNamespace(find=lambda _, name, __: {"status": {"jobId": int(name)}}),
    )
    ledger = Ledger(cast("Any", site), cast("Any", lambda *_: SimpleNamespace(stdout="\n".join(lines))))
    await ledger.look()
    return ledger


@pytest.mark.parametrize(
    ("lines", "seen"),
    [
        ([line(1, "a", "k[1-2]:0-1"), line(2, "b", "k1:2", "k3:0-1")], []),
        ([line(1, "a", "k[1-2]:0-1"), line(2, "b", "k2:1,3")], ["core ('k2', 1): jobs 1 and 2"]),
        ([line(1, "a", "k1:0"), line(2, "a", state="PENDING")], ["2 jobs named a"]),
        ([line(1, "a", "k1:0", state="CANCELLED"), line(2, "a", "k1:0")], []),
    ],
)
async def test_a_core_is_that_of_one_job_and_a_group_has_one_job(lines: list[str], seen: list[str]) -> None:
    assert (await looked([], *lines)).twice == seen


async def test_pods_have_no_more_cores_of_a_node_than_their_job_there() -> None:
    ledger = await looked([pod("a", "1", "k1"), pod("b", "1", "k1")], line(1, "a", "k1:0-2", "k2:0"))
    assert ledger.twice == ["pods of job 1 have 4 cores of k1, and Slurm gave 3"]


async def test_a_pod_without_a_running_job_and_a_job_without_a_pod_are_noted() -> None:
    ledger = await looked([pod("a", "1", "k1")], line(1, "a", state="CANCELLED"), line(2, "b", "k1:0"))
    assert set(ledger.lonely) == {"pod a of job 1", "job 2 b"}
    assert ledger.left == ["2 b RUNNING"]
