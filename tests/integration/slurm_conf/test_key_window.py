"""A single key of auth/slurm gives way to a key set in a maintenance window, on real daemons under load.

Accounting, a login with a sackd that submits jobs, and two slurmrestds that are called with tokens. When anything is
done is decided by the operator's rules. docs/development/reliability-journal.md has what is printed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from hack.images.rootfs import ensure, ensure_mariadb
from hack.machine import ports
from hack.machine.progress import say
from slinky_operator.cluster.actions import Remove, Write
from tests.integration.slurm_conf.test_key_orders import SLURMDBD, Load, all_ended_well, put
from tests.integration.slurm_conf.test_key_sets import ends_well, running
from tests.support.accounting_host import AccountingHost
from tests.support.mariadb_host import MariadbHost
from tests.unit.cluster.parts.keys.key_model import COPY, GIVEN, MINE, SLURMDS, STAGED, key_set
from tests.unit.cluster.parts.keys.lifecycle.worlds import GENERATED, generated

pytestmark = pytest.mark.timeout(300)

NEW = key_set("New")


@pytest.fixture(params=["24.11", "26.05"])
def slurm(request: pytest.FixtureRequest) -> Iterator[AccountingHost]:
    with MariadbHost(ensure_mariadb()) as mariadb:
        host = AccountingHost(ensure(request.param), database=mariadb.database("window"))
        try:
            yield host
        finally:
            host.close()


def start_nodes(host: AccountingHost) -> None:
    for name in SLURMDS:
        host.add_node(name, cpus=8, memory=1024)


def scale_to_zero(host: AccountingHost) -> None:
    """Drain all nodes, wait for their jobs, and end each slurmd with its record, as the operator does."""
    for name in SLURMDS:
        host.run("scontrol", "update", f"NodeName={name}", "State=DRAIN", "Reason=scale-in")
    for name in SLURMDS:
        jobs = ("squeue", "-h", "-w", name, "-t", "RUNNING,COMPLETING,SUSPENDED")
        host.wait_for(lambda jobs=jobs: not host.run(*jobs).stdout.strip(), f"{name} has no job")  # type: ignore[misc]
        host.stop(name)
        host.run("scontrol", "delete", f"NodeName={name}")


def test_a_single_key_gives_way_to_a_set_in_a_window_and_queued_jobs_stay(slurm: AccountingHost) -> None:
    single = slurm.configuration / "slurm.key"
    single.write_bytes(GENERATED["slurm.key"])
    slurm.start()
    start_nodes(slurm)
    slurm.start_sackd()
    (second,) = ports.hold(1)
    slurm.start_slurmrestd("slurmrestd-2", second)
    world, load = generated("slurm.key"), Load(slurm, (slurm.rest_port, second))
    world.pods = list(SLURMDS)
    try:
        held = running(slurm)
        # 1. The set is named. Whatever is started now gets the single key still.
        world.secrets[MINE] = {"slurm.jwks": NEW}
        world.raw["spec"] = {**world.raw["spec"], **GIVEN}
        done = world.settle()
        assert not [one for one in done if isinstance(one, Remove | Write)]
        assert world.condition("Degraded")["reason"] == "KeyChanged"
        assert world.secrets[STAGED] == {"slurm.key": GENERATED["slurm.key"]}
        slurm.stop("sackd", kill=True)
        slurm.start_sackd()
        before = len(load.jobs)
        slurm.wait_for(lambda: len(load.jobs) > before + 2, "jobs are submitted")
        ends_well(slurm, held)

        # 2. Partitions are closed, and all NodeSets scaled to 0.
        assert not load.failed
        began, calls, refused = time.monotonic(), load.calls, len(load.refused)
        slurm.run("scontrol", "update", "PartitionName=all", "State=DOWN")
        scale_to_zero(slurm)
        world.pods = []
        done = world.settle()
        assert "slurm-controller-0" in [one.name for one in done if isinstance(one, Remove)]
        assert world.secrets[STAGED] == {"slurm.jwks": NEW}
        assert world.secrets[COPY]["slurm.key"] == NEW

        # 3. slurmctld, slurmdbd and sackd start with the set; slurmrestd has no key.
        empty = time.monotonic()
        slurm.stop("slurmctld")
        slurm.stop(SLURMDBD)
        single.unlink()
        put(slurm, NEW)
        slurm.start_slurmdbd()
        slurm.start_slurmctld()
        slurm.stop("sackd", kill=True)
        slurm.start_sackd()
        back = time.monotonic()

        # 4. The nodes come back, and partitions are opened: what was submitted in between runs.
        start_nodes(slurm)
        slurm.run("scontrol", "update", "PartitionName=all", "State=UP")
        ends_well(slurm, running(slurm))
        ended = time.monotonic()
    finally:
        load.end()
    all_ended_well(slurm, load.jobs)
    say(
        f"window: {ended - began:.1f} s, slurmctld away {back - empty:.1f} s; {len(load.failed)} of "
        f"{load.calls - calls} calls failed, {len(load.refused) - refused} submissions refused, {len(load.jobs)} jobs, "
        f"0 lost; {({*load.failed}, {*load.refused})}"
    )
