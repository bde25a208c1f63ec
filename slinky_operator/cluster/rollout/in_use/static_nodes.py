"""Lines of nodes outside Kubernetes that stay while jobs or reservations depend on them. Pure.

What a reconfigure does (tried with both releases: `tests/integration/slurm_conf/test_references.py`):

- A node is removed: jobs on it end, or are requeued. So does each job that requires it by name (`-w`), running
  elsewhere or pending, and it is not requeued. A job that excludes it (`-x`) stays, but nothing about it can be changed
  any more, not even its time limit.
- Its CPUs, sockets, cores, threads or GRES change: jobs on it are requeued, or end.
- Its features change: a pending job whose constraint no node fulfills is held (`BadConstraints`) when the scheduler
  looks at it, and stays held when a node has the feature again. Features of NodeSets' nodes are not in these lines: a
  job that such a node could run delays the change too, until it has started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from slinky_operator.cluster.rollout.in_use.names import Hostlists, features_in
from slinky_operator.cluster.rollout.in_use.parameters import quoted, users
from slinky_operator.slurm.conf.syntax.parsed import Line, Parsed
from slurm_client.notation import hostlist

HARDWARE: Final = frozenset(
    ("cpus", "procs", "boards", "sockets", "socketsperboard", "corespersocket", "threadspercore", "gres")
)
"""Keywords of a node's line for hardware that jobs on it hold."""

FEATURES: Final = frozenset(("feature", "features"))


@dataclass(frozen=True, slots=True)
class OnNodes:
    """What a job has, and names, of nodes."""

    nodes: frozenset[str]
    named: str = ""
    features: str = ""


@dataclass(frozen=True, slots=True)
class Named:
    """Jobs by id, and the nodes of reservations by name."""

    jobs: Mapping[int, OnNodes] = field(default_factory=dict)
    reservations: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChangedLine:
    """What a change does to the nodes of one line."""

    nodes: frozenset[str] = frozenset()
    """Nodes that are removed, or whose hardware changes."""

    removed: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    """Features that no line has any more."""


def changed_lines(old: Parsed, new: Parsed) -> dict[str, ChangedLine]:
    """Lines of nodes outside Kubernetes that jobs may depend on, each with what changes."""
    # A line may contain tens of thousands of nodes: those that are the same in both are not expanded.
    # Nor are future nodes of NodeSets among them, on which there is never a job.
    before, now = (
        {key: line for key, line in one.nodes.items() if key not in future}
        for one, future in ((one, frozenset(one.future.values())) for one in (old, new))
    )
    others = {key: _hardware(line) for key, line in now.items() if key not in before or _differs(before[key], line)}
    after = {name: hardware for key, hardware in others.items() for name in hostlist.expand(key)}
    lost = _features(before) - _features(now) - frozenset(new.node_sets)
    found = {}
    for key, line in before.items():
        nodes: frozenset[str] = frozenset()
        removed: frozenset[str] = frozenset()
        if key not in now or _differs(line, now[key]):
            names = frozenset(hostlist.expand(key))
            removed = names - after.keys()
            hardware = _hardware(line)
            nodes = removed | {name for name in names & after.keys() if after[name] != hardware}
        changed = ChangedLine(nodes, removed, _features_of(line) & lost)
        if changed != ChangedLine():
            found[key] = changed
    return found


def lines_that_stay(
    lines: Mapping[str, ChangedLine],
    use: Named | None,
    why: list[str],
    silence: str,
    kept: frozenset[str],
) -> list[str]:
    """Lines that stay unchanged as a whole: addresses in them may be lists as long as that of the names.

    Parameters
    ----------
    lines
        As `changed_lines` gives them.
    use
        Slurm's answer; `None` if there is none, and then all of them stay.
    why
        For people: what stays is added.
    silence
        Why there is no answer.
    kept
        Nodes that a partition names that stays: slurmctld does not start without them.
    """
    stay = []
    lists = Hostlists()
    for key, line in lines.items():
        if use is None:
            why.append(f"node {key} stays as it is until Slurm says what is on it{quoted(silence)}")
        else:
            jobs = [number for number, job in use.jobs.items() if _concerns(line, job, lists)]
            reservations = [name for name, nodes in use.reservations.items() if not line.nodes.isdisjoint(nodes)]
            if jobs or reservations:
                why.append(f"node {key} stays as it is for {users(jobs, reservations)}")
            elif line.nodes.isdisjoint(kept):
                continue
        stay.append(key)
    return stay


def _concerns(line: ChangedLine, job: OnNodes, lists: Hostlists) -> bool:
    if not line.nodes.isdisjoint(job.nodes):
        return True
    wanted = features_in(job.features) if line.features else frozenset()
    return wanted is None or not wanted.isdisjoint(line.features) or lists.name_any(job.named, line.removed)


def _differs(before: Line, after: Line) -> bool:
    return _hardware(before) != _hardware(after)


def _hardware(line: Line) -> frozenset[tuple[str, str]]:
    return frozenset((word.folded, word.value) for word in line.words if word.folded in HARDWARE)


def _features(lines: Mapping[str, Line]) -> frozenset[str]:
    return frozenset(feature for line in lines.values() for feature in _features_of(line))


def _features_of(line: Line) -> frozenset[str]:
    values = (word.value for word in line.words if word.folded in FEATURES)
    return frozenset(feature for value in values for feature in value.split(",") if feature)
