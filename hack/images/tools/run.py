"""Runs the programs of a build: output to a log, another try after a failed download, errors in clear words."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.images.errors import classify
from hack.machine.downloads import PAUSES, persist

_TAIL_BYTES = 20_000


@dataclass(frozen=True)
class Runner:
    """Starts programs for one build.

    Attributes
    ----------
    log
        All output is appended here.
    progress
        Takes the lines for people.
    pauses
        Seconds before each further try where a download failed.
    """

    log: Path
    progress: Callable[[str], None]
    pauses: Sequence[float] = PAUSES

    def run(self, title: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """Run a program to its end, and again where it ends for want of a download.

        Raises
        ------
        StepFailed
            It ended with an error; subclasses tell a missing network and unknown keys apart.
        """
        status, output = persist(title, lambda: self._attempt(command, env), self.progress, pauses=self.pauses)
        if status != 0:
            raise classify(title, status, output, self.log)

    def _attempt(self, command: Sequence[str], env: Mapping[str, str] | None) -> tuple[int, str]:
        with self.log.open("ab") as log:
            begin = log.seek(0, 2)
            status = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=env, check=False
            ).returncode
        with self.log.open("rb") as log:
            end = log.seek(0, 2)
            log.seek(max(begin, end - _TAIL_BYTES))
            return status, log.read().decode(errors="replace")

    def output(self, title: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> str:
        """Run a program to its end and give what it printed to its standard output.

        Raises
        ------
        StepFailed
            As for `run`.
        """
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=env, check=False)
        if done.returncode != 0:
            raise classify(title, done.returncode, done.stderr.decode(errors="replace"), self.log)
        return done.stdout.decode()
