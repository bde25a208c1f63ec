"""Options of sbatch, each with the field that asks for it.

Fields of a spec are read as what they are: options that stand behind those of the script. So they follow sbatch's own
rules, also for what several of them mean together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from slurm_client.notation.sbatch import Directive
from slurm_client.notation.sbatch.rules import EXCLUSIVE

NO_LINE: Final = 0
"""The line of an option that is in no script."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What one field asks for.

    Parameters
    ----------
    field
        Path of the field: ``spec.memory``.
    options
        Options with their values, None for an option without one; none where the field says that something is not
        wanted.
    instead_of
        Options of the script that count no more, beside those that are the same or exclude them.
    """

    field: str
    options: tuple[tuple[str, str | None], ...]
    instead_of: frozenset[str] = frozenset()

    @property
    def directives(self) -> tuple[Directive, ...]:
        """The options as the reader of ``#SBATCH`` lines takes them."""
        return tuple(Directive(option, value, NO_LINE) for option, value in self.options)

    @property
    def replaces(self) -> frozenset[str]:
        """All options of the script that count no more."""
        own = frozenset(option for option, _ in self.options) | self.instead_of
        return own | {other for group in EXCLUSIVE if own & set(group) for other in group}


@dataclass(frozen=True, slots=True)
class Conflict:
    """A line of the script that says something else than a field, which wins.

    Parameters
    ----------
    field
        Path of the field.
    option, value, line
        What the script says, and where.
    """

    field: str
    option: str
    value: str | None
    line: int

    @override
    def __str__(self) -> str:
        shown = self.option if self.value is None else f"{self.option}={self.value[:60]}"
        return f"{self.field} wins over {shown} in line {self.line} of the script"


def fields_by_option(wishes: Iterable[Wish]) -> Mapping[str, str]:
    """Give the field of each option."""
    return {option: wish.field for wish in wishes for option, _ in wish.options}


def divided(
    lines: Iterable[Directive], wishes: Iterable[Wish]
) -> tuple[tuple[Directive, ...], tuple[Directive, ...], tuple[Conflict, ...]]:
    """Tell the lines that count from those that fields replace.

    Returns
    -------
    tuple
        The lines that count, those that do not, and a conflict for the last of each option that says something else.
    """
    by_option = {option: wish for wish in wishes for option in wish.replaces}
    kept: list[Directive] = []
    replaced: list[Directive] = []
    conflicts: dict[str, Conflict] = {}
    for line in lines:
        wish = by_option.get(line.option)
        if wish is None:
            kept.append(line)
            continue
        replaced.append(line)
        conflicts.pop(line.option, None)
        if (line.option, line.value) not in wish.options:
            conflicts[line.option] = Conflict(wish.field, line.option, line.value, line.line)
    return tuple(kept), tuple(replaced), tuple(conflicts.values())
