"""What happens to a node's record when its pod is gone, and when the name may be used again.

A record is deleted once nothing runs on it: a new slurmd would otherwise keep its old values, and Slurm would show a
dead node for minutes. The record of a node that somebody else drained is never deleted, so that a node recreated under
that name is drained, with that reason.

A record that an unfinished job or a reservation names stays as well, drained, until nothing names it
(`slinky_operator.slurm.nodes.node_references`); a pod of that name is created meanwhile, and registers under it.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass

from slinky_operator.nodeset.slurm_nodes import drains, identity, registration
from slurm_client.models import Job, Node


@dataclass(frozen=True, slots=True)
class RecordCleanup:
    """The writes needed for the records of pods that are gone."""

    delete: tuple[str, ...] = ()
    down: tuple[str, ...] = ()
    """Nodes on which Slurm still sees jobs although everything has ended: they are set DOWN."""
    busy: tuple[str, ...] = ()
    """Nodes on which Slurm still sees jobs: they have just been set DOWN, or their machine is unreachable, so that jobs
    may still run and Slurm's own timeout decides."""
    named: tuple[str, ...] = ()
    """Nodes whose records stay because a job or a reservation names them."""
    drain: tuple[str, ...] = ()
    """Those of them that are not drained: Slurm would start jobs on a node without a slurmd."""


def settle(
    orphans: Iterable[Node],
    jobs: Mapping[str, tuple[Job, ...]] | None,
    ended: Collection[str],
    named: Container[str] = (),
) -> RecordCleanup:
    """Return what to do about records without a pod.

    Parameters
    ----------
    orphans
        Records tagged with the NodeSet.
    jobs
        Jobs by node; None if not queried, and then nothing is deleted.
    ended
        Names of nodes whose pod had ended for certain.
    named
        Names of nodes that a job or a reservation names.
    """
    delete, down, busy, kept, drain = [], [], [], [], []
    for node in orphans:
        held = drains.is_busy(node) or bool((jobs or {}).get(node.name))
        if held and node.name in ended and not node.is_down:
            down.append(node.name)
        elif held:
            # Also of a node that is DOWN: the jobs may be from before that, and no node event follows.
            busy.append(node.name)
        elif jobs is not None and node.name in named:
            kept.append(node.name)
            if not node.is_drain or registration.is_stale_drain(node):
                drain.append(node.name)
        elif jobs is not None and not drains.is_foreign(node):
            delete.append(node.name)
    return RecordCleanup(tuple(delete), tuple(down), tuple(busy), tuple(kept), tuple(drain))


def to_delete(
    wanted: Iterable[str],
    fresh: Mapping[str, Node | None],
    jobs: Mapping[str, tuple[Job, ...]],
    standing: Collection[str],
    owner: str,
    named: Container[str] = (),
) -> list[str]:
    """Of the records to be deleted, those that may still be deleted.

    Parameters
    ----------
    wanted
        Names of the records.
    fresh
        The records from a fresh answer of Slurm.
    jobs
        Jobs by node, queried just now.
    standing
        Names for which the API server has a pod now: deleting a living slurmd's record makes its node vanish.
    owner
        Tag of the NodeSet.
    named
        Names of nodes that a job or a reservation names, queried just now.
    """
    found = []
    for name in wanted:
        node = fresh.get(name)
        if node is None or name in standing or name in named or not identity.is_tagged(node, owner):
            continue
        if not drains.is_foreign(node) and not drains.is_busy(node) and not jobs.get(name):
            found.append(name)
    return found


def to_down(
    wanted: Iterable[str], fresh: Mapping[str, Node | None], standing: Collection[str], owner: str
) -> tuple[list[str], list[str]]:
    """Of the nodes to be set DOWN, those that may still be: without and with somebody else's drain.

    The latter must be written without a reason, which keeps the existing one (measured).

    Parameters
    ----------
    wanted
        Names of the nodes.
    fresh
        The records from a fresh answer of Slurm.
    standing
        Names for which the API server has a living pod now.
    owner
        Tag of the NodeSet.

    Returns
    -------
    tuple
        Nodes without and nodes with somebody else's drain.
    """
    plain: list[str] = []
    foreign: list[str] = []
    for name in wanted:
        node = fresh.get(name)
        if node is None or name in standing or node.is_down or not identity.is_tagged(node, owner):
            continue
        (foreign if drains.is_foreign(node) else plain).append(name)
    return plain, foreign


def why_blocked(
    node: Node | None, jobs: Mapping[str, tuple[Job, ...]] | None, owner: str, named: Container[str] = ()
) -> str | None:
    """Why no pod of this name may be created yet, or None if it may.

    Parameters
    ----------
    node
        The record of the name; None if Slurm has none.
    jobs
        Jobs by node; None if they were not queried.
    owner
        Tag of the NodeSet.
    named
        Names of nodes that a job or a reservation names: their records are used again.
    """
    if node is None:
        return None
    if not identity.is_tagged(node, owner):
        return f"Slurm has a node {node.name} that is not ours{identity.static_hint(node)}"
    if drains.is_busy(node) or (jobs or {}).get(node.name):
        return f"Slurm still sees jobs on node {node.name} of an earlier pod"
    if not drains.is_foreign(node) and node.name not in named:
        return f"the record of node {node.name} of an earlier pod is still there"
    return None
