"""Whether Slurm makes an external step of each job, into which sessions by SSH can be put. Pure."""

from __future__ import annotations

from typing import Final

from slinky_operator.slurm.conf.syntax.directives import TextProblem, parse_lines

CONTAIN: Final = "PrologFlags=Contain"
"""The line of slurm.conf."""

_IMPLYING: Final = frozenset({"contain", "runinjob", "x11"})
"""Flags with which Slurm does so, in lower case."""


def has_contain(extra_conf: str) -> bool:
    """Whether lines of slurm.conf have the flag, or one that implies it; slurmctld takes the last such line."""
    found = parse_lines(extra_conf)
    if isinstance(found, TextProblem):
        return False
    values = [one.value for one in found if one.folded == "prologflags"]
    return bool(values) and not _IMPLYING.isdisjoint(word.strip().lower() for word in values[-1].split(","))
