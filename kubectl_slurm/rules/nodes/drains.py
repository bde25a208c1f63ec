"""What a drain or an undrain would change, and whose drains it leaves alone. Pure.

The operator tells its own drains by how their reasons begin, and undoes those itself. It never touches drains of
others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kubectl_slurm.rules.nodes import service
from kubectl_slurm.screen.blocks import Line, Mood, Screen, Section
from kubectl_slurm.screen.words import clip, nodes, number
from slinky_operator.slurm.nodes.drain_reasons import PREFIX
from slurm_client.models import Job, Node

LONGEST: Final = 200
"""Characters of a reason."""

MOST_LINES: Final = 20


@dataclass(frozen=True, slots=True)
class Change:
    """Nodes to be changed, nodes that are left alone and why, and names that no node has."""

    names: tuple[str, ...]
    kept: tuple[tuple[str, str], ...]
    unknown: tuple[str, ...]


def refusal(reason: str) -> str:
    """Why a text cannot be the reason of a drain; empty if it can."""
    if not reason.strip():
        return "a drain needs a reason: who finds the node later has nothing else"
    if len(reason) > LONGEST:
        return f"the reason has {len(reason)} characters, and may have {LONGEST}"
    if not reason.isprintable():
        return "the reason has characters that are not printable"
    if reason.startswith(PREFIX):
        return f"a reason that begins with {PREFIX.strip()!r} is the operator's own, and would be undone by it"
    return ""


def full(reason: str, user: str) -> str:
    """The reason with who gave it: Slurm only knows the user of the token."""
    who = "".join(each for each in user if each.isprintable())[:80]
    return f"{reason.strip()} ({who})" if who else reason.strip()


def drain(names: Iterable[str], known: Iterable[Node], *, overwrite: bool) -> Change:
    """Which nodes to drain: those that are drained already keep their reason, unless it is to be overwritten."""
    by_name = {node.name: node for node in known}
    wanted = list(dict.fromkeys(names))
    found = [by_name[name] for name in wanted if name in by_name]
    kept = [node for node in found if node.is_drain and not overwrite]
    return Change(
        tuple(node.name for node in found if node not in kept),
        tuple((node.name, f"drained already by {service.who(node)}: {clip(node.reason)}") for node in kept),
        tuple(name for name in wanted if name not in by_name),
    )


def undrain(names: Iterable[str], known: Iterable[Node]) -> Change:
    """Which nodes to undrain: not those that the operator drains, which it would drain again at once."""
    by_name = {node.name: node for node in known}
    wanted = list(dict.fromkeys(names))
    found = [by_name[name] for name in wanted if name in by_name]
    ours = [node for node in found if node.is_drain and node.reason.startswith(PREFIX)]
    free = [node for node in found if not node.is_drain]
    return Change(
        tuple(node.name for node in found if node not in ours and node not in free),
        (
            *((node.name, f"the operator drains it ({clip(node.reason)}), and would again") for node in ours),
            *((node.name, f"not drained: {service.state(node)}") for node in free),
        ),
        tuple(name for name in wanted if name not in by_name),
    )


def screen(change: Change, known: Sequence[Node], jobs: Iterable[Job], *, drained: bool) -> Screen:
    """What was changed."""
    word, changed = ("drained" if drained else "undrained"), set(change.names)
    lines: list[Line] = []
    if drained and changed:
        running = [job for job in jobs if job.holds_nodes and changed & set(job.nodes)]
        text = f"Jobs on them, which go on to their end: {len(running)}." if running else "No job is on them."
        lines.append(Line(text))
    elif changed:
        old = [node for node in known if node.name in changed]
        lines += [
            Line(f"{node.name} was drained by {service.who(node)}: {clip(node.reason)}") for node in old[:MOST_LINES]
        ]
    lines += [Line(f"{name} is left alone: {why}", Mood.WARNING) for name, why in change.kept[:MOST_LINES]]
    more = len(change.kept) - MOST_LINES
    tail = (Line(f"and {more} more are left alone", Mood.WARNING),) if more > 0 else ()
    if not changed:
        return (Section(f"Nothing was changed: no node was {word}", (*lines, *tail), Mood.WARNING),)
    return (Section(f"{number(len(changed), 'node')} {word}: {nodes(change.names)}", (*lines, *tail), Mood.GOOD),)
