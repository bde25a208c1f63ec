"""The exporter as a process of its own, scraped again and again: how often it did not know what Slurm does."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import httpx

from hack.machine import ports

if TYPE_CHECKING:
    from pathlib import Path

UP: Final = "slurm_exporter_up "
"""The beginning of the line that says whether Slurm has answered for everything the last time."""


@dataclass
class Scrapes:
    """What was scraped."""

    answers: list[bool] = field(default_factory=list)
    """Whether the exporter knew everything."""

    missed: list[str] = field(default_factory=list)
    """Why a scrape failed."""


@contextmanager
def scraped(server: str, key: Path) -> Iterator[Scrapes]:
    """Run an exporter that asks a slurmrestd each second, with tokens that it signs itself, and scrape it."""
    (port,) = ports.hold(1)
    words = ("--server", server, "--key-file", str(key), "--user", "slurm", "--interval", "1", "--slow-interval", "1")
    listens = ("--listen-address", "127.0.0.1", "--port", str(port), "--log-level", "error")
    found, ending = Scrapes(), threading.Event()

    def scrape() -> None:
        with httpx.Client(timeout=30, trust_env=False) as http:
            while not ending.wait(0.5):
                try:
                    text = http.get(f"http://127.0.0.1:{port}/metrics").text
                except httpx.HTTPError as error:
                    # It is starting, at first.
                    if found.answers:
                        found.missed.append(str(error))
                    continue
                found.answers += [float(line.split()[-1]) == 1 for line in text.splitlines() if line.startswith(UP)]

    thread = threading.Thread(target=scrape)
    with subprocess.Popen([sys.executable, "-m", "slurm_exporter", *words, *listens]) as process:
        try:
            thread.start()
            yield found
        finally:
            ending.set()
            thread.join()
            process.terminate()
