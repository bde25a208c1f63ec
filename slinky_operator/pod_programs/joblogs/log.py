"""The log of the server: lines on standard error, at most so many a minute.

How often there is something to say is up to callers, and the log of a container is on the disk of its Node. What is
counted is shared with processes that are forked later, since each file is opened by one of its own.
"""

from __future__ import annotations

import mmap
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Final

PER_MINUTE: Final = 30
"""Lines that are printed; the others are counted."""

LONGEST: Final = 1024
"""Characters of a line."""

MINUTE: Final = 60.0

_STATE: Final = struct.Struct("dQQ")
"""When the minute began, lines printed in it, and lines left out."""


class Log:
    """Prints lines of one kind.

    Parameters
    ----------
    per_minute
        Lines that are printed.
    clock
        Seconds, the same in all processes.
    """

    def __init__(self, per_minute: int = PER_MINUTE, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._shared = mmap.mmap(-1, _STATE.size)
        _STATE.pack_into(self._shared, 0, clock(), 0, 0)
        self._lock = threading.Lock()

    def __call__(self, line: str) -> None:
        """Print a line, unless this minute has had enough of them."""
        self._print([line])

    def fault(self, what: str) -> None:
        """Say that something failed that should not, with the traceback of the exception that is handled."""
        self._print([what, *traceback.format_exc().splitlines()])

    def _print(self, lines: list[str]) -> None:
        # Processes do not wait for each other: of two at the same moment one may not be counted.
        with self._lock:
            begun, printed, left_out = _STATE.unpack_from(self._shared)
            now = self._clock()
            if now - begun >= MINUTE:
                if left_out:
                    _write(f"{left_out} more lines like these were left out")
                begun, printed, left_out = now, 0, 0
            if printed < self._per_minute:
                printed += 1
                for line in lines:
                    _write(line)
            else:
                left_out += 1
            _STATE.pack_into(self._shared, 0, begun, printed, left_out)


def _write(line: str) -> None:
    text = "".join(letter if letter.isprintable() else "?" for letter in line[:LONGEST])
    print(f"job-log-server: {text}", file=sys.stderr, flush=True)  # noqa: T201 - its log
