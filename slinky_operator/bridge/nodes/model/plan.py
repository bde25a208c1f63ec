"""What is made, drained, undrained and deleted in Slurm. Pure.

A node that is not marked as this Cluster's is never touched: its name is reported. A drain of somebody else stays, and
keeps its node from being deleted or made again, as with NodeSets. A node with a job is never deleted, whatever the
reason; one whose Kubernetes Node is cordoned, not Ready or gone takes no new jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, TypeAlias

from slinky_api.conditions import Reason
from slinky_operator.bridge.devices import mark_of_word, word_of
from slinky_operator.bridge.features import is_ours
from slinky_operator.bridge.nodes.model.hosts import Host
from slinky_operator.bridge.nodes.model.node_line import is_name
from slinky_operator.bridge.nodes.model.sizes import STEP_MIB, Size, size_in_slurm
from slinky_operator.bridge.nodes.model.snapshot import HostSize, Snapshot
from slinky_operator.bridge.nodes.model.wishes import Problem
from slinky_operator.reconcile.text import joined, named
from slinky_operator.slurm.nodes.drain_reasons import PREFIX
from slurm_client.models import Node

DRAINED: Final = f"{PREFIX}bridge: "
"""How the reason of a drain of the bridge begins; only these are undone."""

MOST: Final = 50
"""Nodes of each kind of action in a pass; Slurm is asked for each before it is changed."""

MOST_MADE: Final = 200
"""Nodes that are made in a pass."""

SETTLED_S: Final = 60.0
"""Seconds for which the same other size must be wanted: device plugins start again, pods come and go."""

SILENT_S: Final = 180.0
"""Seconds after which a node that does not respond is made again; Slurm itself needs one minute at most."""

GONE: Final = "its Kubernetes Node is gone, or not chosen any more"
OTHER_DEVICES: Final = "the machine has other devices than Slurm's record"
TOO_LARGE: Final = "the machine has less than Slurm's record"


@dataclass(frozen=True, slots=True)
class Create:
    """Make nodes that are alike."""

    names: tuple[str, ...]
    size: Size
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Drain:
    """Let no new job come."""

    names: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Undrain:
    """Take drains of the bridge away."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetFeatures:
    """Give nodes other features."""

    names: tuple[str, ...]
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete idle nodes."""

    names: tuple[str, ...]


Action: TypeAlias = Create | Drain | Undrain | SetFeatures | Delete


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pass does."""

    actions: tuple[Action, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Why not every chosen Kubernetes Node is a node of Slurm, the worst first."""
    waiting: tuple[str, ...] = ()
    """What waits, and for what."""
    pending: int = 0
    """Nodes that are yet to be made, and that nothing is wrong with."""
    again: bool = False
    """Whether something waits of which no event tells: a node that is to be idle, a time that is to pass."""


def plan(snapshot: Snapshot) -> Plan:
    """Decide what to change in Slurm."""
    decided = _Decisions(snapshot)
    for name in sorted(snapshot.hosts):
        decided.of_host(snapshot.hosts[name])
    for name in sorted(snapshot.nodes):
        if name not in snapshot.hosts and is_ours(snapshot.nodes[name], snapshot.mark):
            decided.of_left_over(snapshot.nodes[name])
    return decided.made()


def is_busy(node: Node) -> bool:
    """Whether a node has a job, by Slurm's list."""
    return node.is_busy or node.alloc_cpus > 0


def is_others_drain(node: Node) -> bool:
    """Whether somebody else has drained a node, or set it down."""
    return (node.is_drain or node.is_down) and not node.reason.startswith(DRAINED)


def is_removable(node: Node, mark: str) -> bool:
    """Whether a node may be deleted if no job is on it."""
    return is_ours(node, mark) and not is_others_drain(node)


class _Decisions:
    """What has been decided so far."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._create: dict[tuple[Size, tuple[str, ...]], list[str]] = {}
        self._drain: dict[str, list[str]] = {}
        self._undrain: list[str] = []
        self._features: dict[tuple[str, ...], list[str]] = {}
        self._delete: list[str] = []
        self._taken: list[str] = []
        self._names: list[str] = []
        self._small: list[str] = []
        self._ignored: list[str] = []
        self._leaving: list[str] = []
        self._kept: list[str] = []
        self._resized: list[str] = []
        self._pending = 0
        self._again = False

    def of_host(self, host: Host) -> None:
        """A chosen Kubernetes Node."""
        node = self._snapshot.nodes.get(host.name)
        size = self._snapshot.sizes.get(host.name)
        if node is None:
            self._new(host, size)
        elif not is_ours(node, self._snapshot.mark):
            self._taken.append(host.name)
        else:
            self._standing(host, node, size)

    def _new(self, host: Host, size: HostSize | None) -> None:
        if not is_name(host.name) or host.name in self._snapshot.taken:
            self._names.append(host.name)
        elif host.trouble:
            # Its event brings the next pass.
            return
        elif size is not None and size.wanted is None:
            # Pods of others are not watched.
            self._small.append(host.name)
            self._again = True
        else:
            self._pending += 1
            if size is not None and size.wanted is not None and host.name not in self._snapshot.awaited:
                key = size.wanted, self._words(host, size.wanted.devices)
                self._create.setdefault(key, []).append(host.name)

    def _standing(self, host: Host, node: Node, size: HostSize | None) -> None:
        # What its devices are belongs to the node as it was made: it gets another word with other devices only.
        words = self._words(host, word_of(node.features))
        if set(words) != set(node.features):
            self._features.setdefault(words, []).append(host.name)
        there = size_in_slurm(node)
        too_large = size is not None and (size.most is None or not there.fits_into(size.most))
        unread = size is None and node.reason == f"{DRAINED}{TOO_LARGE}"
        others = OTHER_DEVICES if self._has_other_devices(host, there) else ""
        self._drains(node, host.trouble or others or (TOO_LARGE if too_large or unread else ""))
        if size is not None and size.wanted is None and not is_busy(node):
            self._small.append(host.name)
        if is_others_drain(node):
            return
        if size is not None and size.wanted is not None and size.wanted != there and not host.devices.problem:
            self._other_size(node, size.wanted)
        elif node.is_not_responding:
            self._again = True
            if self._snapshot.silent_for.get(node.name, 0.0) >= SILENT_S and not is_busy(node):
                self._delete.append(node.name)

    def _has_other_devices(self, host: Host, there: Size) -> bool:
        """Whether a number of a device may mean another one than Slurm's record was made of."""
        has_devices = any(kind in self._snapshot.device_kinds for kind, _ in there.gres)
        return has_devices and mark_of_word(there.devices) != host.devices.mark

    def _other_size(self, node: Node, wanted: Size) -> None:
        """A node gets its new size when it is idle: it is deleted, and the next pass makes it."""
        there = replace(size_in_slurm(node), devices=wanted.devices)
        if self._snapshot.tried.get(node.name) == wanted and there != wanted:
            # Slurm shows something else than it was given: to repeat that would never end. Features others may take.
            self._ignored.append(f"{node.name} ({size_in_slurm(node).shown} in place of {wanted.shown})")
            return
        self._again = True
        if self._snapshot.differs_for.get(node.name, 0.0) < SETTLED_S:
            return
        if is_busy(node):
            self._resized.append(node.name)
        else:
            self._delete.append(node.name)

    def _drains(self, node: Node, trouble: str) -> None:
        if trouble and not node.is_drain:
            self._drain.setdefault(trouble, []).append(node.name)
        elif not trouble and node.is_drain and node.reason.startswith(DRAINED):
            self._undrain.append(node.name)

    def of_left_over(self, node: Node) -> None:
        """A node of the bridge without a chosen Kubernetes Node."""
        if is_others_drain(node):
            self._kept.append(node.name)
            return
        self._again = True
        if not node.is_drain:
            self._drain.setdefault(self._snapshot.why or GONE, []).append(node.name)
        if is_busy(node):
            self._leaving.append(node.name)
        elif node.is_drain:
            # One drained by an earlier pass: no job can have come since.
            self._delete.append(node.name)

    def _words(self, host: Host, devices: str) -> tuple[str, ...]:
        return (self._snapshot.name, *host.features, self._snapshot.mark, *([devices] if devices else []))

    def made(self) -> Plan:
        """All of it."""
        return Plan(tuple(self._actions()), tuple(self._problems()), tuple(self._waiting()), self._pending, self._again)

    def _actions(self) -> Iterator[Action]:
        if self._undrain:
            yield Undrain(tuple(self._undrain[:MOST]))
        for words, names in islice(self._features.items(), MOST):
            yield SetFeatures(tuple(names[:MOST]), words)
        for why, names in self._drain.items():
            yield Drain(tuple(names[:MOST]), why)
        if self._delete:
            yield Delete(tuple(self._delete[:MOST]))
        if self._snapshot.problems:
            return
        left = MOST_MADE
        for (size, words), names in self._create.items():
            for begin in range(0, len(names), MOST):
                some = tuple(names[begin : begin + min(MOST, left)])
                left -= len(some)
                if some:
                    yield Create(some, size, words)

    def _problems(self) -> Iterator[Problem]:
        yield from self._snapshot.problems
        if self._taken:
            text = (
                f"Slurm has nodes named {named(self._taken)}, which this bridge did not make and does not touch: "
                "take the label off these Kubernetes Nodes, or delete those nodes of Slurm"
            )
            yield Reason.NODE_NAME_TAKEN, text
        if self._names:
            text = (
                f"Slurm cannot have a node named {named(self._names)}: a set of nodes has this name, or it is no name "
                "for a node; take the label off these Kubernetes Nodes"
            )
            yield Reason.NODE_NAME_TAKEN, text
        if self._ignored:
            text = f"Slurm shows other sizes than it was given: {joined(self._ignored)}; look into slurmctld's log"
            yield Reason.SIZE_REFUSED, text
        if self._small:
            text = (
                f"Kubernetes Nodes {named(self._small)} have less than one CPU or {STEP_MIB} MiB left beside other pods"
            )
            yield Reason.NO_ROOM, text

    def _waiting(self) -> Iterator[str]:
        yield from _sentence(self._leaving, "takes no new jobs and is deleted when its jobs have ended")
        yield from _sentence(self._kept, "is to go, but stays since somebody else has drained it or set it down")
        yield from _sentence(self._resized, "gets another size when it is idle")


def _sentence(names: Sequence[str], what: str) -> Iterator[str]:
    if names:
        yield f"each of {named(names)} {what}" if len(names) > 1 else f"{names[0]} {what}"
