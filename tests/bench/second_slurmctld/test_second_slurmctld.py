"""
What two slurmctlds of one cluster do when one of them goes, returns or hangs, without an operator.

``pytest tests/bench/second_slurmctld --capture=no --override-ini=testpaths=tests/bench`` prints the table of
``docs/development/reliability-journal.md``; nothing is asserted about times.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from hack.images.rootfs import ensure
from tests.support.two_slurmctlds import BACKUP, FIRST, WAITING, Submits, TwoSlurmctlds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.timeout(900)

NODE = "w-0"
SAVED = 10.0
"""Seconds after which slurmctld has saved a new job: a takeover launches a younger one again."""


@pytest.fixture(params=["24.11", "26.05"])
def slurm(request: pytest.FixtureRequest) -> Iterator[TwoSlurmctlds]:
    """Both slurmctlds of a cluster, the second one waiting, and a node."""
    cluster = TwoSlurmctlds(ensure(request.param))
    try:
        cluster.start_controller(FIRST)
        cluster.wait_for(lambda: cluster.is_in_control(FIRST), "the first one is in control")
        cluster.add_node(NODE, cpus=2)
        start_backup(cluster)
        yield cluster
    finally:
        cluster.close()


def start_backup(slurm: TwoSlurmctlds) -> None:
    slurm.start_controller(BACKUP)
    slurm.wait_for(lambda: slurm.run("scontrol", "ping", check=False).stdout.count(" UP") == 2, "the backup answers")


def measured(slurm: TwoSlurmctlds, what: str, step: Callable[[], None]) -> None:
    """Take a step under submits, and print a line."""
    with Submits(slurm) as submits:
        began = time.monotonic()
        step()
        seconds = time.monotonic() - began
    lost = submits.lost()
    print(
        f"{what}: in control after {seconds:.1f} s; longest submit {submits.longest:.1f} s, "
        f"{len(submits.refused)} of {len(submits.refused) + len(submits.accepted)} failed, {len(lost)} lost"
    )
    assert len(submits.accepted) == len(set(submits.accepted)), "a number was given twice"


def test_a_second_slurmctld(slurm: TwoSlurmctlds) -> None:
    """Kill, let return, take over, return in order, and hang the first one, under one job."""
    print(f"\n{slurm.run('slurmctld', '-V').stdout.strip()}, load {os.getloadavg()[0]:.1f}")
    job = slurm.sbatch("until [ -e /var/spool/go ]; do sleep 0.2; done")
    slurm.wait_for(lambda: slurm.job_state(job) == "RUNNING", "the job runs")
    time.sleep(SAVED)

    def takes_control(name: str) -> None:
        slurm.wait_for(lambda: slurm.is_in_control(name), f"{name} is in control", 120)

    def killed() -> None:
        slurm.stop(FIRST, kill=True)
        takes_control(BACKUP)

    def returns() -> None:
        slurm.start_controller(FIRST)
        takes_control(FIRST)

    def taken_over() -> None:
        _ = slurm.run("scontrol", "takeover", "1")
        _ = slurm.daemons.pop(FIRST).process.wait(60)
        takes_control(BACKUP)

    def returns_in_order() -> None:
        slurm.end_controller(BACKUP)
        returns()

    measured(slurm, "first one killed", killed)
    measured(slurm, "first one returns by itself", returns)
    print(f"  the backup says 'Old state possible': {'Old state possible' in slurm.says(BACKUP)}")
    slurm.wait_for(lambda: slurm.says(BACKUP).count(WAITING) == 2, "the backup waits again")
    measured(slurm, "scontrol takeover", taken_over)
    measured(slurm, "backup ended, then first one started", returns_in_order)
    start_backup(slurm)
    hangs(slurm)
    (slurm.shared / "go").touch()
    slurm.wait_for(lambda: slurm.job_state(job) == "COMPLETED", "the job ends", 240)
    shown = slurm.run("scontrol", "-o", "show", "job", str(job)).stdout
    assert " Restarts=0 " in shown


def hangs(slurm: TwoSlurmctlds) -> None:
    """Stop the first one until the backup is in control, and let it go on."""
    began = time.monotonic()
    slurm.pause(FIRST)
    slurm.wait_for(lambda: slurm.is_in_control(BACKUP), "the backup is in control", 120)
    print(f"first one hangs: backup in control after {time.monotonic() - began:.1f} s")
    slurm.resume(FIRST)
    began, before = time.monotonic(), slurm.says(FIRST)
    assert slurm.is_in_control(FIRST), "it has not noticed"
    slurm.wait_for(lambda: not slurm.is_in_control(BACKUP), "the backup gives way", 120)
    print(f"first one goes on: both in control for {time.monotonic() - began:.1f} s")
    assert slurm.says(FIRST).startswith(before)
