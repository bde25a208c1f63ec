"""Resolves host names in slurmctld's own pod, in the background: an unreachable name server delays no caller.

What slurmctld would find depends on its pod: `hostAliases`, `dnsConfig`, its network. This process shares all of that.
It looks up nothing but what the mounted slurm.conf names, so that no caller can have it ask for anything else.
"""

import queue
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from slinky_operator.pod_programs.agent.hosts import MOST, names_in

WORKERS: Final = 4
"""Names that are looked up at a time."""

FOUND_FOR: Final = 60.0
"""Seconds until a name that was found is looked up again."""

MISSING_FOR: Final = 8.0
"""The same for one that was not; longer where there are many."""

EACH_MISSING: Final = 0.01
"""Seconds by which that grows with each missing name."""

LookUp = Callable[[str, int], bool]


def look_up(name: str, family: int) -> bool:
    """Whether a name has an address, as slurmctld would look."""
    try:
        return bool(socket.getaddrinfo(name, None, family=family, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError):
        # A name that no name server could be asked for is none, too.
        return False


class Resolver:
    """What is known of the names of one file.

    Parameters
    ----------
    look_up
        Looks up one name; may take long.
    clock
        Seconds that are never set back.
    """

    def __init__(self, look_up: LookUp = look_up, clock: Callable[[], float] = time.monotonic) -> None:
        self._look_up = look_up
        self._clock = clock
        self._queue: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()
        self._known: dict[str, tuple[bool, float]] = {}
        self._waiting: set[str] = set()
        self._lock = threading.Lock()
        self._started = False
        self._text: str | None = None
        self._names: frozenset[str] = frozenset()

    def names(self, slurm_conf: str) -> Mapping[str, list[str]]:
        """Names of this file that were found, and that were not; the others are being looked up."""
        with self._lock:
            if slurm_conf != self._text:
                self._text = slurm_conf
                self._names = frozenset(name for name, _ in zip(names_in(slurm_conf), range(MOST), strict=False))
                self._known = {name: one for name, one in self._known.items() if name in self._names}
            found = sorted(name for name, (there, _) in self._known.items() if there)
            missing = sorted(name for name, (there, _) in self._known.items() if not there)
            due = self._due(len(missing))
            self._waiting.update(due)
        family = _family(slurm_conf)
        for name in due:
            self._queue.put((name, family))
        self._start()
        return {"found": found, "missing": missing}

    def _due(self, missing: int) -> Iterable[str]:
        now = self._clock()
        lasts = {True: FOUND_FOR, False: MISSING_FOR + EACH_MISSING * missing}
        return [
            name
            for name in self._names - self._waiting
            if name not in self._known or now - self._known[name][1] >= lasts[self._known[name][0]]
        ]

    def _start(self) -> None:
        if self._started or not self._waiting:
            return
        self._started = True
        for _ in range(WORKERS):
            threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            name, family = self._queue.get()
            # Of a file that is no longer mounted nothing is to be known.
            there = name in self._names and self._look_up(name, family)
            with self._lock:
                self._waiting.discard(name)
                if name in self._names:
                    self._known[name] = there, self._clock()


def _family(slurm_conf: str) -> int:
    """slurmctld resolves IPv4 only, unless configured otherwise."""
    said = re.search(r"(?im)^CommunicationParameters=(\S+)", slurm_conf)
    words = {word.lower() for word in said.group(1).split(",")} if said else set()
    if "enableipv6" not in words:
        return socket.AF_INET
    return socket.AF_INET6 if "disableipv4" in words else socket.AF_UNSPEC
