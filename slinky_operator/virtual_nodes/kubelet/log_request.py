"""What a caller asks of a container's output, as the API server passes it on, and what of that can be true. Pure.

Files of Slurm's jobs have no time of each line. So `timestamps` is refused, and a time from which on lines are wanted
is only served where it leaves out nothing, or everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final

from slinky_operator.reconcile.text import moment
from slinky_operator.virtual_nodes.kubelet.refusal import NotServed

_KNOWN: Final = frozenset(
    {"follow", "previous", "timestamps", "sinceSeconds", "sinceTime", "tailLines", "limitBytes", "stream"}
)
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"", "0", "f", "F", "false", "FALSE", "False"})

MOST: Final = 2**63 - 1
LONGEST: Final = 64
"""Characters of a value that is repeated."""

DECADES: Final = 10**9
"""Most seconds of a time that is long ago: some 30 years."""


@dataclass(frozen=True, slots=True)
class LogRequest:
    """What is wanted of the output.

    Parameters
    ----------
    follow
        Whether to go on until the job has ended.
    tail_lines
        How many of the last lines; None for all.
    limit_bytes
        Most bytes; None for all.
    since
        From when on; None from the beginning.
    """

    follow: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since: datetime | None = None


def parse(query: Mapping[str, str], container: str, pod: str, now: datetime) -> LogRequest:
    """Read the query of a request.

    Parameters
    ----------
    query
        Its parameters.
    container, pod
        For messages.
    now
        The time.

    Raises
    ------
    NotServed
        It asks for what Slurm's output does not have.
    """
    unknown = sorted(query.keys() - _KNOWN)
    if unknown:
        raise _bad(f"{unknown[0][:LONGEST]} is no parameter that is understood here")
    if _flag(query, "previous"):
        raise _bad(
            f'previous terminated container "{container}" in pod "{pod}" not found: Slurm keeps no earlier output'
        )
    if _flag(query, "timestamps"):
        raise _bad("--timestamps cannot be served: the output of a Slurm job has no time of each line")
    if query.get("stream", "All") != "All":
        raise _bad("Slurm writes standard output and standard error of this job to one file: ask for both")
    limit = _number(query, "limitBytes", 1)
    return LogRequest(
        follow=_flag(query, "follow"),
        tail_lines=_number(query, "tailLines", 0),
        limit_bytes=limit,
        since=_since(query, now),
    )


def leaves_out_all(since: datetime | None, started: datetime | None, ended: datetime | None) -> bool:
    """Whether a time from which on lines are wanted leaves out everything; false if it leaves out nothing.

    Raises
    ------
    NotServed
        It would leave out some lines: which ones is not known.
    """
    if since is None or (started is not None and since <= started):
        return False
    if ended is not None and since > ended:
        return True
    begin = f" ({started.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ})" if started is not None else ""
    raise _bad(
        "--since and --since-time cannot be served: the output of a Slurm job has no time of each line; a time before "
        f"the start of the job{begin} shows all of it, --tail its last lines"
    )


def _since(query: Mapping[str, str], now: datetime) -> datetime | None:
    seconds = _number(query, "sinceSeconds", 1)
    text = query.get("sinceTime")
    if seconds is not None and text:
        raise _bad("sinceSeconds and sinceTime exclude each other")
    if seconds is not None:
        return now - timedelta(seconds=min(seconds, DECADES))
    if not text:
        return None
    found = moment(text)
    if found is None or found.tzinfo is None:
        raise _bad(f"sinceTime is no time: {text[:LONGEST]}")
    return found


def _flag(query: Mapping[str, str], name: str) -> bool:
    text = query.get(name, "")
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _bad(f"{name} is neither true nor false: {text[:LONGEST]}")


def _number(query: Mapping[str, str], name: str, least: int) -> int | None:
    text = query.get(name)
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > len(str(MOST)) or not least <= int(text) <= MOST:
        raise _bad(f"{name} is no number from {least} on: {text[:LONGEST]}")
    return int(text)


def _bad(why: str) -> NotServed:
    return NotServed(HTTPStatus.BAD_REQUEST, why)
