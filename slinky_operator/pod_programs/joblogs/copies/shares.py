"""Which copies are under way on a server, and who may begin another one.

A user has few at a time. Where all places are taken, a user who has none gets that of a copy which has had its time:
the slower one of a user with several, else one that has been slow for long. Its pod tries again; nothing of a copy that
is not complete is to be seen.
"""

from __future__ import annotations

import mmap
import os
import select
import struct
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

MAX_COPIES: Final = 12
"""At a time."""

MAX_PER_USER: Final = 2
"""The same, of one user."""

SAFE_SECONDS: Final = 60.0
"""For which a copy of a user with several keeps its place in any case."""

LONG_SECONDS: Final = 300.0
"""For which any other copy does."""

FAST: Final = 1024 * 1024
"""Bytes a second with which it keeps its place for longer."""

_MOVED: Final = struct.Struct("Q")


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy that is under way.

    Parameters
    ----------
    process
        Descriptor of its process.
    uid
        Of its user.
    slot
        What its process shares with this one.
    begun
        When, in monotonic seconds.
    """

    process: int
    uid: int
    slot: int
    begun: float


class Shares:
    """The copies of one server.

    Parameters
    ----------
    log
        Takes lines.
    clock
        Monotonic seconds.
    """

    def __init__(self, log: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._running: list[Copy] = []
        self._leaving: list[Copy] = []
        """Those whose place was given away, and whose processes have not ended yet."""
        # Both are shared with the processes of copies, which are forked later: what these write, and what they read.
        self._moved = mmap.mmap(-1, 2 * MAX_COPIES * _MOVED.size)
        self._ends = mmap.mmap(-1, 2 * MAX_COPIES)

    def admit(self, uid: int) -> int | None:
        """Find a slot for another copy of a user, by ending one of another user if need be; None if it must wait."""
        self.forget_ended()
        counts = Counter(one.uid for one in self._running)
        if counts[uid] >= MAX_PER_USER:
            return None
        if len(self._running) >= MAX_COPIES:
            found = self._to_end(counts) if not counts[uid] and len(self._leaving) < MAX_COPIES else None
            if found is None:
                return None
            self._end(found, uid)
        slot = min(set(range(2 * MAX_COPIES)) - {one.slot for one in (*self._running, *self._leaving)})
        _MOVED.pack_into(self._moved, slot * _MOVED.size, 0)
        self._ends[slot] = 0
        return slot

    def begun(self, process: int, uid: int, slot: int) -> None:
        """Count a process that copies."""
        try:
            descriptor = os.pidfd_open(process)
        except ProcessLookupError:
            # It has ended already.
            return
        self._running.append(Copy(descriptor, uid, slot, self._clock()))

    def note(self, slot: int, moved: int) -> bool:
        """Note what a copy has moved, and return whether it may go on; in its own process."""
        _MOVED.pack_into(self._moved, slot * _MOVED.size, moved)
        return not self._ends[slot]

    def close(self) -> None:
        """Close what belongs to the copies of others, in the process of one."""
        for one in (*self._running, *self._leaving):
            os.close(one.process)

    def forget_ended(self) -> None:
        """Forget copies whose processes have ended."""
        poll = select.poll()
        for one in (*self._running, *self._leaving):
            poll.register(one.process, select.POLLIN)
        ended = {process for process, _ in poll.poll(0)}
        for one in (*self._running, *self._leaving):
            if one.process in ended:
                os.close(one.process)
        self._running = [one for one in self._running if one.process not in ended]
        self._leaving = [one for one in self._leaving if one.process not in ended]

    def _to_end(self, counts: Counter[int]) -> Copy | None:
        """The copy that gives its place to a user without any."""
        several = [one for one in self._running if counts[one.uid] > 1 and self._age(one) >= SAFE_SECONDS]
        slow = [one for one in self._running if self._age(one) >= LONG_SECONDS and self._rate(one) < FAST]
        return min(several or slow, key=self._rate, default=None)

    def _end(self, copy: Copy, uid: int) -> None:
        self._log(
            f"all {MAX_COPIES} copies are under way: one of uid {copy.uid}, which moves {self._rate(copy):.0f} bytes a "
            f"second, gives its place to one of uid {uid}"
        )
        self._running.remove(copy)
        self._leaving.append(copy)
        self._ends[copy.slot] = 1

    def _age(self, copy: Copy) -> float:
        return self._clock() - copy.begun

    def _rate(self, copy: Copy) -> float:
        (moved,) = _MOVED.unpack_from(self._moved, copy.slot * _MOVED.size)
        return float(moved) / max(1.0, self._age(copy))
