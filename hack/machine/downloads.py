"""Try again what failed because something could not be downloaded.

A mirror that is busy, an index that moved on while packages of it were fetched, a connection that was cut: a moment
later it mostly works, and apt, debootstrap, buildah and Go keep what they have. What fails for another reason fails at
once. Which it was is read from what the program printed; exit statuses do not say.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

PAUSES: Final = (5.0, 15.0, 40.0, 60.0)
"""Seconds before the second try, the third and so on."""

_WORDS: Final = (
    # names and connections
    "temporary failure resolving",
    "could not resolve",
    "no such host",
    "server misbehaving",
    "connection timed out",
    "connection refused",
    "connection reset",
    "connection broken",
    "connection aborted",
    "remote end closed connection",
    "network is unreachable",
    "no route to host",
    "read timed out",
    "max retries exceeded",
    "i/o timeout",
    "tls handshake timeout",
    "unexpected eof",
    "stream error",
    # what servers say
    "internal server error",
    "bad gateway",
    "service unavailable",
    "gateway time",
    "too many requests",
    # apt and debootstrap; a list that could not be fetched is a warning only, and then the package is not known
    "failed getting release file",
    "unable to fetch some archives",
    "couldn't download",
    "failed to fetch",
    "hash sum mismatch",
    "file has unexpected size",
    "unable to locate package",
    "has no installation candidate",
    "invalid release file",
    "couldn't find these debs",
    # apt waits for dpkg's lock, and not for that of the package lists, which a machine's daily update may hold
    "could not get lock",
    # pip
    "no matching distribution found",
)


def complaint(output: str) -> str | None:
    """Return the first line that lays a failure to a download, or None."""
    for line in output.splitlines():
        if any(words in line.lower() for words in _WORDS):
            return line.strip()
    return None


def persist(
    title: str,
    attempt: Callable[[], tuple[int, str]],
    progress: Callable[[str], None],
    *,
    pauses: Sequence[float] = PAUSES,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[int, str]:
    """Make an attempt, and further ones after those that failed for want of a download.

    Parameters
    ----------
    title
        What is attempted, for the lines.
    attempt
        Gives the exit status and what was printed.
    progress
        Takes a line before each further attempt.
    pauses
        Seconds before each of them.

    Returns
    -------
    tuple of int and str
        What the last attempt gave.
    """
    for pause in pauses:
        status, output = attempt()
        why = complaint(output) if status else None
        if why is None:
            return status, output
        progress(f"  ...  {title}: {why}; trying again in {pause:.0f} s")
        sleep(pause)
    return attempt()
