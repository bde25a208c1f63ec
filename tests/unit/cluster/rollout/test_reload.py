"""What is sent to slurmctld to make it read its files, and how its answers are interpreted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest

from slinky_operator.cluster.actions import Reload
from slinky_operator.cluster.memory.rollout import Loaded
from slinky_operator.cluster.rollout.reload import UNREAD, reload
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slurm_client import errors
from slurm_client.models import Partition, Reservation
from slurm_client.operations.base import Listing

BUSY = errors.ControllerDown("the server answered 504")
NO_SLURMDBD = errors.Unauthorized("Protocol authentication error: Slurmdb query failed")
REFUSED = errors.ServerError("slurm_reconfigure() failed: Unspecified error (-1)")


@dataclass
class Slurmctld:
    """What it does with a `reconfigure`, and what it has read."""

    on_reconfigure: Callable[[], errors.SlurmError | None] = lambda: None
    busy: bool = False
    reads: bool = True
    now: float = 100.0
    told: list[float] = field(default_factory=list)
    read_at: float = 0.0
    node_sets: str = "ALL"
    slurmdbd_agrees: Callable[[], bool] = lambda: True

    async def reconfigure(self, **_: float) -> None:
        self.told.append(self.now)
        error = self.on_reconfigure()
        if self.reads and not isinstance(error, errors.ServerError):
            self.read_at = self.now
        if error is not None:
            raise error

    async def reservations(self, **_: float) -> Listing[Reservation]:
        if self.busy:
            raise BUSY
        return Listing((), last_update=int(self.now))

    async def partitions(self, update_time: int | None = None, **_: float) -> Listing[Partition] | None:
        if self.busy:
            raise BUSY
        if not self.slurmdbd_agrees():
            raise NO_SLURMDBD
        if update_time is not None and update_time > self.read_at:
            return None
        return Listing((Partition(name="all", node_sets=self.node_sets),), last_update=int(self.now))

    async def ask(self, before: Loaded | None = None, full: str = "") -> Loaded:
        client = cast("ClusterClient", SimpleNamespace(client=self, hurry=lambda: None))
        action = Reload("pod", "1", {"all": "ALL"}, before)
        return await reload(client, action, lambda: self.now, full)


async def test_what_is_read_is_proven_with_one_reconfigure() -> None:
    slurmctld = Slurmctld()
    said = await slurmctld.ask()
    assert said.proven
    assert len(slurmctld.told) == 1


async def test_a_time_out_is_no_reason_to_tell_it_again_however_long_it_takes() -> None:
    slurmctld = Slurmctld()

    def is_busy() -> errors.SlurmError:
        slurmctld.busy = True
        return errors.Timeout("no answer within 5.0 s")

    slurmctld.on_reconfigure = is_busy
    said = await slurmctld.ask()
    for _ in range(50):
        slurmctld.now += 10
        said = await slurmctld.ask(said)
        assert (said.lost, said.asked) == (True, 100)
    slurmctld.busy = False
    said = await slurmctld.ask(said)
    assert said.proven
    assert len(slurmctld.told) == 1


async def test_one_that_has_read_nothing_is_told_once_more_and_then_believed() -> None:
    slurmctld = Slurmctld(reads=False)
    said = await slurmctld.ask()
    assert (said.lost, len(slurmctld.told)) == (True, 1)
    said = await slurmctld.ask(said)
    assert len(slurmctld.told) == 1, "it may be about to begin"
    slurmctld.now += UNREAD
    said = await slurmctld.ask(said)
    assert (said.lost, said.asked) == (True, None)
    said = await slurmctld.ask(said)
    slurmctld.now += UNREAD
    said = await slurmctld.ask(said)
    assert (said.lost, said.proven, len(slurmctld.told)) == (False, False, 2)
    assert "asked 2 times" in said.why


async def test_a_refusal_is_believed_when_it_comes_twice_with_an_answer_in_between() -> None:
    slurmctld = Slurmctld(lambda: REFUSED)
    said = await slurmctld.ask()
    assert (said.lost, said.proven, len(slurmctld.told)) == (False, False, 2)
    assert "slurm_reconfigure() failed" in said.why


async def test_a_reconfigure_that_was_never_sent_is_sent_later() -> None:
    slurmctld = Slurmctld(lambda: errors.CircuitOpen("not tried"), reads=False)
    said = await slurmctld.ask()
    assert (said.lost, said.asked) == (True, None)
    slurmctld.on_reconfigure, slurmctld.reads = (lambda: None), True
    assert (await slurmctld.ask(said)).proven


async def test_what_slurmctld_shows_otherwise_is_named() -> None:
    slurmctld = Slurmctld()
    client = cast("ClusterClient", SimpleNamespace(client=slurmctld, hurry=lambda: None))
    said = await reload(client, Reload("pod", "1", {"all": "ALL", "night": "a"}), lambda: slurmctld.now)
    assert (said.proven, said.lost) == (False, False)
    assert said.why == "slurmctld does not show partition night after a reconfigure"


@pytest.mark.parametrize(
    ("shown", "nodes", "proven"),
    [
        ("ALL", "ALL", True),
        # slurmctld shows NodeSets in order of their names, and no names of nodes.
        ("a,b", "b,a", True),
        ("a", "a,metal-[1,3-4]", True),
        ("", "metal-1", True),
        # Of a file that is included.
        ("a,other", "a,other", True),
        ("a", "a,b", False),
        ("a,b", "a", False),
        ("a", "metal-1", False),
        ("b", "a,metal-1", False),
    ],
)
async def test_a_partition_is_compared_by_its_node_sets(shown: str, nodes: str, *, proven: bool) -> None:
    slurmctld = Slurmctld(node_sets=shown)
    client = cast("ClusterClient", SimpleNamespace(client=slurmctld, hurry=lambda: None))
    action = Reload("pod", "1", {"all": nodes}, node_sets=frozenset({"ALL", "a", "b"}))
    said = await reload(client, action, lambda: slurmctld.now)
    assert said.proven is proven
    assert said.why == ("" if proven else "slurmctld shows other nodes for partition all")


async def test_a_slurmdbd_with_another_key_of_tokens_delays_the_proof_and_not_the_reconfigure() -> None:
    # It has been restarted before slurmctld has read the key: only the reconfigure brings both together.
    slurmctld = Slurmctld()
    slurmctld.slurmdbd_agrees = lambda: bool(slurmctld.told)
    assert (await slurmctld.ask()).proven
    # It has the earlier key until it is restarted, after slurmctld.
    slurmctld = Slurmctld()
    slurmctld.slurmdbd_agrees = lambda: False
    said = await slurmctld.ask()
    for _ in range(3):
        assert (said.lost, said.proven, "Slurmdb query failed" in said.why) == (True, False, True)
        slurmctld.now += 10
        said = await slurmctld.ask(said)
    slurmctld.slurmdbd_agrees = lambda: True
    assert (await slurmctld.ask(said)).proven
    assert len(slurmctld.told) == 1


async def test_a_slurmctld_that_cannot_save_its_state_is_not_started_again() -> None:
    slurmctld = Slurmctld()
    held = await slurmctld.ask(full="0% of 64 MiB left")
    assert slurmctld.told == []
    assert (held.proven, held.lost, held.asked) == (False, True, None)
    assert "the volume of slurmctld has 0% of 64 MiB left" in held.why
    assert "the reconfigure waits for room" in held.why
    assert (await slurmctld.ask(held)).proven
    assert len(slurmctld.told) == 1


async def test_what_slurmctld_was_told_before_its_volume_was_full_is_still_checked() -> None:
    slurmctld = Slurmctld(reads=False)
    sent = await slurmctld.ask()
    assert sent.asked is not None
    slurmctld.read_at = slurmctld.now
    assert (await slurmctld.ask(sent, full="0% of 64 MiB left")).proven
    assert len(slurmctld.told) == 1
