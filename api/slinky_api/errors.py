"""What can be wrong with an object as it was read.

One tree for this boundary::

    SlinkyApiError
    └── SpecError               a spec asks for what cannot be done
        └── InvalidObjectError  an object that the models refuse
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import ValidationError
from typing_extensions import override

__all__ = ["InvalidObjectError", "Problem", "SlinkyApiError", "SpecError"]


class SlinkyApiError(Exception):
    """Base of everything this package raises."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One field that is wrong, and why."""

    field: str
    """Path of the field as a user writes it, for example ``spec.partitions[0].config``; empty for the object."""

    reason: str
    """What is wrong with it, as a sentence for the user."""

    @override
    def __str__(self) -> str:
        return f"{self.field}: {self.reason}" if self.field else self.reason


class SpecError(SlinkyApiError):
    """A spec asks for what cannot be done; the text names the field and what is wrong with it."""

    expected: ClassVar[bool] = False
    """Whether it happens in healthy operation."""

    retry_after: ClassVar[float | None] = None
    """Seconds after which it may go better: nobody knows when the spec will change."""


class InvalidObjectError(SpecError):
    """An object that cannot be what it says it is.

    The API server refuses nearly all of them first; this one speaks where it could not: the installed CRD is older,
    or the object was stored before the rule existed.

    Parameters
    ----------
    kind, namespace, name
        The object, as far as it could be read.
    problems
        At least one; the first is the one in ``field`` and ``reason``.
    """

    def __init__(self, kind: str, namespace: str, name: str, problems: tuple[Problem, ...]) -> None:
        self.kind = kind
        self.namespace = namespace
        self.name = name
        self.problems = problems
        super().__init__(f"{kind} {namespace}/{name}: {'; '.join(map(str, problems))}")

    @property
    def field(self) -> str:
        """Path of the first field that is wrong."""
        return self.problems[0].field

    @property
    def reason(self) -> str:
        """What is wrong with it."""
        return self.problems[0].reason

    @classmethod
    def from_validation(cls, kind: str, obj: object, error: ValidationError) -> "InvalidObjectError":
        """Say in the object's own terms what pydantic found.

        Parameters
        ----------
        kind
            The kind that was expected.
        obj
            The object as it was read.
        error
            What the models said of it.
        """
        metadata: object = obj.get("metadata") if isinstance(obj, Mapping) else None
        known: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
        problems = tuple(
            Problem(_path(item["loc"]), item["msg"].removeprefix("Value error, ")) for item in error.errors()
        )
        return cls(kind, str(known.get("namespace", "")), str(known.get("name", "")), problems)


def _path(location: tuple[int | str, ...]) -> str:
    """Write a location as users do: dots, and indices in brackets."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")
