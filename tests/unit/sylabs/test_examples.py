"""The eight examples of wlm-operator and of its fork, in a Cluster with `jobs.sylabs: {}`: which run as they are.

Their scripts are shorter here; selectors, input and results are theirs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from slinky_operator.sylabs.partitions import VALID_S
from slinky_operator.sylabs.plan import REFUSED_S
from tests.unit.sylabs.worlds import WLM, OldWorld, old_world

ONE_NODE = "#!/bin/sh\n#SBATCH --nodes=1\nsrun hostname\n"
TWO_NODES = "#!/bin/bash\n#SBATCH -J mpi\n#SBATCH -N 2 # nodes\n#SBATCH --time=00:05:00\nhostname\n"
OUTPUT = "#!/bin/sh\n#SBATCH --nodes=1\n#SBATCH --output cow.out\nhostname\n"
INPUT = "#!/bin/sh\n#SBATCH --nodes=1\nmkdir bar\ncp inputs/foo.txt bar/output.txt\n"
CUDA = {"wlm.sylabs.io/cuda": 10}
CONTAINERS = {"wlm.sylabs.io/containers": "singularity"}
HOST = {"kubernetes.io/hostname": "slurm-minikube-cpu"}


def on_host(name: str) -> dict[str, Any]:
    return {"name": name, "hostPath": {"path": f"/home/{name}", "type": "DirectoryOrCreate"}}


BATCH: dict[str, Any] = {"batch": ONE_NODE, "nodeSelector": CUDA}
COW: dict[str, Any] = {
    "batch": OUTPUT,
    "nodeSelector": CONTAINERS,
    "results": {"from": "cow.out", "mount": on_host("data")},
}
FOX: dict[str, Any] = {
    "batch": TWO_NODES,
    "nodeSelector": CONTAINERS,
    "results": {"from": "fox.tar.gz", "mount": {"name": "nfs", "nfs": {"server": "192.168.1.41", "path": "/results"}}},
}
HELLO: dict[str, Any] = {"batch": ONE_NODE, "nodeSelector": HOST}
FILES: dict[str, Any] = {
    "batch": INPUT,
    "nodeSelector": HOST,
    "prepare": {"to": ".", "mount": on_host("inputs")},
    "results": {"from": "bar", "mount": on_host("outputs")},
}
EXAMPLES: dict[str, tuple[dict[str, Any], str]] = {
    "wlm-operator: batch-example": (BATCH, "10"),
    "wlm-operator: cow": (COW, "spec.results.mount.hostPath"),
    "wlm-operator: fox": (FOX, "spec.results.mount.nfs"),
    "fork: batch-example": (BATCH, "10"),
    "fork: cow": (COW, "spec.results.mount.hostPath"),
    "fork: fox": (FOX, "spec.results.mount.nfs"),
    "fork: hello": (HELLO, "cpu"),
    "fork: prepare-and-results": (FILES, "spec.prepare.mount.hostPath"),
}
"""Each with the partition in which it runs as it is, or the field that is refused."""
PARTITIONS = ("10", "singularity", "cpu")


@pytest.fixture
async def world() -> AsyncIterator[OldWorld]:
    async with old_world() as one:
        yield one


@pytest.mark.parametrize("example", EXAMPLES)
async def test_an_example_as_it_is(world: OldWorld, example: str) -> None:
    for name in PARTITIONS:
        world.slurm.world.add_partition(name)
    spec, expected = EXAMPLES[example]
    world.old(WLM, "example", **spec)
    if expected in PARTITIONS:
        await world.runs(WLM, "example")
        (job,) = world.in_slurm()
        assert job.partition == expected
    else:
        await world.look(WLM, "example")
        shown = world.shown(WLM, "example")
        assert (shown["status"], shown["reason"]) == ("Failed", "InvalidSpec")
        assert shown["message"].startswith(f"{expected}: write persistentVolumeClaim: {{claimName: NAME}} with a claim")


@pytest.mark.parametrize("example", [BATCH, COW, HELLO])
async def test_without_a_partition_of_that_name(world: OldWorld, example: dict[str, Any]) -> None:
    world.old(WLM, "example", **example)
    result = await world.look(WLM, "example")
    shown = world.shown(WLM, "example")
    assert (shown["status"], shown["reason"]) == ("Failed", "InvalidSpec")
    assert "Slurm has no partition" in shown["message"]
    # Several Clusters may serve a namespace, in turn.
    assert "(spec.jobs.sylabs.labels of Cluster " in shown["message"]
    # A partition that is created later is found: nothing tells of it.
    assert result.requeue_after == REFUSED_S
    if "results" not in example:
        for name in PARTITIONS:
            world.slurm.world.add_partition(name)
        world.passed += VALID_S + 1
        await world.runs(WLM, "example")


@pytest.mark.parametrize(
    ("partitions", "expected"), [(("cpu",), "cpu"), (("minikube-cpu", "cpu"), "minikube-cpu"), (("a-cpu",), None)]
)
async def test_a_virtual_node_is_its_host_and_its_partition(
    world: OldWorld, partitions: tuple[str, ...], expected: str | None
) -> None:
    for name in partitions:
        world.slurm.world.add_partition(name)
    world.old(WLM, "example", batch=ONE_NODE, nodeSelector={"kubernetes.io/hostname": "slurm-a-minikube-cpu"})
    await world.look(WLM, "example")
    child = world.child(WLM, "example")
    assert (child and child["spec"]["partition"]) == expected


async def test_a_partition_of_another_tenant_is_not_reached_by_a_label(world: OldWorld) -> None:
    world.slurm.world.add_partition("cpu")
    world.sylabs([{**world.tenants[0], "partitions": ["main"]}])
    world.old(WLM, "example", **HELLO)
    await world.look(WLM, "example")
    assert world.shown(WLM, "example")["reason"] == "JobsNotAllowed"


async def test_what_the_administrator_says_comes_first(world: OldWorld) -> None:
    world.slurm.world.add_partition("singularity")
    world.sylabs(labels=[{"name": "wlm.sylabs.io/containers", "value": "singularity", "features": "apptainer"}])
    world.old(WLM, "example", batch=ONE_NODE, nodeSelector=CONTAINERS)
    await world.look(WLM, "example")
    child = world.child(WLM, "example")
    assert child is not None
    assert (child["spec"].get("partition"), child["spec"]["features"]) == (None, "apptainer")


async def test_while_slurm_cannot_be_asked_the_object_waits(world: OldWorld) -> None:
    await world.clients.close_all()
    world.old(WLM, "example", **HELLO)
    result = await world.look(WLM, "example")
    shown = world.shown(WLM, "example")
    assert (shown["status"], shown["reason"]) == ("Pending", "SlurmUnreachable")
    assert result.requeue_after is not None
    assert world.child(WLM, "example") is None


@pytest.mark.parametrize(
    ("sylabs", "folder"),
    [
        ({"sharedVolume": {"claimName": "scratch", "mountPath": "/scratch"}}, "/scratch"),
        ({}, "/var/spool/job-output"),
    ],
)
async def test_input_is_copied_to_the_folder_of_the_job(world: OldWorld, sylabs: dict[str, Any], folder: str) -> None:
    world.slurm.world.add_partition("cpu")
    world.sylabs(**sylabs)
    claims = {
        name: {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-1"}} for name in ("inputs", "outputs")
    }
    files = {"prepare": {"to": ".", "mount": claims["inputs"]}, "results": {"from": "bar", "mount": claims["outputs"]}}
    for name, uid in (("one", "11111111-x"), ("two", "22222222-x")):
        world.old(WLM, name, uid=uid, **{**FILES, **files})
        await world.look(WLM, name)
        child = world.child(WLM, name)
        assert child is not None
        # No two objects share a folder, as they did: mkdir in the script would fail.
        assert child["spec"]["workingDirectory"] == f"{folder}/wlm-slurmjob-{name}-{uid[:8]}"
        # Its script reads inputs/foo.txt.
        assert [one["path"] for one in child["spec"]["prepare"]] == ["inputs"]
        assert [one["path"] for one in child["spec"]["results"]] == ["bar"]


async def test_a_script_that_says_where_it_starts_is_left_alone(world: OldWorld) -> None:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "inputs"}}
    script = "#!/bin/sh\n#SBATCH --chdir=/scratch/mine\nhostname\n"
    world.old(WLM, "example", batch=script, prepare={"to": "in", "mount": claim})
    await world.look(WLM, "example")
    child = world.child(WLM, "example")
    assert child is not None
    assert "workingDirectory" not in child["spec"]
