"""
What happens on the wire, for metrics and tracing: one call before each request, and one after it.

A call of the client may be several requests: it is repeated, its token renewed, its data parser negotiated. A hook sees
each of them, and neither tokens nor bodies. It runs on the event loop, between a request and its answer: it must not
block. What it raises is logged and goes no further.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slurm_client import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Attempt", "Exchange", "Hook", "Outcome", "observed"]

_log = logging.getLogger("slurm_client")


@dataclass(frozen=True, slots=True)
class Attempt:
    """
    One request that is about to be sent.

    Parameters
    ----------
    server
        URL of the server, or ``unix:`` and the path of its socket.
    method
        ``GET``, ``POST`` or ``DELETE``.
    operation
        Name in Slurm's specification without prefix and version, e.g. ``get_node``; empty for a path of
        :meth:`~slurm_client.client.SlurmClient.request` that this library does not know.
    template
        Path with its parameters unfilled, e.g. ``/slurm/v0.0.45/node/{node_name}``, so that there are few of them;
        empty where ``operation`` is.
    path
        Path as it is sent, without the query.
    writes
        Whether it changes anything, or may.
    number
        1 for the first request of a call, 2 for its first repetition.
    """

    server: str
    method: str
    operation: str
    template: str
    path: str
    writes: bool
    number: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    How a request ended.

    Parameters
    ----------
    result
        ``ok``, or the name of the class of what ended it: ``Timeout``, ``NotFound``, ``CancelledError`` …
    status
        HTTP status; ``None`` without an answer.
    seconds
        From the turn of the request until its answer was read, waiting for a free connection included.
    bytes_received
        Bytes of the body received.
    error
        The error that the request ended with, without traceback and cause; ``None`` if it went well, or was cancelled
        by the caller.
    """

    result: str
    status: int | None
    seconds: float
    bytes_received: int
    error: errors.SlurmError | None = None


class Hook:
    """
    Base of hooks; both methods do nothing.

    ::

        class Counting(Hook):
            def after(self, attempt, outcome, begun):
                REQUESTS.labels(attempt.operation, outcome.result).observe(outcome.seconds)
    """

    def before(self, attempt: Attempt) -> Any:  # noqa: ARG002 - for those who override it
        """Take note of a request that is about to be sent; what is returned is handed to :meth:`after`."""
        return None

    def after(self, attempt: Attempt, outcome: Outcome, begun: Any) -> None:
        """Take note of how a request ended; ``begun`` is what :meth:`before` returned."""


class Exchange:
    """What is known of a request under way."""

    __slots__ = ("received", "status")

    def __init__(self) -> None:
        self.status: int | None = None
        self.received = 0

    def count(self, received: int) -> None:
        """Take note of bytes that have come in."""
        self.received += received


@contextmanager
def observed(hook: Hook | None, attempt: Attempt, late: Callable[[], errors.SlurmError | None]) -> Iterator[Exchange]:
    """
    Tell a hook of the request that the block sends.

    Parameters
    ----------
    late
        Gives the error of a request whose task was cancelled because its time is over; ``None`` where the caller did.
    """
    exchange = Exchange()
    if hook is None:
        yield exchange
        return
    begun = _told(lambda: hook.before(attempt))
    started = time.perf_counter()
    result, error = "ok", None
    try:
        yield exchange
    except errors.SlurmError as raised:
        error = _detached(raised)
        result = type(error).__name__
        raise
    except BaseException as raised:
        error = late() if isinstance(raised, asyncio.CancelledError) else None
        result = type(error if error is not None else raised).__name__
        raise
    finally:
        outcome = Outcome(result, exchange.status, time.perf_counter() - started, exchange.received, error)
        _told(lambda: hook.after(attempt, outcome, begun))


def _told(tell: Callable[[], Any]) -> Any:
    """Call a hook; what it raises is its own affair, also if it raises what would end a task."""
    try:
        return tell()
    except (Exception, asyncio.CancelledError):  # noqa: BLE001 - a call must not fail for it
        _log.exception("a hook failed; the call goes on")
        return None


def _detached(error: errors.SlurmError) -> errors.SlurmError:
    """Return an error without cause and traceback, through which the token could be reached."""
    kind = next(each for each in type(error).__mro__ if each.__module__ == errors.__name__)
    copy: errors.SlurmError = kind.__new__(kind, *error.args)
    copy.__dict__.update(error.__dict__)
    return copy
