"""How much room volumes have, looked at in threads: a file system that hangs delays no caller, and is asked once.

The threads end with the process. A volume whose last look has not ended is not looked at again.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

FRESH: Final = 5.0
"""Seconds for which a look is good."""

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
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, dict[str, object]]] = {}
        self._begun: dict[str, float] = {}

    def told(self) -> dict[str, dict[str, object]]:
        """What was seen of each volume, and how many seconds ago; `waits` while a look has not ended."""
        now = self._clock()
        found: dict[str, dict[str, object]] = {}
        with self._lock:
            for name in self._folders:
                seen = self._known.get(name)
                if name not in self._begun and (seen is None or now - seen[0] >= FRESH):
                    self._begun[name] = now
                    threading.Thread(target=self._work, args=(name,), daemon=True).start()
                found[name] = {} if seen is None else {**seen[1], "age": round(now - seen[0], 1)}
                if name in self._begun:
                    found[name]["waits"] = round(now - self._begun[name], 1)
        return found

    def _work(self, name: str) -> None:
        try:
            seen: dict[str, object] = {**self._look(self._folders[name])}
        except OSError as error:
            seen = {"error": str(error)}
        with self._lock:
            self._known[name] = self._clock(), seen
            del self._begun[name]
