"""
What an answer of slurmrestd means: a body that is read in slices, or one of our errors.

An answer may be a list of thousands of objects, an error with a proper status, an error with status 200, a sentence in
plain text, or nothing of the kind. Reading happens object by object with pauses for the event loop, because parsing
12 MB of JSON in one call stops everything else for a quarter of a second, in a thread as well. Sending and repeating
requests is left to :mod:`slurm_client.session`.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any

from slurm_client import error_numbers, errors
from slurm_client.decode.objects import Nameless
from slurm_client.decode.read import mapping, number, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_LOOKAHEAD = 8
"""Entries of the last list among which the next one is looked for: some may have gone."""

SLICE_SECONDS = 0.003
"""Longest time spent on reading an answer before the event loop has its turn."""

_EXCERPT = 500
_LARGE = 1_000_000
_BLANKS = " \t\r\n"
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


@dataclass(slots=True)
class Answer:
    """
    An answer that was understood.

    Parameters
    ----------
    status
        HTTP status.
    fields
        All keys of the body but the list that was asked for.
    items
        Decoded entries of that list; ``None`` when the body has no such key.
    warnings
        Reports of the server that are no errors.
    texts
        The entries of that list as they were written.
    """

    status: int
    fields: dict[str, Any] = field(default_factory=dict)
    items: list[Any] | None = None
    warnings: tuple[errors.Report, ...] = ()
    texts: list[str] = field(default_factory=list)

    @property
    def not_modified(self) -> bool:
        """Whether the server says that nothing changed since the time it was given."""
        return self.status == 304

    @property
    def last_update(self) -> int | None:
        """Time to give as ``update_time`` next, in seconds since 1970."""
        return number(self.fields.get("last_update"))

    @property
    def release(self) -> str:
        """Release of the Slurm that answered, e.g. ``24.11.5``; empty if it does not say."""
        return text(mapping(mapping(self.fields.get("meta")).get("slurm")).get("release"))


@dataclass(frozen=True, slots=True)
class ListOf:
    """
    Which key of the body holds the objects asked for, and how one of them is decoded.

    Parameters
    ----------
    recurs
        Whether the same list is asked for again and again. Its last answer is then kept, so that an entry which is
        written as it was is not read again: that takes some hundredth of the time, and few change from poll to poll.
    """

    key: str
    decode: Callable[[Mapping[str, Any]], Any]
    recurs: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """The entries of an earlier answer's list: as they were written, and what they were read as."""

    texts: Sequence[str] = ()
    items: Sequence[Any] = ()

    def find(self, source: str, position: int, first: int, last: int) -> int | None:
        """Which of these entries stands there, word for word."""
        for place in range(first, min(last + 1, len(self.texts))):
            if source.startswith(self.texts[place], position):
                return place
        return None


async def read(
    body: bytes, status: int, request: errors.Request, wanted: ListOf | None = None, known: Known | None = None
) -> Answer:
    """
    Read a body, giving way to the event loop every few milliseconds.

    Entries that stand in an earlier answer too are taken from there.

    Raises
    ------
    DecodeError
        If it is no JSON object, or an entry of the wanted list is no object with a name.
    """
    answer = Answer(status)
    source = body.decode("utf-8", "replace")
    if len(source) > _LARGE:
        # Receiving the last piece and decoding the whole were a slice each.
        await asyncio.sleep(0)
    try:
        await _read_object(source, answer, wanted, known or Known())
    except (ValueError, RecursionError, IndexError) as error:
        kind = errors.Truncated if _looks_truncated(source, error) else errors.DecodeError
        raise kind(
            f"cannot read the answer: {_why(error)}", request=request, status=status, body=source[:_EXCERPT]
        ) from error
    answer.warnings = _reports(answer.fields.get("warnings"))
    return answer


async def _read_object(source: str, answer: Answer, wanted: ListOf | None, known: Known) -> None:
    """Walk over the outermost object; everything below is left to the parser written in C."""
    position = _skip(source, 0)
    if source[position] != "{":
        raise ValueError("it is no JSON object")
    position = _skip(source, position + 1)
    while source[position] != "}":
        if source[position] != '"':
            raise ValueError(f"a key is missing at character {position}")
        key, position = scanstring(source, position + 1, True)  # noqa: FBT003 - signature of the C function
        position = _skip(source, position)
        if source[position] != ":":
            raise ValueError(f"a colon is missing at character {position}")
        position = _skip(source, position + 1)
        if wanted is not None and key == wanted.key:
            if source[position] == "[":
                position, answer.items = await _read_list(source, position, wanted, known, answer.texts)
            else:
                value, position = _value(source, position)
                answer.items = _as_items(value, wanted)
        else:
            answer.fields[key], position = _value(source, position)
        position = _skip(source, position)
        if source[position] == ",":
            position = _skip(source, position + 1)
        elif source[position] != "}":
            raise ValueError(f"a comma is missing at character {position}")


def _as_items(value: Any, wanted: ListOf) -> list[Any]:
    """Take what stands where a list belongs: null is an empty list, a single object is a list of one."""
    if value is None:
        return []
    if isinstance(value, dict):
        return [wanted.decode(value)]
    raise ValueError(f"{wanted.key} is no list")


async def _read_list(
    source: str, position: int, wanted: ListOf, known: Known, texts: list[str]
) -> tuple[int, list[Any]]:
    """Read and decode one object after the other; only the decoded ones are kept, and their texts if they recur."""
    found: list[Any] = []
    started = time.perf_counter()
    position = _skip(source, position + 1)
    expected = missed = 0
    while source[position] != "]":
        place = known.find(source, position, expected, expected + missed + _LOOKAHEAD)
        if place is not None:
            # A whole object stands there, and nothing that follows it can be a part of it.
            found.append(known.items[place])
            texts.append(known.texts[place])
            position += len(known.texts[place])
            expected, missed = place + 1, 0
        else:
            begun = position
            raw, position = _value(source, position)
            if not isinstance(raw, dict):
                raise ValueError(f"entry {len(found)} of the list is no object")
            found.append(wanted.decode(raw))
            if wanted.recurs:
                texts.append(source[begun:position])
            if missed < _LOOKAHEAD:
                missed += 1
            else:
                expected += 1
        position = _skip(source, position)
        if source[position] == ",":
            position = _skip(source, position + 1)
        elif source[position] != "]":
            raise ValueError(f"a comma is missing at character {position}")
        if time.perf_counter() - started > SLICE_SECONDS:
            await asyncio.sleep(0)
            started = time.perf_counter()
    return position + 1, found


class _NoValue(ValueError):
    """A value is missing, and where. The parser says so by StopIteration, which cannot leave a coroutine."""

    def __init__(self, position: int) -> None:
        super().__init__(f"no value at character {position}")
        self.pos = position


def _value(source: str, position: int) -> tuple[Any, int]:
    """Parse one value and return it with the position behind it."""
    try:
        found: tuple[Any, int] = _scan(source, position)
    except StopIteration as error:
        raise _NoValue(error.value) from None
    return found


def _skip(source: str, position: int) -> int:
    """Return the position of the next character that is not blank; IndexError at the end is what a cut body gives."""
    while source[position] in _BLANKS:
        position += 1
    return position


def _looks_truncated(source: str, error: BaseException) -> bool:
    if isinstance(error, IndexError):
        return bool(source.strip())
    position = getattr(error, "pos", None)
    if isinstance(error, json.JSONDecodeError) and error.msg.startswith("Unterminated string"):
        return True
    return isinstance(position, int) and position >= len(source.rstrip())


def _why(error: BaseException) -> str:
    if isinstance(error, Nameless):
        return "an entry has no name"
    if isinstance(error, IndexError):
        return "it ends too early"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error)


def _reports(value: Any) -> tuple[errors.Report, ...]:
    found = []
    for entry in value if isinstance(value, list) else []:
        raw = entry if isinstance(entry, dict) else {"description": text(entry)}
        error_number = number(raw.get("error_number"))
        found.append(
            errors.Report(
                description=text(raw.get("description")),
                number=error_number,
                name=error_numbers.name_of(error_number),
                error=text(raw.get("error")),
                source=text(raw.get("source")),
            )
        )
    return tuple(found)


_BY_STATUS: dict[int, type[errors.SlurmError]] = {
    401: errors.Unauthorized,
    511: errors.Unauthorized,
    403: errors.PermissionDenied,
    409: errors.Conflict,
    502: errors.ControllerDown,
    503: errors.ControllerDown,
    504: errors.ControllerDown,
}


def _kind_of_status(status: int) -> type[errors.SlurmError]:
    """
    Return what a status says by itself.

    A bare 404 is not NotFound: any proxy gives it for a server that is not there, and whoever asks for a node must not
    take that for the absence of the node.
    """
    if status == 404:
        return errors.ServerError
    kind = errors.InvalidRequest if 400 <= status < 500 else errors.ServerError
    return _BY_STATUS.get(status, kind)


def error_in(answer: Answer, request: errors.Request) -> errors.SlurmError | None:
    """
    Return the error an answer is, whatever its status; ``None`` for a good one.

    The error number decides where it says something, because servers of different releases give different statuses for
    it; then the status.
    """
    reports = _reports(answer.fields.get("errors"))
    good = 200 <= answer.status < 300 or answer.not_modified
    if good and not reports:
        return None
    kind = next((found for report in reports if (found := error_numbers.class_of(report.number))), None)
    if kind is None and any(report.source.startswith("#/") for report in reports):
        kind = errors.InvalidRequest  # the source is a field of the request
    if kind is None and answer.status in {401, 511}:
        kind = errors.Unauthorized
    if kind is None:
        kind = _kind_of_status(answer.status)
        if answer.status == 404 and reports:
            kind = errors.NotFound
    message = "; ".join(str(report) for report in reports) or f"the server answered {answer.status}"
    if kind is errors.NotSupported:
        return errors.NotSupported(message, request=request, status=answer.status)
    return kind(message, request=request, status=answer.status, reports=reports, warnings=answer.warnings)


def error_from_text(body: bytes, status: int, request: errors.Request) -> errors.SlurmError:
    """Return the error a body in plain text is, such as slurmrestd's own 401 and 404 and those of proxies."""
    words = body.decode("utf-8", "replace").strip()
    kind = _kind_of_status(status)
    first_line = words.splitlines()[0][:200] if words else f"the server answered {status}"
    return kind(first_line, request=request, status=status, body=words[:_EXCERPT])


def is_unknown_url(body: bytes, status: int) -> bool:
    """Whether the server says that it has no such path, as opposed to no such object."""
    return status == 404 and b"requested URL" in body
