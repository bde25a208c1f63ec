"""
Faults that a fake server can be given: slowness, silence, broken answers, refusals.

A fault says which requests it concerns and how many of them; the server asks before each answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

AWAY = {
    "description": "Failed to open slurmdbd connection",
    "error_number": 7000,
    "error": "Unable to connect to database",
    "source": "openapi_get_db_conn",
}
"""The error while slurmdbd does not answer; also the answer to a bad token."""


@dataclass(slots=True)
class Fault:
    """
    One thing that goes wrong.

    Parameters
    ----------
    path
        Regular expression searched for in ``METHOD /slurm/v0.0.NN/…``; matches every request when empty.
    times
        How many requests it concerns; ``None`` for all until it is removed.
    skip
        How many matching requests go well first.
    delay
        Seconds before the answer.
    hang
        Accept the request and never answer.
    disconnect
        Close the connection instead of answering.
    truncate
        Send only this share of the body, in [0, 1), then close the connection.
    cut
        Send only this share of the body as if it were all of it.
    status
        HTTP status instead of the proper one.
    body
        Body instead of the proper one: text, bytes, or what becomes JSON.
    content_type
        Of ``body``.
    late
        Do what was asked before misbehaving; otherwise nothing is done.
    """

    path: str = ""
    times: int | None = 1
    skip: int = 0
    delay: float = 0.0
    hang: bool = False
    disconnect: bool = False
    truncate: float | None = None
    cut: float | None = None
    status: int | None = None
    body: Any = None
    content_type: str = "application/json"
    late: bool = False
    hits: int = 0

    def takes(self, line: str) -> bool:
        """Whether it concerns this request; counts it if so."""
        if self.times is not None and self.hits >= self.times:
            return False
        if not re.search(self.path, line):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.hits += 1
        return True


class Faults:
    """All faults of a server, the oldest first."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, path: str = "", **options: Any) -> Fault:
        """Add a fault; parameters as for :class:`Fault`."""
        fault = Fault(path, **options)
        self._faults.append(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """Let what this fault concerned go well again."""
        self._faults.remove(fault)

    def clear(self) -> None:
        """Let everything go well again."""
        self._faults.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """Return the first fault that concerns this request."""
        line = f"{method} {path}"
        return next((fault for fault in self._faults if fault.takes(line)), None)

    # what goes wrong most often

    def controller_down(self, delay: float = 0.0) -> Fault:
        """Let slurmctld be away: slurmrestd answers 502 after ``delay`` seconds, pings apart."""
        error = {
            "description": "Unable to contact slurm controller",
            "error_number": 1800,
            "error": "Unable to contact slurm controller (connect failure)",
            "source": "slurmctld",
        }
        return self.add(
            r"^(?!GET \S+/ping/|\S+ /slurmdb/)",
            times=None,
            delay=delay,
            status=502,
            body={"errors": [error], "warnings": []},
        )

    def slurmdbd_down(self, delay: float = 0.0) -> Fault:
        """Let slurmdbd be away: slurmrestd answers 502 to everything it would ask there, after ``delay`` seconds."""
        return self.add(r"\S+ /slurmdb/", times=None, delay=delay, status=502, body={"errors": [AWAY], "warnings": []})

    def hang(self, path: str = "", times: int | None = None) -> Fault:
        """Accept and never answer."""
        return self.add(path, times=times, hang=True)

    def disconnect(self, path: str = "", times: int | None = 1) -> Fault:
        """Close the connection without an answer."""
        return self.add(path, times=times, disconnect=True)
