"""
What an answer of slurmrestd means: a body that is read in slices, or one of our errors.

An answer may be a list of thousands of objects, an error with a proper status, an error with status 200, a sentence in
plain text, or nothing of the kind. Reading happens object by object with pauses for the event loop, because parsing
12 MB of JSON in one call stops everything else for a quarter of a second, in a thread as well. Sending and repeating
requests is left to :mod:`slurm_client.connection.session`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from slurm_client import errors
from slurm_client.connection import error_numbers
from slurm_client.connection.body.parsing import Cut, Malformed, Overweight, Parser
from slurm_client.connection.body.pieces import Pieces
from slurm_client.decode.names import Nameless
from slurm_client.decode.read import mapping, number, text
from slurm_client.models.entry import Entry, keep
from slurm_client.models.job_details import JobDetails
from slurm_client.slices import drop

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Mapping, Sequence

_LOOKAHEAD = 8
"""Entries of the last list among which the next one is looked for: some may have gone."""

_EXCERPT = 500
_ROOM = 256 * 2**20
_MOST_REPORTS = 16
_TOLD = 4
_RELEASE = re.compile(r"[0-9A-Za-z][-+.~0-9A-Za-z]{0,31}")
_CONTENT_TYPE = re.compile(r"[-+.a-z0-9]{1,30}/[-+.a-z0-9]{1,60}")
_CONNECTS_TO_SLURMDBD = "openapi_get_db_conn"
_OWN_SENTENCES = frozenset({"Authentication failure"})
"""What slurmrestd says without JSON."""


_STANDSTILL = (
    "If slurmctld answers nothing else either and this Slurm has no slurmdbd, somebody may have ended a job that is "
    "not theirs: slurmctld then stands still until it is restarted"
)


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
    recurring
        The same entries as they were written, for the next answer; ``None`` if the list does not recur.
    weight
        Bytes that all this takes, more or less.
    """

    status: int
    fields: dict[str, Any] = field(default_factory=dict)
    items: list[Any] | None = None
    warnings: tuple[errors.Report, ...] = ()
    recurring: Known | None = None
    weight: int = 0

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
        found = text(mapping(mapping(self.fields.get("meta")).get("slurm")).get("release"))
        return found if _RELEASE.fullmatch(found) else ""


@dataclass(frozen=True, slots=True)
class ListOf:
    """
    Which key of the body holds the objects asked for, and how one of them is decoded.

    Parameters
    ----------
    recurs
        Whether the same list is asked for again and again. Its last answer is then kept, so that an entry which is
        written as it was is not read again: that takes some hundredth of the time, and few change from poll to poll.
    parts
        Where an entry is decoded to a list: the objects in it that its items are read from, one each.
    identity
        Names a decoded object of a list that recurs: one that has changed tells where the last answer goes on, however
        many entries have gone before it.
    in_slices
        Decodes an entry as ``decode`` does, and yields where others may have their turn: for entries that may be long
        lists themselves.
    """

    key: str
    decode: Callable[[Mapping[str, Any]], Any]
    recurs: bool = False
    parts: Callable[[Mapping[str, Any]], Sequence[Any]] | None = None
    identity: Callable[[Any], Hashable] | None = None
    in_slices: Callable[[Mapping[str, Any]], Generator[None, None, Any]] | None = None

    async def decoded(self, raw: Mapping[str, Any], parser: Parser) -> Any:
        """Decode an entry, in slices where it may be long."""
        if self.in_slices is None:
            return self.decode(raw)
        work = self.in_slices(raw)
        while True:
            try:
                next(work)
            except StopIteration as end:
                return end.value
            await parser.slices.breathe()

    def kept(self, item: Any, raw: Mapping[str, Any], written: str | None) -> Any:
        """
        Return what an entry was decoded to, with its text.

        Parameters
        ----------
        written
            The text of the entry, to be kept with what is made of it; ``None`` keeps nothing.
        """
        if written is not None:
            if isinstance(item, Entry):
                keep(item, written)
            elif self.parts is not None:
                for part, entry in zip(item, self.parts(raw), strict=True):
                    keep(part, mapping(entry))
        return item


@dataclass(slots=True)
class Known:
    """
    The entries of an earlier answer's list: as they were written, what they were read as, and what both take.

    Parameters
    ----------
    places
        Where the entry of an object is, by its identity.
    """

    texts: list[str] = field(default_factory=list)
    items: list[Any] = field(default_factory=list)
    weights: list[int] = field(default_factory=list)
    places: dict[Hashable, int] = field(default_factory=dict)

    def find(self, parser: Parser, first: int, last: int) -> int | None:
        """Which of these entries comes next in the answer, character for character."""
        for place in range(first, min(last + 1, len(self.texts))):
            if parser.follows(self.texts[place]):
                return place
        return None

    def add(self, item: Any, written: str, weight: int, identity: Callable[[Any], Hashable] | None) -> None:
        """Add the next entry."""
        if identity is not None:
            self.places[identity(item)] = len(self.items)
        self.texts.append(written)
        self.items.append(item)
        self.weights.append(weight)

    async def clear(self) -> None:
        """Give back all entries, in slices; those who still read them find fewer."""
        await drop(self.texts, self.items, self.weights)

    def place_of(self, item: Any, identity: Callable[[Any], Hashable] | None) -> int | None:
        """Where the entry of an object was; ``None`` if there was none of that name."""
        return self.places.get(identity(item)) if identity is not None else None


async def read(
    body: Pieces | bytes | str,
    status: int,
    request: errors.Request,
    wanted: ListOf | None = None,
    known: Known | None = None,
    *,
    room: int = _ROOM,
    keep_raw: bool = False,
) -> Answer:
    """
    Read a body, giving way to the event loop every few milliseconds.

    Entries that an earlier answer contains too are taken from there.

    Parameters
    ----------
    body
        What was received; pieces are taken as they are read.
    room
        Bytes that what is read may take.
    keep_raw
        Whether each model keeps the text that it was read from.

    Raises
    ------
    DecodeError
        If it is no JSON object, or an entry of the wanted list is no object with a name.
    TooLarge
        If what is in it takes more than ``room``.
    """
    answer = Answer(status)
    text = (
        body
        if isinstance(body, Pieces)
        else Pieces([body if isinstance(body, str) else body.decode("utf-8", "replace")])
    )
    parser = Parser(text, room)
    try:
        await _read_object(parser, answer, wanted, known or Known(), keep_raw=keep_raw)
    except (ValueError, RecursionError) as error:
        kind = errors.Truncated if isinstance(error, Cut) and text.beginning.strip() else errors.DecodeError
        raise kind(
            f"cannot read the answer: {_why(error)}", request=request, status=status, body=text.beginning
        ) from error
    except Overweight as error:
        raise errors.TooLarge(f"the answer is too large: {error}", request=request, status=status) from error
    answer.warnings = _reports(answer.fields.get("warnings"), numbered=False)
    answer.weight = parser.weight
    return answer


async def _read_object(parser: Parser, answer: Answer, wanted: ListOf | None, known: Known, *, keep_raw: bool) -> None:
    """Walk over the outermost object; everything below is left to the parser."""
    parser.skip()
    if parser.here() != "{":
        raise Malformed("it is no JSON object")
    parser.open()
    while parser.here() != "}":
        key = parser.key()
        if wanted is None or key != wanted.key:
            parser.take(len(key))
            answer.fields[key] = await parser.value(weigh=True)
        elif parser.here() == "[":
            answer.items = await _read_list(parser, wanted, known, answer, keep_raw=keep_raw)
        else:
            parser.note()
            value = await parser.value()
            written = parser.noted()
            answer.items = _as_items(value, wanted, written if keep_raw else None)
        parser.next("}")
        await parser.slices.breathe()


def _as_items(value: Any, wanted: ListOf, written: str | None) -> list[Any]:
    """Take what stands where a list belongs: null is an empty list, a single object is a list of one."""
    if value is None:
        return []
    if isinstance(value, dict):
        return [wanted.kept(wanted.decode(value), value, written)]
    raise Malformed(f"{wanted.key} is not a list")


async def _read_list(parser: Parser, wanted: ListOf, known: Known, answer: Answer, *, keep_raw: bool) -> list[Any]:
    """Read and decode one object after the other; of their texts only those are kept that recur or are asked for."""
    found: list[Any] = []
    # A key may be there twice; the last one counts.
    answer.recurring = Known(items=found) if wanted.recurs else None
    keeps_text = wanted.recurs or keep_raw
    parser.open()
    expected = missed = 0
    while parser.here() != "]":
        place = known.find(parser, expected, expected + missed + _LOOKAHEAD)
        before = parser.weight
        if place is not None:
            # The object is complete, and nothing that follows can be a part of it.
            item, written, weight = known.items[place], known.texts[place], known.weights[place]
            parser.go(len(written))
            expected, missed = place + 1, 0
        else:
            begun = parser.position
            if keeps_text:
                parser.note()
            raw = await parser.value()
            if not isinstance(raw, dict):
                raise Malformed(f"entry {len(found)} of the list is no object")
            written = parser.noted() if keeps_text else ""
            weight = parser.position - begun
            item = wanted.kept(await wanted.decoded(raw, parser), raw, written if keep_raw else None)
            weight += _weight(item)
            place = known.place_of(item, wanted.identity)
            if place is not None:
                expected, missed = place + 1, 0
            elif missed < _LOOKAHEAD:
                missed += 1
            else:
                expected += 1
        if answer.recurring is not None:
            answer.recurring.add(item, written, weight, wanted.identity)
        else:
            found.append(item)
        # What was read of it is dropped; what it was read as stays.
        parser.weight = before
        parser.take(weight)
        parser.next("]")
        await parser.slices.breathe()
    parser.close()
    return found


_AN_OBJECT = 512
_AN_ITEM = 64
_MANY_ITEMS = 256


def _weight(item: Any) -> int:
    """
    Return about how many bytes a decoded object takes beside its texts, which are no longer than what was read.

    Those in long lists may be: ``w-[0-9999]`` is short, and 10,000 names.
    """
    weight = _AN_OBJECT
    for name in getattr(type(item), "__slots__", ()):
        value = getattr(item, name)
        if isinstance(value, tuple):
            weight += _AN_ITEM * len(value)
            if len(value) > _MANY_ITEMS:
                weight += sum(len(one) for one in value if isinstance(one, str))
        elif isinstance(value, JobDetails):
            weight += _weight(value)
    return weight


def _why(error: BaseException) -> str:
    """Say what is wrong with an answer without quoting it: it may be anybody's."""
    if isinstance(error, Nameless):
        return "an entry has no name"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, Malformed):
        return str(error)
    return "a number has too many digits, or another value is none"


def _reports(value: Any, *, numbered: bool = True) -> tuple[errors.Report, ...]:
    """Return what Slurm says in ``errors``, all of which it numbers, or in ``warnings``, which it does not."""
    found = []
    for entry in value[:_MOST_REPORTS] if isinstance(value, list) else []:
        # Errors go into the status of objects; what Slurm has not numbered is not Slurm's.
        raw = entry if isinstance(entry, dict) and ("error_number" in entry or not numbered) else {}
        error_number = number(raw.get("error_number"))
        found.append(
            errors.Report(
                description=errors.said(text(raw.get("description"))),
                number=error_number,
                name=error_numbers.name_of(error_number),
                error=errors.said(text(raw.get("error"))),
                source=errors.said(text(raw.get("source"))),
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
    Return the error that the status alone implies.

    A bare 404 is not NotFound: any proxy returns it for a missing server, and a caller that asks for a node must not
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
    kind = next((found for report in reports if (found := error_numbers.class_of(report.number, report.source))), None)
    if kind is None and any(report.source.startswith("#/") for report in reports):
        kind = errors.InvalidRequest  # the source is a field of the request
    if kind is None and answer.status in {401, 511}:
        kind = errors.Unauthorized
    if kind is None:
        kind = _kind_of_status(answer.status)
        if answer.status == 404 and reports:
            kind = errors.NotFound
    message = "; ".join(str(report) for report in reports[:_TOLD]) or f"the server answered {answer.status}"
    if len(reports) > _TOLD:
        message += f"; and {len(reports) - _TOLD} more"
    if any(error_numbers.is_silence(report.number, report.source) for report in reports):
        message = f"slurmctld did not answer in time; slurmrestd calls that {message!r}. {_STANDSTILL}"
    if kind is errors.NotSupported:
        return errors.NotSupported(message, request=request, status=answer.status)
    error = kind(message, request=request, status=answer.status, reports=reports, warnings=answer.warnings)
    if isinstance(error, errors.DatabaseDown):
        # It connects before it asks for anything.
        error.sent = error.source != _CONNECTS_TO_SLURMDBD
    return error


def error_from_text(body: str, status: int, content_type: str, request: errors.Request) -> errors.SlurmError:
    """
    Return the error a body is that is no JSON, such as slurmrestd's own 401 and the pages of proxies.

    Answers of other servers are not quoted: a user who may name a server could read through this process what it says.
    """
    words = body[:_EXCERPT].strip()
    if words in _OWN_SENTENCES:
        return _kind_of_status(status)(words, request=request, status=status, body=words)
    message = _foreign(body, status, content_type)
    if 300 <= status < 400:
        message += "; redirects are not followed"
    return _kind_of_status(status)(message, request=request, status=status)


def foreign_page(body: str, status: int, content_type: str, request: errors.Request) -> errors.DecodeError | None:
    """
    Return the error that a page with a good status is, such as a proxy's for a login; ``None`` for what may be JSON.

    Like other answers of other servers it is not quoted.
    """
    if "json" in content_type.lower() or body.lstrip()[:1] in {"{", ""}:
        return None
    return errors.DecodeError(_foreign(body, status, content_type), request=request, status=status)


def _foreign(body: str, status: int, content_type: str) -> str:
    kind = content_type.partition(";")[0].strip().lower()
    shown = kind if _CONTENT_TYPE.fullmatch(kind) else "a body of no known type" if body else "nothing"
    return f"the server answered {status} with {shown}, which is not how slurmrestd answers"


def is_unknown_url(body: str, status: int) -> bool:
    """Whether the server says that it has no such path, as opposed to no such object."""
    return status == 404 and "requested URL" in body[:_EXCERPT]
