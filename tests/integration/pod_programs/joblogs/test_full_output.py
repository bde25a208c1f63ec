"""Volumes of nodes that fill up, with real daemons: job output, as the job log server tells, and slurmd's spool."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from hack.images.rootfs import ensure
from slinky_operator.nodeset.report.out_of_service import SPOOL_IS_FULL
from slinky_operator.slurm import naming
from tests.support import job_logs
from tests.support.job_logs import Node
from tests.support.slurm_host import NOBODY, SlurmHost
from tests.support.small_volume import fill, small
from tests.support.volume_answers import told

SIZE: Final = 16
MIB: Final = 2**20
OUTPUT: Final = f"{naming.JOB_OUTPUT_FOLDER}/%j.out"
HELD: Final = "launch failed requeued held"
WAITS: Final = "while [ ! -e /var/spool/go ]; do sleep 0.1; done"


@contextmanager
def cluster(series: str, node: Node) -> Iterator[SlurmHost]:
    """A cluster with one node beside the server; the volume of output is a small one."""
    with small(node.output, SIZE):
        host = SlurmHost(ensure(series))
        (host.shared / "job-output").mkdir()
        host.binds[naming.JOB_OUTPUT_FOLDER] = node.output
        with host:
            host.add_node("n1", cpus=2)
            yield host


def submitted(host: SlurmHost, script: str, output: str = OUTPUT) -> int:
    as_user = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    made = host.run(*as_user, "sbatch", "--parsable", "--chdir=/", f"--output={output}", stdin=f"#!/bin/sh\n{script}\n")
    return int(made.stdout)


def ends(host: SlurmHost, job: int, state: str) -> None:
    shown = [""]

    def has_ended() -> bool:
        shown.append(host.job_state(job))
        return shown[-1] in {"COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL"}

    host.wait_for(has_ended, f"job {job} ends")
    assert shown[-1] == state


@pytest.mark.parametrize("series", ["24.11", "26.05"])
def test_a_full_volume_of_output_is_told_before_jobs_lose_any(series: str) -> None:
    with job_logs.node() as node, cluster(series, node) as host:
        running = submitted(host, WAITS)
        host.wait_for(lambda: host.job_state(running) == "RUNNING", "the job runs")
        calm = told(node, None, is_low=False)
        assert calm.room is not None
        assert calm.room.size == SIZE * MIB

        ballast = fill(node.output, MIB)
        low = told(node, calm, is_low=True)
        whole = submitted(host, "head -c 100000 /dev/zero")
        ends(host, whole, "COMPLETED")
        assert (node.output / f"{whole}.out").stat().st_size == 100_000

        # A job that minds fails; one that does not completes, and its output is cut off. Nothing else tells of it.
        fill(node.output, 0)
        ends(host, submitted(host, "head -c 100000 /dev/zero"), "FAILED")
        careless = submitted(host, "echo something; true")
        ends(host, careless, "COMPLETED")
        assert (node.output / f"{careless}.out").stat().st_size == 0
        host.wait_for(lambda: host.job_state(running) == "RUNNING", "the job still runs")
        (host.shared / "go").touch()
        ends(host, running, "COMPLETED")

        ballast.unlink()
        told(node, low, is_low=False)


@pytest.mark.parametrize("series", ["24.11", "26.05"])
def test_a_full_spool_drains_the_node_and_ends_no_job(series: str, tmp_path: Path) -> None:
    host = SlurmHost(ensure(series))
    (host.shared / "slurmd-n1").mkdir()
    # Not in the host's folder, which cannot be removed while this is mounted.
    spool = tmp_path / "spool"
    spool.mkdir(mode=0o755)
    host.binds["/var/spool/slurmd-n1"] = spool

    def reason() -> str:
        return host.run("sinfo", "-h", "-N", "-n", "n1", "-o", "%E", check=False).stdout.strip()

    def is_resumed() -> bool:
        _ = host.run("scontrol", "update", "NodeName=n1", "State=RESUME", check=False)
        # 24.11 keeps the reason of a node that is drained no more.
        return "drain" not in host.run("sinfo", "-h", "-N", "-n", "n1", "-o", "%T", check=False).stdout

    def waits_for(job: int) -> str:
        return host.run("squeue", "-h", "-j", str(job), "-t", "all", "-o", "%r", check=False).stdout.strip()

    def is_released(job: int) -> bool:
        _ = host.run("scontrol", "release", str(job), check=False)
        return waits_for(job) not in {"", HELD}

    with small(spool, 4), host:
        host.add_node("n1", cpus=2)
        running = submitted(host, WAITS, "/dev/null")
        host.wait_for(lambda: any(spool.glob("job*/slurm_script")), "the script is there")
        host.wait_for(lambda: host.job_state(running) == "RUNNING", "the job runs")
        ballast = fill(spool, 0)
        held = submitted(host, "true", "/dev/null")
        host.wait_for(lambda: reason().startswith(SPOOL_IS_FULL), "Slurm drains the node")
        host.wait_for(lambda: waits_for(held) == HELD, "the job is held")
        host.wait_for(lambda: host.job_state(running) == "RUNNING", "the job still runs")
        (host.shared / "go").touch()
        ends(host, running, "COMPLETED")

        ballast.unlink()
        host.wait_for(is_resumed, "the node is resumed")
        ends(host, submitted(host, "true", "/dev/null"), "COMPLETED")
        # It starts some two minutes after it was put back.
        host.wait_for(lambda: is_released(held), "the job is released")
