"""The one error of a job that cannot be submitted as it is written."""

from __future__ import annotations

from typing import Final

from slinky_api.errors import Problem, SpecError

LONGEST: Final = 500
"""Most characters of a reason: a part of it is the user's own text."""


class InvalidJob(SpecError):
    """What a spec asks for is no job that could be submitted.

    Parameters
    ----------
    field
        Path of the field, for example ``spec.memory``, or ``spec.script`` for a line of the script.
    reason
        What is wrong, and what to do; cut to `LONGEST` characters.
    line
        Number of the line in the script, from 1 on; 0 where it is about no line.
    """

    def __init__(self, field: str, reason: str, line: int = 0) -> None:
        self.line = line
        reason = " ".join(reason.split())
        if len(reason) > LONGEST:
            reason = f"{reason[: LONGEST - 1]}…"
        self.problem = Problem(field, f"line {line}: {reason}" if line else reason)
        super().__init__(str(self.problem))

    @property
    def field(self) -> str:
        """Path of the field."""
        return self.problem.field

    @property
    def reason(self) -> str:
        """What is wrong with it."""
        return self.problem.reason
