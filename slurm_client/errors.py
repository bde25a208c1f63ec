"""
Everything that can go wrong with a call to slurmrestd, as one tree.

::

    SlurmError
    ├── Unreachable            nobody can be asked: slurmrestd or slurmctld is away
    │   ├── Timeout            no answer within the time the caller gave
    │   ├── ControllerDown     slurmrestd answers, slurmctld does not
    │   ├── DatabaseDown       ... or slurmdbd does not, or its database
    │   ├── CircuitOpen        not even tried: the last calls failed, and the pause is not over
    │   └── ClientClosed       the client was closed before there was an answer
    ├── Unauthorized           no token, a bad one, or one that has expired
    ├── PermissionDenied       the token's user may not do this
    ├── NotFound               no such node, job, partition, reservation
    │   └── EndUnknown         ... any more: a job whose end cannot be told
    ├── NotFinished            a job has not ended within the time that was given to wait for it
    ├── InvalidRequest         Slurm does not accept what was asked
    │   ├── InvalidArgument    ... nor was it: a value is not what the call takes, and nothing was sent
    │   │   └── InvalidDirective   ... because of an #SBATCH line of a script
    │   └── InvalidTransition  ... because of the state the object is in
    ├── Conflict               refused for now: the object is busy
    ├── NotSupported           this server's data parser has no such operation or field
    ├── ServerError            anything else the server holds against itself
    └── DecodeError            an answer that cannot be understood
        ├── Truncated          ... because it ended too early
        └── TooLarge           ... because there is more of it than there is room for

No call of this library raises anything else, programming errors and ``asyncio.CancelledError`` of the caller's own
apart. How answers are mapped to these classes is the business of :mod:`slurm_client.connection.answers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "CircuitOpen",
    "ClientClosed",
    "Conflict",
    "ControllerDown",
    "DatabaseDown",
    "DecodeError",
    "EndUnknown",
    "InvalidArgument",
    "InvalidDirective",
    "InvalidRequest",
    "InvalidTransition",
    "NotFinished",
    "NotFound",
    "NotSupported",
    "PermissionDenied",
    "Report",
    "Request",
    "ServerError",
    "SlurmError",
    "Timeout",
    "TooLarge",
    "Truncated",
    "Unauthorized",
    "Unreachable",
    "said",
]

_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Request:
    """
    The call an error is about.

    Parameters
    ----------
    method, path
        ``path`` is below the URL of the server; the name of the call where it never had a URL.
    server
        URL of the server, or ``unix:`` and the path of its socket.
    """

    method: str
    path: str
    server: str = ""

    @override
    def __str__(self) -> str:
        if self.method and self.server.startswith("http"):
            return f"{self.method} {self.server}{self.path}"
        call = f"{self.method} {self.path}".strip()
        return f"{call} on {self.server}" if self.server else call


@dataclass(frozen=True, slots=True)
class Report:
    """
    One entry of the ``errors`` or ``warnings`` of an answer.

    Parameters
    ----------
    description
        What happened, in the server's words.
    number
        Slurm's error number; 0 or ``None`` when it gives none.
    name
        Symbol of that number in Slurm's headers, e.g. ``ESLURM_NODES_BUSY``; empty if unknown.
    error
        The standard sentence for the number.
    source
        Function of the server that reported it, or the field it is about.
    """

    description: str = ""
    number: int | None = None
    name: str = ""
    error: str = ""
    source: str = ""

    @override
    def __str__(self) -> str:
        words = [part for part in (self.description, self.error if self.number else "") if part]
        text = ": ".join(words) or self.error or "unknown error"
        if self.number:
            text += f" ({self.name} {self.number})" if self.name else f" ({self.number})"
        return text


def said(words: str) -> str:
    """Return what a server says in one line of bounded length: it goes into logs and into the status of objects."""
    line = " ".join(words[: 2 * _LONGEST].split())
    line = "".join(each if each.isprintable() else "?" for each in line)
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


class SlurmError(Exception):
    """
    A call to slurmrestd did not do what was asked.

    Parameters
    ----------
    message
        One sentence for a person.
    request
        The call.
    status
        HTTP status of the answer; ``None`` when there was none.
    reports
        The ``errors`` of the answer.
    warnings
        The ``warnings`` of the answer.
    body
        The beginning of an answer that was not understood.
    """

    def __init__(
        self,
        message: str,
        *,
        request: Request | None = None,
        status: int | None = None,
        reports: Sequence[Report] = (),
        warnings: Sequence[Report] = (),
        body: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.request = request
        self.status = status
        self.reports = tuple(reports)
        self.warnings = tuple(warnings)
        self.body = body

    @override
    def __str__(self) -> str:
        parts = [self.message]
        if self.request is not None:
            parts.append(f"[{self.request}{f' -> {self.status}' if self.status is not None else ''}]")
        return " ".join(parts)

    @property
    def report(self) -> Report:
        """The first report that carries a number, or the first one, or an empty one."""
        numbered = next((report for report in self.reports if report.number), None)
        return numbered or (self.reports[0] if self.reports else Report())

    @property
    def number(self) -> int | None:
        """Slurm's error number, if it gave one."""
        return self.report.number

    @property
    def name(self) -> str:
        """Symbol of :attr:`number`, e.g. ``ESLURM_NODES_BUSY``."""
        return self.report.name

    @property
    def description(self) -> str:
        """The server's own words."""
        return self.report.description

    @property
    def source(self) -> str:
        """Where in the server it came up, or which field of the request it is about."""
        return self.report.source


class Unreachable(SlurmError):
    """
    Nobody could be asked.

    ``sent`` says whether the request may still have been carried out.
    """

    sent: bool = True


class Timeout(Unreachable):
    """No answer within the time the caller gave; whether the request was carried out is unknown."""


class ControllerDown(Unreachable):
    """slurmrestd answers, and says that slurmctld does not."""


class DatabaseDown(Unreachable):
    """
    slurmrestd answers, and says that slurmdbd or its database does not; calls to slurmctld may go on.

    ``sent`` is false where slurmrestd could not connect at all: then nothing was done.
    """


class CircuitOpen(Unreachable):
    """Not tried: the last calls found nobody, and the pause after them is not over yet."""

    sent = False


class ClientClosed(Unreachable):
    """
    The client was closed before there was an answer.

    Waiting callers get this, never ``asyncio.CancelledError``, which means that the waiting task itself is to end.
    """


class Unauthorized(SlurmError):
    """The token is missing, bad or expired, and renewing it once did not help."""


class PermissionDenied(SlurmError):
    """The token is good, but its user may not do this."""


class NotFound(SlurmError):
    """No such object, whatever shape the server gave that answer."""


class EndUnknown(NotFound):
    """
    A job, or a part of it, is not there any more, and how it ended cannot be told.

    slurmctld forgets a job ``MinJobAge`` after its end, and slurmdbd, where there is one, did not know it. ``parts``
    are those without an end: ``7``, ``7_3``, ``7+1``.
    """

    def __init__(self, message: str, *, parts: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.parts = tuple(parts)


class NotFinished(SlurmError):
    """
    A job has not ended within the time that was given to wait for it; it goes on.

    ``parts`` are those that have not ended: ``7``, ``7_3``, ``7+1``.
    """

    def __init__(self, message: str, *, parts: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.parts = tuple(parts)


class InvalidRequest(SlurmError):
    """Slurm does not accept what was asked; asking again will not help."""


class InvalidArgument(InvalidRequest):
    """
    A value handed to a call is not what the call takes; nothing was sent.

    ``field`` names it, e.g. ``names`` or ``spec.time_limit``.
    """

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


class InvalidDirective(InvalidArgument):
    """
    A script, or one of its ``#SBATCH`` lines, is not what sbatch takes, or says what slurmrestd has no place for.

    ``option`` names what it is about, e.g. ``--mem``, empty for the script as a whole; ``line`` is its number, from 1
    on, or 0; ``reason`` is the message without both.
    """

    def __init__(self, reason: str, *, option: str = "", line: int = 0) -> None:
        place = " ".join([*([f"line {line}:"] if line else []), *([f"{option}:"] if option else [])])
        super().__init__(f"{place} {reason}".strip(), field="script")
        self.reason = reason
        self.option = option
        self.line = line


class InvalidTransition(InvalidRequest):
    """The object cannot go from its state into the wanted one, e.g. ``RESUME`` on an idle node."""


class Conflict(SlurmError):
    """Refused for now, because the object is busy or exists already."""


class NotSupported(SlurmError):
    """
    The data parser in use has no such operation or field.

    ``available_in`` names the parsers that have it.
    """

    def __init__(
        self,
        message: str,
        *,
        available_in: Sequence[str] = (),
        request: Request | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message, request=request, status=status)
        self.available_in = tuple(available_in)


class ServerError(SlurmError):
    """The server failed in a way that has no class of its own."""


class DecodeError(SlurmError):
    """The answer cannot be understood."""


class Truncated(DecodeError):
    """The answer ended before it was complete."""


class TooLarge(DecodeError):
    """There is more of the answer than there is room for."""
