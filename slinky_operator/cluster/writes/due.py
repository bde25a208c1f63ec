"""Which objects are written: those that differ, unless the API server has just rejected the same body. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final

from slinky_operator.cluster import adoption
from slinky_operator.cluster.actions import Action, Write
from slinky_operator.cluster.memory.writes import Denied
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.kube.resources import SECRETS
from slinky_operator.reconcile.writes.children import Child, has_settled, is_current
from slinky_operator.slurm import naming

TRY_AGAIN: Final = 60.0
"""Seconds until an object that the API server rejected is tried again although nothing has changed here."""


def writes(snapshot: Snapshot, wanted: Iterable[Child], now: float) -> Iterator[Write]:
    """Write what is missing or differs, at `now` (monotonic seconds)."""
    for child in wanted:
        if _is_written(snapshot, child):
            continue
        write = Write(child, snapshot.children.get(child.key))
        if not is_denied(snapshot, write, now):
            yield write


def is_denied(snapshot: Snapshot, action: Action, now: float) -> bool:
    """Whether a write has been rejected already, and there is no reason yet to expect another answer."""
    if not isinstance(action, Write):
        return False
    denied = snapshot.memory.writes.denied.get(action.child.key)
    if _is_handed_over(snapshot, action.child.key):
        return False
    return denied is not None and denied.digest in {"", action.child.digest} and now - denied.at < TRY_AGAIN


def refused(snapshot: Snapshot, wanted: Iterable[Child]) -> tuple[str, ...]:
    """Objects of a Cluster that could not be written, and why: those of its daemons, its configuration and keys."""
    name = snapshot.cluster.name
    keys = {("ConfigMap", naming.config(name)), ("ConfigMap", naming.good_config(name))}
    return refused_of(snapshot, wanted, keys | {("Secret", source) for source in snapshot.sources})


def refused_of(
    snapshot: Snapshot, wanted: Iterable[Child], others: AbstractSet[tuple[str, str]] = frozenset()
) -> tuple[str, ...]:
    """Which of these could not be written, and why.

    An object that is there as it is wanted now is not among them: what was refused has been taken back.

    Parameters
    ----------
    others
        Kinds and names of objects beside the wanted ones.
    """
    children = {child.key: child for child in wanted}
    keys = children.keys() | others
    return tuple(
        f"{kind} {name}: {denied.why}"
        for (kind, name), denied in sorted(snapshot.memory.writes.denied.items())
        if (kind, name) in keys
        and not _is_handed_over(snapshot, (kind, name))
        and not _is_taken_back(snapshot, children.get((kind, name)), denied)
    )


def _is_written(snapshot: Snapshot, child: Child) -> bool:
    """Whether an object is there as it is wanted."""
    live = snapshot.children.get(child.key)
    return live is not None and (
        is_current(child.body, live) or has_settled(child, live, snapshot.memory.writes.settled.get(child.key))
    )


def _is_taken_back(snapshot: Snapshot, child: Child | None, denied: Denied) -> bool:
    """Whether something else is wanted than what the API server refused, and is there."""
    return child is not None and denied.digest not in {"", child.digest} and _is_written(snapshot, child)


def _is_handed_over(snapshot: Snapshot, key: tuple[str, str]) -> bool:
    """Whether an object that belonged to somebody else is now this Cluster's."""
    denied, live = snapshot.memory.writes.denied.get(key), snapshot.children.get(key)
    if denied is None or denied.digest:
        return False
    if live is not None:
        return adoption.is_ours(live, snapshot.cluster)
    kind, name = key
    source = snapshot.sources.get(name) if kind == SECRETS.kind else None
    # A Secret with keys may be this Cluster's, and be refused for another reason.
    return (
        source is not None
        and source.cluster_uid == snapshot.cluster.uid
        and denied.why == adoption.not_ours(SECRETS, name, snapshot.cluster)
    )
