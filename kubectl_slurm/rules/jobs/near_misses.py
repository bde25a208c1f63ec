"""What each node lacks for a job: which have room, which are busy, and which miss by one thing. Pure.

Amounts are those that slurmctld shows; how Slurm would lay a job out on sockets is not asked. A job of several nodes is
taken to need an equal part of its CPUs on each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kubectl_slurm.facts.pictures import SlurmPicture
from kubectl_slurm.rules.nodes import service
from kubectl_slurm.screen.blocks import Line, Mood, Part, Row, table
from kubectl_slurm.screen.words import clip, nodes, number
from slinky_operator.autoscaling.rules.features import NotReadable, matches
from slinky_operator.autoscaling.rules.needs import amounts
from slinky_operator.slurm.nodes.gres_amounts import gres_amounts
from slurm_client.cli.text import memory
from slurm_client.models import Job, Node
from slurm_client.notation import hostlist

MOST_EXCLUDED: Final = 10_000
"""Nodes that a job excludes or requires and that are read."""


@dataclass(frozen=True, slots=True)
class Miss:
    """One thing that a node lacks.

    Attributes
    ----------
    thing
        What: nodes that lack the same are shown together.
    text
        In full, with numbers.
    short
        By how much, to find the nearest.
    forever
        Whether it lacks it even without jobs.
    """

    thing: str
    text: str
    short: float = 0.0
    forever: bool = False


@dataclass(frozen=True, slots=True)
class Examined:
    """A node and all that it lacks for a job."""

    node: Node
    misses: tuple[Miss, ...]


def examine(job: Job, slurm: SlurmPicture) -> list[Examined]:
    """The nodes of a job's partitions, each with what it lacks."""
    wanted = {name for name in job.partition.split(",") if name}
    excluded, required = _names(job.excluded_nodes), _names(job.required_nodes)
    return [
        Examined(node, tuple(_misses(job, node, excluded, required)))
        for node in slurm.nodes
        if wanted & set(node.partitions)
    ]


def parts(job: Job, slurm: SlurmPicture) -> tuple[Part, ...]:
    """What to say of a job's nodes."""
    found = examine(job, slurm)
    where = f"partition {clip(job.partition, 60)}"
    if not found:
        return (Line(f"No node is in {where}.", Mood.BAD),)
    free = [one for one in found if not one.misses]
    never = [one for one in found if any(miss.forever for miss in one.misses)]
    needs = max(1, job.node_count or 1)
    lines: list[Part] = [
        Line(
            f"Of {number(len(found), 'node')} in {where} the job needs {needs}: {len(free)}"
            f" {'has' if len(free) == 1 else 'have'} room now, {len(found) - len(free) - len(never)} might later,"
            f" {len(never)} never."
        )
    ]
    if len(found) - len(never) < needs:
        text = (
            f"Not even empty does the partition have {number(needs, 'node')} for this job: it will not start as it is."
        )
        lines.append(Line(text, Mood.BAD))
    if free:
        lines.append(Line(f"With room: {nodes(one.node.name for one in free)}."))
    near = [one for one in found if len(one.misses) == 1]
    if near:
        lines += [Line("Nodes that miss by one thing:"), _table(near)]
    elif not free:
        common = _common(found)
        lines.append(Line(f"Every node misses by several things, most often: {common}."))
    return tuple(lines)


def _table(near: Iterable[Examined]) -> Part:
    groups: dict[tuple[str, bool], list[Examined]] = {}
    for one in near:
        groups.setdefault((one.misses[0].thing, one.misses[0].forever), []).append(one)
    rows = []
    for (thing, forever), some in sorted(groups.items(), key=lambda each: (-len(each[1]), each[0])):
        best = min(some, key=lambda one: (one.misses[0].short, one.node.name))
        nearest = f"{best.node.name}: {best.misses[0].text}"
        cells = (str(len(some)), nodes(one.node.name for one in some), thing, clip(nearest))
        rows.append(Row(cells, Mood.BAD if forever else Mood.PLAIN))
    return table(("COUNT", "NODES", "IN THE WAY", "THE NEAREST"), rows, "groups of nodes", numbers=("COUNT",), most=10)


def _common(found: Iterable[Examined]) -> str:
    counts: dict[str, int] = {}
    for one in found:
        for miss in one.misses:
            counts[miss.thing] = counts.get(miss.thing, 0) + 1
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{thing} ({count})" for thing, count in ordered[:3])


def _misses(job: Job, node: Node, excluded: frozenset[str], required: frozenset[str]) -> Iterator[Miss]:
    """All that a node lacks for a job."""
    if node.name in excluded:
        yield Miss("excluded", "the job excludes it", forever=True)
    if required and node.name not in required:
        yield Miss("not named", "the job names other nodes", forever=True)
    if node.is_external and "EXTERNAL_JOB" not in job.flags:
        yield Miss("no slurmd", "only pods run there that Slurm places", forever=True)
    if service.is_out(node):
        reason = f" ({clip(node.reason, 80)})" if node.reason else ""
        yield Miss("out of service", f"{service.state(node)}, set by {service.who(node) or 'Slurm'}{reason}")
    elif not node.is_usable and not (node.state.flags & service.ASLEEP):
        held = f" by {node.reservation}" if node.reservation else ""
        yield Miss("a reservation", f"{node.state}{held}")
    if node.reservation and node.is_usable and job.reservation != node.reservation:
        yield Miss("a reservation", f"reserved by {clip(node.reservation, 60)}")
    yield from _features(job, node)
    yield from _amounts(job, node)


def _features(job: Job, node: Node) -> Iterator[Miss]:
    if not job.features:
        return
    try:
        fits = matches(job.features, node.active_features or node.features)
    except NotReadable:
        # It speaks of several nodes together; nothing can be said of one.
        return
    if not fits:
        has = ",".join(node.active_features or node.features) or "none"
        yield Miss("features", f"has {clip(has, 60)}, the job wants {clip(job.features, 60)}", forever=True)


def _amounts(job: Job, node: Node) -> Iterator[Miss]:
    count = max(1, job.node_count or 1)
    on_each = max(job.minimum_cpus_per_node or 1, job.cpus_per_task or 1, -(-(job.cpus or 1) // count))
    has = node.effective_cpus or node.cpus
    yield from _amount("CPUs", on_each, has, has - node.alloc_cpus, str)
    wanted = job.memory_per_node_mib or (job.memory_per_cpu_mib or 0) * on_each
    has = node.real_memory_mib - node.specialized_memory_mib
    yield from _amount("memory", wanted, has, has - node.alloc_memory_mib, memory)
    try:
        gres = dict(amounts(f"{job.tres_per_node},{job.tres_per_socket}"))
        for key, total in (*amounts(job.tres_per_job), *_of_tasks(job)):
            gres[key] = max(gres.get(key, 0), -(-total // count))
    except NotReadable:
        return
    have, used = dict(gres_amounts(node.gres)), dict(gres_amounts(node.gres_used))
    for key, needed in sorted(gres.items()):
        yield from _amount(key, needed, have.get(key, 0), have.get(key, 0) - used.get(key, 0), str)
    if "none" in {word.lower() for word in job.shared} and node.alloc_cpus:
        yield Miss("other jobs", "has jobs, and this one wants its nodes alone")


def _of_tasks(job: Job) -> Iterator[tuple[str, int]]:
    for key, each in amounts(job.tres_per_task):
        yield key, each * max(1, job.tasks or 1)


def _amount(thing: str, needed: int, has: int, free: int, shown: object) -> Iterator[Miss]:
    word = shown if callable(shown) else str
    if needed > has:
        yield Miss(thing, f"has {word(has)}, the job needs {word(needed)}", needed - has, forever=True)
    elif needed > free:
        text = f"{word(max(0, free))} of {word(has)} free, the job needs {word(needed)}"
        yield Miss(thing, text, needed - free)


def _names(text: str) -> frozenset[str]:
    try:
        return frozenset(hostlist.expand(text)) if text and hostlist.size(text) <= MOST_EXCLUDED else frozenset()
    except ValueError:
        return frozenset()
