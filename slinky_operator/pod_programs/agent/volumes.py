"""How much room volumes have, looked at in threads: a file system that hangs delays no caller, and is asked once.

The threads end with the process. A volume whose last look has not ended is not looked at again.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

FRESH: Final = 1.0
"""Seconds for which a look is good: whether slurmctld may be reconfigured depends on it."""

Room = dict[str, int]


def room(folder: Path) -> Room:
    """Bytes and inodes of a file system, and those that are left to a user who is not root. May take for ever.

    Raises
    ------
    OSError
        If the folder cannot be looked at.
    """
    found = os.statvfs(folder)
    return {
        "size": found.f_blocks * found.f_frsize,
        "free": found.f_bavail * found.f_frsize,
        "inodes": found.f_files,
        "inodesFree": found.f_favail,
    }


class Volumes:
    """What is known of the room of some volumes.

    Parameters
    ----------
    folders
        Where each is mounted, by its name.
    look
        Looks at one; may block.
    clock
        Seconds that are never set back.
    """

    def __init__(
        self,
        folders: Mapping[str, Path],
        look: Callable[[Path], Room] = room,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folders = dict(folders)
        self._look = look
        self._clock = clock
        self._looked = threading.Condition()
        """Holds what is known; notified when a look has ended."""
        self._known: dict[str, tuple[float, dict[str, object]]] = {}
        self._begun: dict[str, float] = {}

    def told(self, patience: float = 0.0) -> dict[str, dict[str, object]]:
        """What was seen of each volume, and how many seconds ago; `waits` while a look has not ended.

        Parameters
        ----------
        patience
            Seconds to wait for looks that begin now: who asks seldom would get what was seen the last time.
        """
        with self._looked:
            now = self._clock()
            for name in self._folders:
                seen = self._known.get(name)
                if name not in self._begun and (seen is None or now - seen[0] >= FRESH):
                    self._begin(name, now)
            if patience:
                _ = self._looked.wait_for(lambda: not self._begun, patience)
            now = self._clock()
            return {name: self._of(name, now) for name in self._folders}

    def _of(self, name: str, now: float) -> dict[str, object]:
        seen = self._known.get(name)
        found = {} if seen is None else {**seen[1], "age": round(now - seen[0], 1)}
        return {**found, "waits": round(now - self._begun[name], 1)} if name in self._begun else found

    def _begin(self, name: str, now: float) -> None:
        """Begin a look; if it cannot begin, that is what is known."""
        self._begun[name] = now
        try:
            threading.Thread(target=self._work, args=(name,), daemon=True).start()
        except RuntimeError as error:
            # No room for a thread: the next caller tries again, later.
            del self._begun[name]
            self._known[name] = now, {"error": str(error)}

    def _work(self, name: str) -> None:
        try:
            seen: dict[str, object] = {**self._look(self._folders[name])}
        except OSError as error:
            seen = {"error": str(error)}
        with self._looked:
            self._known[name] = self._clock(), seen
            del self._begun[name]
            self._looked.notify_all()
