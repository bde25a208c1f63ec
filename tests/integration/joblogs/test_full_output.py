"""Job output on a volume that fills up, with real slurmds: told before jobs lose any, and what becomes of jobs then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from hack.images.rootfs import ensure
from slinky_operator.slurm import naming
from tests.support import job_logs
from tests.support.job_logs import Node
from tests.support.slurm_host import NOBODY, SlurmHost
from tests.support.small_volume import fill, small
from tests.support.volume_answers import told

SIZE: Final = 16
MIB: Final = 2**20
OUTPUT: Final = f"{naming.JOB_OUTPUT_FOLDER}/%j.out"
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
