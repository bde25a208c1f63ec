"""What the options of a script have said so far: fields of a JobSpec, and which option each of them is from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, tzinfo

    from slurm_client.notation.sbatch.options import Directive


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What sbatch takes from where it runs: the time, its zone, and variables that ``--export`` may name."""

    now: datetime
    zone: tzinfo
    environment: Mapping[str, str]


@dataclass(slots=True)
class Draft:
    """
    A JobSpec in the making.

    Attributes
    ----------
    fields
        Values by the names of the fields of JobSpec.
    sources
        The option that each field is from; of several, the last.
    given
        The last of each option.
    idle
        Options that change nothing about the job, with the reason.
    raw
        Values that say something only together with others, by their option.
    exported
        Variables of ``--export``, if it was given.
    variables
        Variables that sbatch sets for ``srun`` in the script, with the option that each is from.
    """

    surroundings: Surroundings
    fields: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, Directive] = field(default_factory=dict)
    given: dict[str, Directive] = field(default_factory=dict)
    idle: dict[Directive, str] = field(default_factory=dict)
    raw: dict[str, Any] = field(default_factory=dict)
    exported: tuple[Directive, dict[str, str]] | None = None
    variables: dict[str, tuple[str, Directive]] = field(default_factory=dict)

    def set(self, name: str, value: Any, source: Directive) -> None:
        """Set a field; a later option wins."""
        self.fields[name] = value
        self.sources[name] = source

    def unset(self, name: str) -> None:
        """Forget a field."""
        self.fields.pop(name, None)
        self.sources.pop(name, None)

    def flag(self, word: str, source: Directive, *, instead_of: tuple[str, ...] = ()) -> None:
        """Add one of the job's flags, in place of those that contradict it."""
        kept = [each for each in self.fields.get("flags", ()) if each != word and each not in instead_of]
        self.set("flags", (*kept, word), source)

    def variable(self, name: str, value: object, source: Directive) -> None:
        """Set a variable for ``srun``."""
        self.variables[name] = (str(value), source)
