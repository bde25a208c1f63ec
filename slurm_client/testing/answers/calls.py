"""What goes through the fake: a request as it came, the call it asks for, and what is to be answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from slurm_client.connection import error_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request as it came in: what was asked, with what, and when (monotonic seconds)."""

    method: str
    path: str
    operation: str
    query: Mapping[str, str]
    body: Any
    headers: Mapping[str, str]
    at: float


@dataclass(slots=True)
class Call:
    """A request being processed by the server."""

    version: str
    operation: str
    parameters: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    user: str


@dataclass(slots=True)
class Reply:
    """What is to be answered."""

    payload: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    errors: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[dict[str, Any]] = field(default_factory=list)
    raw: bytes | None = None


def error(number: int, description: str, sentence: str = "", source: str = "") -> dict[str, Any]:
    """Return an entry of the list of errors in an answer."""
    sentence = sentence or error_numbers.name_of(number).lower().replace("_", " ") or "error"
    return {"description": description, "error_number": number, "error": sentence, "source": source}
