"""What Slurm of both releases does with jobs for a NodeSet without nodes, and what its future nodes change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from hack.images.rootfs import ensure
from hack.machine import ports
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.slurm.conf import NodeSetConf
from slinky_operator.slurm.slurmd import launch, node_conf, resources
from slurm_client import MintedToken, SlurmClient
from tests.support.slurm_host import SlurmHost

pytestmark = pytest.mark.timeout(300)

SET: Final = ("GresTypes=gpu", "NodeSet=gpu Feature=gpu", "PartitionName=gpu Nodes=gpu State=UP")

FITTING: Final = (
    "-N1",
    "-N3",
    "-n12",
    "--array=0-9%2",
    "--constraint=big",
    "--gres=gpu:a100:2",
    "--mem=1000",
    "--exclusive",
)
"""Jobs for three nodes with four CPUs, 1024 MiB and two GPUs."""

TOO_LARGE: Final = ("-N4", "--gres=gpu:a100:3", "--mem=3000", "-c64", "--constraint=none-has-it")


def node_set(count: int, **spec: Any) -> NodeSet:
    """The NodeSet `gpu`, whose nodes may come."""
    given = {
        "clusterName": "slurm",
        "replicas": 0,
        "resources": {"limits": {"cpu": 4, "memory": "1Gi"}},
        "features": ["big"],
        "gres": "gpu:a100:2",
        "futureNodes": count,
    }
    metadata = {"name": "gpu", "namespace": "here", "uid": "u"}
    return NodeSet.model_validate({"metadata": metadata, "spec": {**given, **spec}})


def conf(count: int, **spec: Any) -> str:
    """Lines of a slurm.conf with that NodeSet."""
    future = NodeSetConf.of(node_set(count, **spec)).future
    lines = [] if future is None else [future.line]
    return "\n".join((*SET, *map(str, lines)))


@pytest.fixture(params=["24.11", "26.05"])
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def slurm(release: str) -> Iterator[SlurmHost]:
    """A Slurm with three future nodes."""
    with SlurmHost(ensure(release), extra_conf=conf(3)) as host:
        yield host


def submit(host: SlurmHost, *options: str, script: str = "true") -> tuple[int | None, str]:
    """The number of a job, or None and what Slurm says."""
    done = host.run(
        "sbatch", "--parsable", "-o/dev/null", "-pgpu", "-t5", *options, check=False, stdin=f"#!/bin/sh\n{script}\n"
    )
    return (int(done.stdout), "") if done.returncode == 0 else (None, done.stderr)


def join(host: SlurmHost, name: str) -> None:
    """Start a slurmd as a pod of the NodeSet would, but for devices."""
    (port,) = ports.hold(1)
    one = node_set(3, gres=None, extraConf=f"Port={port}")
    line = node_conf.node_line(one, resources.of(one, ()), launch.read({}).conf)
    host.start_slurmd(name, ["slurmd", "-D", "-Z", "-N", name, "-f", "/etc/slurm/slurm.conf", "--conf", line])


def reconfigure(host: SlurmHost, text: str, shown: str) -> None:
    """Let slurmctld read its files, and wait until it shows a key: the one before may answer for a moment yet."""
    host.write_conf(text)
    host.run("scontrol", "reconfigure")

    def has_read() -> bool:
        told = host.run("scontrol", "show", "config", check=False).stdout
        return shown in (" ".join(line.split()) for line in told.splitlines())

    host.wait_for(has_read, f"slurmctld shows {shown}")


def has_room(host: SlurmHost, text: str, room: int) -> None:
    """The same with another number of nodes."""
    host.max_nodes = room
    reconfigure(host, text, f"MaxNodeCount = {room}")


def nodes_of(host: SlurmHost, job: int) -> str:
    return host.run("squeue", "-h", f"-j{job}", "-tall", "-o%N").stdout.strip()


def test_without_nodes_24_11_refuses_and_26_05_knows_no_features(release: str) -> None:
    with SlurmHost(ensure(release), extra_conf=conf(0)) as host:
        queued = {options for options in FITTING if submit(host, options)[0] is not None}
        assert queued == (set() if release == "24.11" else {*FITTING} - {"--constraint=big"})


def test_jobs_that_future_nodes_could_run_queue_and_no_others(slurm: SlurmHost, release: str) -> None:
    assert {options: said for options in FITTING if (said := submit(slurm, options)[1])} == {}
    refused = {options for options in TOO_LARGE if submit(slurm, options)[0] is None}
    # 26.05 checks numbers of nodes and CPUs at submission only with EnforcePartLimits.
    assert refused == {*TOO_LARGE} - (set() if release == "24.11" else {"-N4", "-c64"})
    reconfigure(slurm, f"{conf(3)}\nEnforcePartLimits=ALL", "EnforcePartLimits = ALL")
    assert {options: said for options in FITTING if (said := submit(slurm, options)[1])} == {}
    assert [options for options in TOO_LARGE if submit(slurm, options)[0] is not None] == []


async def test_nobody_sees_them(slurm: SlurmHost) -> None:
    async with SlurmClient(slurm.url, token=MintedToken(slurm.jwt_key)) as client:
        assert not list(await client.nodes())
    assert slurm.run("sinfo", "-h", "-N").stdout == ""
    assert slurm.run("sinfo", "-h", "-o%P %D %F").stdout.splitlines()[-1].split() == ["gpu", "0", "0/0/0/0"]
    shown = slurm.run("sinfo", "-h", "--future", "-N", "-pgpu", "-o%N").stdout.split()
    assert shown == ["gpu_future_0", "gpu_future_1", "gpu_future_2"]


def test_waiting_jobs_start_when_nodes_of_any_name_come(slurm: SlurmHost) -> None:
    # What stands behind a job that waits for nodes is the backfill scheduler's, which looks every 30 s by default.
    quick = "batch_sched_delay=0,sched_min_interval=0,bf_interval=1"
    reconfigure(slurm, f"{conf(3)}\nSchedulerParameters={quick}", f"SchedulerParameters = {quick}")
    large, small = (submit(slurm, options)[0] for options in ("-N3", "-N1"))
    assert large is not None
    assert small is not None
    join(slurm, "gpu-0")
    slurm.wait_for(lambda: slurm.job_state(small) == "COMPLETED", "the small job has run, although the large one waits")
    assert nodes_of(slurm, small) == "gpu-0"
    assert slurm.job_state(large) == "PENDING"
    join(slurm, "gpu-1")
    join(slurm, "gpu-2")
    slurm.wait_for(lambda: slurm.job_state(large) == "COMPLETED", "the large job has run")
    assert nodes_of(slurm, large) == "gpu-[0-2]"


def test_running_jobs_survive_whatever_becomes_of_future_nodes(release: str) -> None:
    """The room for nodes (`MaxNodeCount`) is exactly that for those that run and the future ones."""
    with SlurmHost(ensure(release), extra_conf=conf(0), max_nodes=2) as host:
        join(host, "gpu-0")
        join(host, "gpu-1")
        job, said = submit(host, "-N2", script="until [ -e /var/spool/go ]; do sleep 0.1; done")
        assert job is not None, said
        host.wait_for(lambda: host.job_state(job) == "RUNNING", "the job runs")
        for count in (3, 9, 2):
            has_room(host, conf(count), 2 + count)
            assert host.job_state(job) == "RUNNING"
            assert submit(host, f"-N{count + 2}")[0] is not None
        host.stop("slurmctld")
        host.start_slurmctld()
        assert host.job_state(job) == "RUNNING"
        has_room(host, conf(0), 2)
        assert nodes_of(host, job) == "gpu-[0-1]"
        (host.shared / "go").touch()
        host.wait_for(lambda: host.job_state(job) == "COMPLETED", "the job ends by itself")


def test_a_slurmd_cannot_have_the_name_of_a_future_node(slurm: SlurmHost) -> None:
    command = ["slurmd", "-D", "-Z", "-N", "gpu_future_0", "-f", "/etc/slurm/slurm.conf", "--conf", "Features=gpu"]
    # The shell stays, so that there is somebody whose start can be seen.
    slurm.spawn("slurmd", ["sh", "-c", '"$@"; sleep infinity', "sh", *command])
    log = slurm.daemons["slurmd"].log
    slurm.wait_for(lambda: "fatal: Duplicated NodeName gpu_future_0" in log.read_text(), "slurmd has ended")
