"""
Generic resources of nodes, counted and given: GPUs above all.

What a node has is in its ``gres`` (``gpu:h100:4``), what a job wants in its ``tres_requested`` (``gres/gpu:h100=2``),
what it got on each node in its ``gres_detail`` (``gpu:h100:2(IDX:0-1)``).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from slurm_client.notation import gres, tres
from slurm_client.testing.refusals import INVALID_GRES, TOO_MUCH_OF_A_NODE, Refusal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from slurm_client.models import Job, Node


def wished(text: str) -> dict[str, int]:
    """
    Read what a submission wants of each node: ``gres/gpu:2``, ``gres:gpu:h100:1``, ``gres/gpu=1``.

    Returns
    -------
    dict
        Counts by ``gpu`` or ``gpu:h100``; Refusal for what is no such text.
    """
    try:
        entries = tres.Tres.parse(text)
    except ValueError:
        raise Refusal(INVALID_GRES, "Batch job submission failed") from None
    found: Counter[str] = Counter()
    for each in entries:
        if each.type == "gres":
            found[_key(each)] += each.count
    return dict(found)


def check(wants: Mapping[str, int], nodes: Collection[Node]) -> None:
    """
    Refuse what no node has, and more than any node has.

    Raises
    ------
    Refusal
        With the error number for either.
    """
    for key, count in wants.items():
        name, _, kind = key.partition(":")
        most = max((_count(node, name, kind) for node in nodes), default=0)
        if count > most:
            known = any(_count(node, name, "") for node in nodes)
            raise Refusal(TOO_MUCH_OF_A_NODE if known else INVALID_GRES, "Batch job submission failed")


def _count(node: Node, name: str, kind: str) -> int:
    return sum(each.count for each in gres.parse(node.gres) if each.name == name and kind in {"", each.type})


def wanted(job: Job) -> dict[str, int]:
    """Return what a job wants of each of its nodes, by ``gpu`` or ``gpu:h100``."""
    found = {
        _key(each): each.count // max(1, job.node_count or 1)
        for each in tres.Tres.parse(job.tres_requested)
        if each.type == "gres"
    }
    # A count of a type is in that of the name as well.
    typed = {key.partition(":")[0] for key in found if ":" in key}
    return {key: count for key, count in found.items() if key not in typed}


def used(node: Node, jobs: Iterable[Job]) -> dict[tuple[str, str], set[int]]:
    """Return the numbers of the devices of a node that jobs have, by name and type."""
    taken: dict[tuple[str, str], set[int]] = {}
    for job in jobs:
        if node.name in job.nodes and len(job.gres_detail) == len(job.nodes):
            for each in gres.parse(job.gres_detail[job.nodes.index(node.name)]):
                taken.setdefault((each.name, each.type), set()).update(each.indices or ())
    return taken


def given(node: Node, wants: Mapping[str, int], jobs: Iterable[Job]) -> str | None:
    """Return the devices of a node that a job gets, ``None`` if there are not enough; empty if it wants none."""
    taken = used(node, jobs)
    found = []
    for key, count in wants.items():
        name, _, kind = key.partition(":")
        missing = count
        for each in gres.parse(node.gres):
            if each.name != name or (kind and each.type != kind):
                continue
            # Devices of the types of one name have their numbers one behind the other.
            free = sorted(set(_numbers(node, each)) - taken.get((each.name, each.type), set()))[:missing]
            if free:
                missing -= len(free)
                found.append(_written(each, free))
        if missing:
            return None
    return ",".join(found)


def shown_used(node: Node, jobs: Iterable[Job]) -> str:
    """Write what is used of a node as slurmctld shows it: ``gpu:h100:2(IDX:0-1)``."""
    taken = used(node, jobs)
    return ",".join(_written(each, sorted(taken.get((each.name, each.type), ()))) for each in gres.parse(node.gres))


def as_tres(entries: Iterable[str]) -> dict[str, int]:
    """Count devices as TRES: ``gres/gpu`` of all types, and ``gres/gpu:h100`` of each."""
    found: Counter[str] = Counter()
    for each in gres.parse(",".join(filter(None, entries))):
        found[f"gres/{each.name}"] += each.count
        if each.type:
            found[f"gres/{each.name}:{each.type}"] += each.count
    return dict(found)


def _key(entry: tres.TresCount) -> str:
    return f"{entry.name}:{entry.subtype}" if entry.subtype else entry.name


def _numbers(node: Node, wanted_entry: gres.Gres) -> range:
    first = 0
    for each in gres.parse(node.gres):
        if (each.name, each.type) == (wanted_entry.name, wanted_entry.type):
            break
        if each.name == wanted_entry.name:
            first += each.count
    return range(first, first + wanted_entry.count)


def _written(entry: gres.Gres, numbers: list[int]) -> str:
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    listed = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans) or "N/A"
    return ":".join(filter(None, (entry.name, entry.type, str(len(numbers))))) + f"(IDX:{listed})"
