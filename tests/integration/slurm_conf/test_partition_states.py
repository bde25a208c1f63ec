"""The effect of a reconfigure on the states of partitions, on real daemons of both releases."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from hack.images.rootfs import ensure
from slinky_operator.cluster.rollout.slurm_questions import ask_states
from slinky_operator.slurm.conf.syntax.set_states import SetState
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slurm_client import MintedToken, SlurmClient
from tests.support.slurm_host import SlurmHost
from tests.unit.slurm.conf.goldens import Case

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(params=["24.11", "26.05"])
def slurm(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    """A cluster of each release, without nodes."""
    with SlurmHost(ensure(request.param)) as host:
        yield host


async def states(host: SlurmHost) -> dict[str, str]:
    async with SlurmClient(host.url, token=MintedToken(host.jwt_key)) as client:
        found = await ask_states(cast("ClusterClient", SimpleNamespace(client=client)), "", time.monotonic)
    assert not found.why
    return dict(found.states)


def save(host: SlurmHost) -> None:
    """Let slurmctld save the states of its partitions, as it does after some time and after each change of one."""
    for state in ("DRAIN", "UP"):
        host.run("scontrol", "update", "PartitionName=night", f"State={state}")


def apply(host: SlurmHost, *lines: str) -> None:
    host.write_conf("\n".join(lines))
    host.run("scontrol", "reconfigure")


@pytest.mark.parametrize("by_hand", ["DOWN", "DRAIN", "INACTIVE"])
async def test_a_reconfigure_takes_back_what_is_not_in_the_line(slurm: SlurmHost, by_hand: str) -> None:
    apply(slurm, "PartitionName=night Nodes=ALL State=UP")
    slurm.run("scontrol", "update", "PartitionName=night", f"State={by_hand}")
    shown = await states(slurm)
    assert shown == {"all": "UP", "night": by_hand}
    apply(slurm, "PartitionName=night Nodes=ALL State=UP")
    assert (await states(slurm))["night"] == "UP"

    # What is rendered with the state that was shown keeps it, and Slurm takes the mark for a comment.
    spec = {"partitions": [{"name": "night", "nodeSets": ["ALL"]}]}
    rendered = Case(spec, before=Case(spec)).render(states=shown)
    assert rendered.lines.set_states == {"night": SetState(by_hand, "UP")}
    comments = [line for line in rendered.files["slurm.conf"].split("\n") if line.startswith("#")]
    apply(slurm, *comments, str(rendered.lines.partitions["night"]))
    assert (await states(slurm))["night"] == by_hand


async def test_a_flag_keeps_a_partition_open_whatever_its_line_says(slurm: SlurmHost) -> None:
    flag = "ReconfigFlags=KeepPartState"
    apply(slurm, flag, "PartitionName=night Nodes=ALL State=UP")
    save(slurm)
    apply(slurm, flag, "PartitionName=night Nodes=ALL State=INACTIVE")
    assert (await states(slurm))["night"] == "UP"
    # Without it in the new files, the line counts.
    apply(slurm, "PartitionName=night Nodes=ALL State=INACTIVE")
    assert (await states(slurm))["night"] == "INACTIVE"
    apply(slurm, flag)
    assert "night" not in await states(slurm)


async def test_a_flag_that_keeps_whole_partitions_brings_back_one_that_was_removed(slurm: SlurmHost) -> None:
    apply(slurm, "ReconfigFlags=KeepPartInfo", "PartitionName=night Nodes=ALL State=UP")
    save(slurm)
    apply(slurm, "ReconfigFlags=KeepPartInfo")
    assert "night" in await states(slurm)
