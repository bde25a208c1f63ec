"""
What became of the reservations of a bulk call.

slurmrestd answers with errors alone, and nothing about those that went well. An error tells whom it is about by an
index in its source, by a name in its text, or not at all: then it is about a new one that was not made, and they come
in the order of the reservations.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING

from slurm_client import errors
from slurm_client.connection import error_numbers
from slurm_client.decode.read import items, mapping, number, text
from slurm_client.models.reservation import ReservationResult

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from slurm_client.connection.answers import Answer
    from slurm_client.models.reservation import ReservationSpec

_INVALID, _DUPLICATE = 2053, 2082
_BY_NAME = re.compile(r"Error (?:creating|updating) reservation\s+(\S{1,256})")
_BY_INDEX = re.compile(r"#/reservations\[([0-9]{1,6})\]/.*")


def of_each(error: errors.SlurmError) -> bool:
    """Whether an error may be about one of many reservations, so that others may have been made."""
    return not isinstance(error, errors.Unauthorized | errors.Unreachable)


def names_of(specs: Sequence[ReservationSpec], call: str) -> list[str]:
    """
    Return the names of reservations, each of which must have one of its own.

    Raises
    ------
    InvalidArgument
        If one has none, or that of another.
    """
    names: list[str] = []
    for index, spec in enumerate(specs):
        if not spec.name or spec.name in names:
            wrong = f"is {spec.name!r:.40}, which another has too" if spec.name else "is not set"
            field = f"specs[{index}].name"
            raise errors.InvalidArgument(f"{call}: {field} {wrong}; nothing was sent", field=field)
        names.append(spec.name)
    return names


class ReservationResults:
    """
    Gathers what became of each.

    Parameters
    ----------
    names
        Of all reservations, in the order given.
    sent
        Indices of those that are sent, in that order; the others are refused here.
    new
        Whether they are to be created.
    """

    def __init__(self, names: Sequence[str], sent: Sequence[int], *, new: bool) -> None:
        self.new = new
        self._names = names
        self._sent = [names[index] for index in sent]
        self._errors: dict[str, errors.Report] = {}
        self._of_nobody: deque[errors.Report] = deque()
        refused, sentence = (_DUPLICATE, "there is one already") if new else (_INVALID, "there is none")
        for name in set(names) - set(self._sent):
            self._errors[name] = errors.Report(
                description=f"{sentence} of the name {name}; it was not sent",
                number=refused,
                name=error_numbers.name_of(refused),
            )

    def note(self, answer: Answer) -> bool:
        """Take the errors of an answer; whether each of them says whom it is about."""
        for raw in map(mapping, items(answer.fields.get("errors"))):
            code = number(raw.get("error_number"))
            report = errors.Report(
                description=errors.said(text(raw.get("description"))),
                number=code,
                name=error_numbers.name_of(code),
                error=errors.said(text(raw.get("error"))),
                source=errors.said(text(raw.get("source"))),
            )
            name = self._name_in(text(raw.get("description")), text(raw.get("source")))
            if name is None:
                self._of_nobody.append(report)
            else:
                self._errors.setdefault(name, report)
        return not self._of_nobody

    def _name_in(self, description: str, source: str) -> str | None:
        by_index, by_name = _BY_INDEX.fullmatch(source), _BY_NAME.fullmatch(description)
        if by_index and int(by_index[1]) < len(self._sent):
            return self._sent[int(by_index[1])]
        return by_name[1] if by_name and by_name[1] in self._sent else None

    def note_missing(self, there: Collection[str]) -> bool:
        """Give the errors of nobody to those that were not made, in their order; whether they fit one another."""
        missing = [name for name in self._sent if name not in there and name not in self._errors]
        if len(missing) != len(self._of_nobody):
            return False
        self._errors.update(zip(missing, self._of_nobody, strict=True))
        return True

    def results(self) -> tuple[ReservationResult, ...]:
        """Return what became of each, in the order given."""
        return tuple(ReservationResult(name, self._errors.get(name)) for name in self._names)
