"""A set of names as rows: name, text, and how the value is taken from what was counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from slurm_client.models.service import Diag
from slurm_exporter.samples.family import Family, Kind, Labels, Samples

T = TypeVar("T")


@dataclass(frozen=True)
class Row(Generic[T]):
    """One name.

    Attributes
    ----------
    name
        Without the prefix of the group.
    text
        For the HELP line and the table.
    value
        Takes the value; `None` where nothing is known: then there is no sample.
    unit
        Base unit.
    """

    name: str
    text: str
    value: Callable[[T], float | None]
    unit: str = "1"


@dataclass(frozen=True)
class Group(Generic[T]):
    """Rows with the same prefix and labels.

    Attributes
    ----------
    prefix
        What their names begin with.
    labels
        Names of their labels.
    rows
        The names.
    source
        Operation of slurmrestd.
    """

    prefix: str
    labels: tuple[str, ...]
    rows: tuple[Row[T], ...]
    source: str

    def families(self) -> Iterable[Family]:
        """Yield the declaration of each row."""
        for row in self.rows:
            yield Family(self.prefix + row.name, Kind.GAUGE, row.text, self.source, self.labels, row.unit)

    def samples(self, counted: Mapping[Labels, T]) -> Iterable[Samples]:
        """Yield the samples of each row, from what was counted under each value of the labels."""
        for row, family in zip(self.rows, self.families(), strict=True):
            values = {labels: row.value(one) for labels, one in counted.items()}
            yield Samples(family, {labels: value for labels, value in values.items() if value is not None})


class Counted(Protocol):
    """Things that were counted by state and by flag."""

    @property
    def states(self) -> Mapping[str, int]:
        """By base state."""
        ...

    @property
    def flags(self) -> Mapping[str, int]:
        """By flag."""
        ...


C = TypeVar("C", bound=Counted)


def of_states(what: str, names: Mapping[str, str], form: str) -> tuple[Row[C], ...]:
    """Return a row for each base state.

    Parameters
    ----------
    what
        What is counted, for the texts.
    names
        Slurm's word by the word in the name.
    form
        The name, with `{}` for that word.
    """
    return tuple(
        Row(form.format(name), f"{what} whose state is {word}.", partial(_state, word)) for name, word in names.items()
    )


def of_flags(what: str, names: Mapping[str, str], form: str) -> tuple[Row[C], ...]:
    """Return a row for each flag; parameters as of :func:`of_states`."""
    return tuple(
        Row(form.format(name), f"{what} with the flag {word}.", partial(_flag, word)) for name, word in names.items()
    )


def _state(word: str, found: Counted) -> int:
    return found.states.get(word, 0)


def _flag(word: str, found: Counted) -> int:
    return found.flags.get(word, 0)


def number(name: str, text: str, field: str, unit: str = "1", factor: float = 1.0) -> Row[Diag]:
    """Return a row of a number of the schedulers' statistics."""
    return Row(name, text, lambda diag: getattr(diag, field) * factor, unit)


def moment(name: str, text: str, field: str) -> Row[Diag]:
    """Return a row of a time of the schedulers' statistics, in whole seconds; 0 for what has never been, as there."""

    def seconds(diag: Diag) -> float:
        found = getattr(diag, field)
        return 0.0 if found is None else float(int(found.timestamp()))

    return Row(name, text, seconds, "seconds")


def ends(name: str, scheduler: str, reason: str) -> Row[Diag]:
    """Return a row of the cycles of the `main` or the `backfill` scheduler that ended for a reason."""

    def value(diag: Diag) -> float:
        return dict(diag.backfill_exit if scheduler == "backfill" else diag.schedule_exit).get(reason, 0)

    return Row(name, f"Cycles of the {scheduler} scheduler that ended because of {reason}.", value)
