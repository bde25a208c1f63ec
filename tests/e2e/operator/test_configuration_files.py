"""More contents of a configuration, and more invalid ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from hack.localkube.kubectl import KubectlFailed, wait_for
from tests.support.configuring import (
    CONFIG,
    HASH,
    PREFLIGHTS,
    edit,
    is_loaded,
    refused_and_mended,
    rendered,
    shows,
    wait_live,
    wait_reason,
)
from tests.support.pods import identities
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.full]


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster with two nodes."""
    instance = new_slurm("config")
    instance.create(extraConf="KillWait=5")
    instance.nodeset("compute", 2)
    instance.wait_ready()
    instance.wait_idle(["compute-0", "compute-1"])
    return instance


@pytest.fixture(scope="module", autouse=True)
def job(slurm: SlurmInKubernetes) -> Iterator[str]:
    """A job on compute-0, from the first test to the last, that no change may end."""
    found = slurm.hold("compute-0")
    yield found
    assert slurm.job_state(found) == "RUNNING"
    slurm.release(found, "compute-0")
    slurm.wait_job(found, "COMPLETED")


@pytest.fixture(scope="module", autouse=True)
def _preflights_leave_no_trace(slurm: SlurmInKubernetes) -> Iterator[None]:
    """After twenty preflights, Slurm and Kubernetes are as before."""
    nodes = slurm.control("sinfo", "--noheader", "--Node", "--format=%N")
    maps = names(slurm, "configmaps")
    yield
    done = slurm.kube("get", "events", "--output=name", "--field-selector=reason=Scheduled").split()
    count = len([one for one in done if "preflight" in one])
    for number in range(count, 20):
        wait_live(slurm, edit(slurm, extraConf=f"KillWait={60 + number}"))
    wait_for("the same nodes", lambda: slurm.control("sinfo", "--noheader", "--Node", "--format=%N") == nodes, PATIENCE)
    wait_for("the same maps", lambda: names(slurm, "configmaps") - {"mine", "big-1", "big-2"} == maps, PATIENCE)
    assert "preflight" not in slurm.kube("logs", f"{slurm.name}-controller-0", "--container=slurmctld")


def names(slurm: SlurmInKubernetes, kind: str) -> set[str]:
    """Names of all objects of a kind but those that Kubernetes makes in each namespace, when it gets round to it."""
    return {one["metadata"]["name"] for one in slurm.get(kind)["items"]} - {"kube-root-ca.crt"}


@pytest.fixture(autouse=True)
def _nothing_is_restarted(slurm: SlurmInKubernetes) -> Iterator[None]:
    """No pod is replaced, no daemon restarted, and of preflights nothing is left."""
    before = identities(slurm)
    yield
    assert identities(slurm) == before
    wait_for("no preflight left", lambda: not slurm.get("pods,configmaps", PREFLIGHTS)["items"], PATIENCE)


BROKEN: dict[str, tuple[Mapping[str, Any], str, str]] = {
    "bad value": ({"extraConf": "SlurmctldTimeout=abc"}, "ConfigRefused", '"abc" is not a valid number'),
    "bad plugin": ({"extraConf": "SchedulerType=sched/bogus"}, "ConfigRefused", "sched/bogus"),
    "bad partition key": (
        {"partitions": [{"name": "x", "nodeSets": ["compute"], "config": "Bogus=1"}]},
        "ConfigRefused",
        "Bogus",
    ),
    "plugin that ends slurmd": (
        {"configFiles": {"plugstack.conf": "required /nosuch.so\n"}},
        "ConfigRefused",
        "nosuch.so",
    ),
    "script without shebang": (
        {"prologScripts": {"a.sh": "echo hello\n"}},
        "ConfigRefused",
        "spec.prologScripts[a.sh]",
    ),
    "missing ConfigMap": ({"configFileRefs": [{"name": "nosuch"}]}, "ConfigSourceNotFound", "no ConfigMap nosuch"),
    "topology without file": (
        {"extraConf": "TopologyPlugin=topology/tree"},
        "ConfigRefused",
        "topology",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_what_slurm_would_refuse_changes_nothing_and_is_told(slurm: SlurmInKubernetes, kind: str) -> None:
    refused_and_mended(slurm, *BROKEN[kind])


def test_a_gres_file_is_live_soon(slurm: SlurmInKubernetes) -> None:
    files = {"gres.conf": "Name=shard Count=0\n"}
    wait_live(slurm, edit(slurm, extraConf="KillWait=5\nGresTypes=shard,gpu", configFiles=files))
    assert shows(slurm, "GresTypes = shard,gpu") or shows(slurm, "GresTypes = gpu,shard")
    # slurmctld runs it; a slurmd has it a moment later.
    cached = ("exec", "compute-1", "--container=slurmd", "--", "cat", "/run/slurm/conf/gres.conf")
    wait_for("the file at slurmd", lambda: "Name=shard" in slurm.kube(*cached), PATIENCE)
    wait_live(slurm, edit(slurm, extraConf="KillWait=5", configFiles=None))


def test_a_topology_file_is_live_soon(slurm: SlurmInKubernetes) -> None:
    files = {"topology.conf": "SwitchName=s0 Nodes=compute-[0-1]\n"}
    wait_live(slurm, edit(slurm, configFiles=files))
    assert "SwitchName=s0" in slurm.control("scontrol", "show", "topology")
    wait_live(slurm, edit(slurm, configFiles=None))


def test_a_referenced_configmap_is_followed(slurm: SlurmInKubernetes) -> None:
    def give(wait: int) -> None:
        data = {"job_submit.txt": f"{wait}"}
        slurm.kubectl.apply(
            [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "mine", "namespace": slurm.namespace},
                    "data": data,
                }
            ]
        )

    give(1)
    wait_live(slurm, edit(slurm, configFileRefs=[{"name": "mine"}]))
    give(2)

    def live() -> bool:
        status = slurm.get("cluster", slurm.name)["status"]["config"]
        written = slurm.get("configmap", CONFIG)
        digest = written["metadata"]["annotations"][HASH]
        return bool(written["data"].get("job_submit.txt") == "2" and status["appliedHash"] == digest)

    wait_for("the changed ConfigMap live", live, PATIENCE)
    wait_live(slurm, edit(slurm, configFileRefs=None))


def test_a_line_break_in_a_partition_is_refused_at_apply(slurm: SlurmInKubernetes) -> None:
    with pytest.raises(KubectlFailed, match=r"spec\.partitions\[0\]\.config"):
        edit(slurm, partitions=[{"name": "x", "config": "MaxTime=1\nPartitionName=y"}])


def test_too_much_for_a_configmap_is_refused(slurm: SlurmInKubernetes) -> None:
    name = "big"
    for number in (1, 2):
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{name}-{number}", "namespace": slurm.namespace},
            "data": {f"big{number}.conf": "#" * 500_000},
        }
        slurm.kubectl("create", "--filename=-", stdin=json.dumps(body))
    generation = edit(slurm, configFileRefs=[{"name": "big-1"}, {"name": "big-2"}])
    wait_reason(slurm, generation, "ConfigRefused", "bytes")
    wait_live(slurm, edit(slurm, configFileRefs=None))


def test_a_nodeset_that_slurm_refuses_holds_up_nobody(slurm: SlurmInKubernetes) -> None:
    slurm.nodeset("bad", 1, partition={"config": "MaxTime=banana"})
    slurm.nodeset("late", 1)
    slurm.wait_idle_nodes("late-0")
    wait_for("the word to NodeSet bad", lambda: any("banana" in line for line in slurm.events("bad")), PATIENCE)
    slurm.nodeset("bad", 1, partition={"config": "MaxTime=60"})
    slurm.wait_idle_nodes("bad-0")
    slurm.kube("delete", "nodeset", "bad", "late", timeout=PATIENCE)
    wait_for("their partitions gone", lambda: "late" not in rendered(slurm) and is_loaded(slurm), PATIENCE)
