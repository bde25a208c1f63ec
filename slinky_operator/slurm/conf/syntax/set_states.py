"""Comments of a rendered slurm.conf that say which partitions have a state set by `scontrol`: written and read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

_COMMENT: Final = re.compile(r"# (?P<name>\S+) is (?P<state>[A-Z]+) by scontrol, not (?P<spec>\S+) as in the spec")


@dataclass(frozen=True, slots=True)
class SetState:
    """A state that is not the spec's."""

    state: str
    spec: str
    """What the spec says."""


def comments(states: Mapping[str, SetState]) -> tuple[str, ...]:
    """The lines that tell of these states, by partition."""
    return tuple(
        f"# {name} is {one.state} by scontrol, not {one.spec} as in the spec" for name, one in sorted(states.items())
    )


def told_by(lines: Iterable[str]) -> dict[str, SetState]:
    """What such lines tell; others are passed over."""
    found = filter(None, map(_COMMENT.fullmatch, lines))
    return {one["name"]: SetState(one["state"], one["spec"]) for one in found}
