"""Sends slurmctld a reconfigure, once, and checks whether it has read its files.

An answer alone proves nothing, and neither does a missing one: slurmctld's lists contain the time of the answer, and a
query for partitions that have changed since a time returns nothing unless there are some; reading the configuration
counts as a change (Slurm 24.11 and 26.05). What is sent is remembered by slurmctld's time before it, so that whatever
the answer is, only the check is repeated.

slurmrestd asks slurmdbd for each list of partitions, with the caller's token. One that is away, or has another key of
auth/jwt than slurmctld, delays the check alone: the time before is that of the list of reservations, which slurmctld
answers by itself, and the reconfigure may be what brings both together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from slinky_operator.cluster.actions import Reload
from slinky_operator.cluster.memory.rollout import Loaded
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slurm_client import SlurmClient, errors
from slurm_client.models import Partition

Clock = Callable[[], float]

ATTEMPTS: Final = 2
"""How often slurmctld must reject its files, or leave them unread, and answer other queries in between, before that is
believed."""

TIMEOUT: Final = 5.0
"""Seconds for each call: a longer one is checked again later, and delays no other Cluster."""

UNREAD: Final = 5.0
"""Seconds for which a slurmctld that has read nothing may still be about to start."""


async def reload(client: ClusterClient | None, action: Reload, clock: Clock, full: str = "") -> Loaded:
    """Send slurmctld a reconfigure, unless one was sent, and check whether it has read its files.

    Parameters
    ----------
    full
        What the volume of its state has left, if that is next to nothing. slurmctld starts itself again, from the state
        that it saved last: jobs that it has accepted since would be lost, and those that have ended would run for it.
    """
    last = action.before or Loaded(action.pod_uid, action.change, clock(), proven=False)
    held = _held(full) if full and last.asked is None else ""
    if client is None or held:
        return replace(last, at=clock(), lost=True, why=held or "there is no connection with Slurm")
    slurm = client.client
    found: Iterable[Partition] | None = None
    refusal = ""
    try:
        if last.asked is not None:
            # A second reconfigure would only start this again.
            found = await slurm.partitions(last.asked, timeout=TIMEOUT)
        else:
            for _ in range(ATTEMPTS):
                asked = (await slurm.reservations(timeout=TIMEOUT)).last_update
                last, refusal = await _tell(slurm, replace(last, asked=asked, since=clock(), lost=False))
                if last.lost:
                    return replace(last, at=clock())
                found = await slurm.partitions(asked, timeout=TIMEOUT)
                if not refusal:
                    break
    except errors.SlurmError as error:
        # A slurmctld that has exited proves nothing about the files: slurmrestd then returns an error of any kind. One
        # that has just read them resolves the names of its nodes, ten seconds for each unknown one.
        return replace(last, at=clock(), lost=True, why=str(error))
    if refusal:
        return replace(last, at=clock(), lost=False, why=refusal)
    if found is None:
        return _unread(last, clock())
    client.hurry()
    why = _differs(found, action.partitions, action.node_sets)
    return replace(last, at=clock(), proven=not why, lost=False, why=why, asked=None, unread=0)


def _held(left: str) -> str:
    return (
        f"the volume of slurmctld has {left}, so it cannot save its state, and would forget jobs when it is "
        "reconfigured: the reconfigure waits for room. Enlarge spec.controller.persistence.size"
    )


async def _tell(slurm: SlurmClient, last: Loaded) -> tuple[Loaded, str]:
    """Send the `reconfigure`; returns its state, and why slurmctld has rejected it."""
    try:
        await slurm.reconfigure(timeout=TIMEOUT)
    except errors.CircuitOpen as error:
        # Nothing was sent.
        return replace(last, asked=None, lost=True, why=str(error)), ""
    except errors.Unreachable as error:
        # It was sent; whether it was received shows later.
        return replace(last, lost=True, why=str(error)), ""
    except errors.SlurmError as error:
        return replace(last, asked=None), str(error) or type(error).__name__
    return last, ""


def _unread(last: Loaded, now: float) -> Loaded:
    """The outcome if slurmctld answers, and has read nothing since the reconfigure.

    It may be about to start. One that has not after two reconfigures cannot use the files.
    """
    if now - last.since < UNREAD:
        return replace(last, at=now, lost=True, why="slurmctld has not read its files yet")
    unread = last.unread + 1
    if unread < ATTEMPTS:
        why = "slurmctld has not read its files; the request is sent again"
        return replace(last, at=now, lost=True, why=why, asked=None, unread=unread)
    why = f"slurmctld was asked {ATTEMPTS} times to reconfigure and has not read its files"
    return replace(last, at=now, lost=False, why=why, asked=None, unread=0)


def _differs(found: Iterable[Partition], wanted: Mapping[str, str], node_sets: AbstractSet[str]) -> str:
    """What slurmctld shows that differs from the files; empty if there is nothing."""
    shown = {one.name: frozenset(filter(None, one.node_sets.split(","))) for one in found}
    missing = sorted(name for name in wanted if name not in shown)
    if missing:
        return f"slurmctld does not show partition {', '.join(missing)} after a reconfigure"
    other = sorted(name for name, nodes in wanted.items() if nodes and _is_other(shown[name], nodes, node_sets))
    return f"slurmctld shows other nodes for partition {', '.join(other)}" if other else ""


def _is_other(shown: AbstractSet[str], nodes: str, node_sets: AbstractSet[str]) -> bool:
    """Whether the NodeSets that slurmctld shows of a partition cannot be those of its `Nodes=`.

    Names of nodes are not among what it shows, and NodeSets of a file that is included are not in `node_sets`.
    """
    words = frozenset(nodes.split(","))
    return bool(shown) and not (words & node_sets <= shown <= words)
