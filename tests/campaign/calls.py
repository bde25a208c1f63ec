"""What the operator asked of the API server and of Slurm during a round, and what is so much that it turns in a loop.

Requests to the API server are counted by the proxy before it, whichever replica sends them; calls to Slurm by the
operator's own metrics, which are read in the network of each process: no fault of the API server keeps them away. The
calls of a process since it was last looked at go with it when it is killed.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from typing_extensions import override

from tests.campaign.faults.processes import OPERATOR, processes
from tests.campaign.site.site import Site
from tests.support.api_proxy import SLICE, in_network

LOOKS: Final = 5.0
"""Seconds between two looks at the metrics."""

ANSWERS: Final = 3.0
"""Seconds in which a process must show them: one that is frozen never does."""

PORT: Final = 8080
SAMPLE: Final = re.compile(r'^slurm_operator_slurm_requests_total\{[^}]*operation="([^"]*)"[^}]*\} (\S+)', re.MULTILINE)

BEGAN: Final = re.compile(r"^process_start_time_seconds (\S+)", re.MULTILINE)

Counters = tuple[float, Mapping[str, float]]
"""When a process began, in seconds since the epoch, and its calls to Slurm by operation."""

READS, WRITES, CALLS = "reads of the API server", "writes to the API server", "calls to Slurm"

MOST_OF_ONE: Final = 100.0
"""Requests for one object or list, or calls to Slurm for one operation, in ten seconds that are a loop."""

MOST: Final = 400.0
"""Requests of one kind in ten seconds that are a loop, whatever they are for."""


@dataclass(slots=True)
class Calls:
    """What was asked for in a round.

    Attributes
    ----------
    totals
        How often, by kind: `READS`, `WRITES`, `CALLS`.
    peaks
        How often in ten seconds at most, by kind, and by kind and what was asked for.
    """

    totals: Counter[str] = field(default_factory=Counter)
    peaks: dict[str, float] = field(default_factory=dict)

    def add(self, kind: str, asked: Mapping[str, float], seconds: float = SLICE) -> None:
        """Count what was asked for in so many seconds.

        Of less than ten seconds nothing is concluded for ten: a burst is no loop.
        """
        share = SLICE / max(seconds, SLICE)
        self.totals[kind] += round(sum(asked.values()))
        for what, count in (
            *((f"{kind}: {one}", number) for one, number in asked.items()),
            (kind, sum(asked.values())),
        ):
            self.peaks[what] = max(self.peaks.get(what, 0.0), count * share)

    def add_requests(self, slices: Iterable[Counter[str]]) -> None:
        """Count what the proxy has seen."""
        for one in slices:
            for kind, is_read in ((READS, True), (WRITES, False)):
                self.add(kind, {what: count for what, count in one.items() if _is_read(what) is is_read})

    def complaints(self) -> Iterator[str]:
        """What is a loop."""
        for what, most in sorted(self.peaks.items()):
            if most > (MOST if what in {READS, WRITES, CALLS} else MOST_OF_ONE):
                yield f"operator: {most:.0f} times in {SLICE:.0f} s {what}"

    @override
    def __str__(self) -> str:
        counts = ", ".join(f"{self.totals[kind]} {kind}" for kind in (READS, WRITES, CALLS))
        single = {what: most for what, most in self.peaks.items() if what not in {READS, WRITES, CALLS}}
        busiest = sorted(single, key=lambda what: -single[what])[:3]
        return f"{counts}; most in {SLICE:.0f} s: {', '.join(f'{single[one]:.0f} {one}' for one in busiest) or 'none'}"


def _is_read(what: str) -> bool:
    return what.startswith(("GET ", "HEAD ", "WATCH "))


class SlurmCalls:
    """Increments of counters of processes that come and go.

    Parameters
    ----------
    look
        When each process began that shows its counters now, and these.
    begun
        What a process has counted that is older than this does not count: when it is seen first, nor before.
    """

    def __init__(self, look: Callable[[], Mapping[int, Counters]], begun: float) -> None:
        self._look = look
        self._begun = begun
        self._last = {pid: counters for pid, (_, counters) in look().items()}
        self._at = time.monotonic()

    def since(self) -> tuple[dict[str, float], float]:
        """Calls since the last look, by operation, and how many seconds ago that was."""
        grown: dict[str, float] = {}
        now = time.monotonic()
        for pid, (began, counters) in self._look().items():
            before = self._last.get(pid, counters if began < self._begun else {})
            for what, count in counters.items():
                grown[what] = grown.get(what, 0) + count - before.get(what, 0)
            self._last[pid] = counters
        seconds, self._at = now - self._at, now
        return {what: count for what, count in grown.items() if count > 0}, seconds


def counters_of(text: str) -> Counters:
    """When a process began, and its calls to Slurm by operation, from a page of metrics."""
    found: dict[str, float] = {}
    for operation, count in SAMPLE.findall(text):
        found[operation] = found.get(operation, 0.0) + float(count)
    began = BEGAN.search(text)
    return float(began[1]) if began else 0.0, found


def counters(site: Site) -> dict[int, Counters]:
    """The same of every process of the operator that answers."""
    found = {}
    for pid in processes(site.cluster, OPERATOR):
        with suppress(OSError):
            found[pid] = counters_of(page(pid))
    return found


def page(process: int, port: int = PORT) -> str:
    """The metrics of a process, asked for in its own network."""
    address = ("127.0.0.1", port)
    with in_network(process, partial(socket.create_connection, address, ANSWERS)) as connection:
        connection.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        with connection.makefile("rb") as answer:
            return answer.read().decode()


@contextmanager
def counted(site: Site) -> Iterator[Calls]:
    """Count all that the operator asks for meanwhile."""
    calls, over = Calls(), threading.Event()
    site.proxy.take_asked()

    def look() -> None:
        of_slurm = SlurmCalls(partial(counters, site), time.time())
        while not over.wait(LOOKS):
            calls.add(CALLS, *of_slurm.since())
        calls.add(CALLS, *of_slurm.since())

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield calls
    finally:
        over.set()
        thread.join()
        calls.add_requests(site.proxy.take_asked())
