"""Fields of a SlurmJob that a pod asks for by annotations: what Kubernetes has no words for. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.reconcile.text import named

PARAMETERS: Final = "parameters"
REQUEUE: Final = "requeue"
NUMBERS: Final = frozenset({"tasks", "cpusPerTask"})


@dataclass(frozen=True, slots=True)
class AnnotatedFields:
    """Which fields annotations may have.

    Parameters
    ----------
    prefix
        What stands before the name of a field.
    fields
        Names of the fields.
    others
        Why other fields of a SlurmJob cannot be asked for, by name.
    not_read
        Annotations of this prefix that are no fields.
    """

    prefix: str
    fields: frozenset[str]
    others: Mapping[str, str]
    not_read: frozenset[str]

    def path(self, name: str) -> str:
        """Path of an annotation, for messages."""
        return f"metadata.annotations[{self.prefix}{name}]"

    def asked(self, annotations: Mapping[str, Any]) -> dict[str, Any]:
        """Return what annotations ask for, by the names of SlurmJob's fields.

        Raises
        ------
        InvalidJob
            For a name that is no such field, and for a value that is not of its kind.
        """
        found: dict[str, Any] = {}
        for key, value in sorted(annotations.items()):
            if not key.startswith(self.prefix) or key in self.not_read:
                continue
            name = key.removeprefix(self.prefix)
            if name not in self.fields:
                known = named(sorted(self.fields), len(self.fields))
                reason = self.others.get(name, f"is no field of a job: write one of {known}")
                raise InvalidJob(self.path(name[:100]), reason)
            found[name] = self._value(name, str(value))
        return found

    def _value(self, name: str, text: str) -> Any:
        if name in NUMBERS:
            if not (text.isascii() and text.isdecimal() and int(text[:20]) > 0):
                raise InvalidJob(self.path(name), f"must be a number from 1 on, not {text[:60]!r}")
            return int(text[:20])
        if name == REQUEUE:
            if text not in {"true", "false"}:
                raise InvalidJob(self.path(name), f"must be true or false, not {text[:60]!r}")
            return text == "true"
        if name == PARAMETERS:
            try:
                value = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise InvalidJob(self.path(name), f"must be JSON: {error}") from None
            if not isinstance(value, dict):
                raise InvalidJob(self.path(name), 'must be a JSON object, such as {"nice": 10}')
            return value
        return text
