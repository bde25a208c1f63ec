"""Runs the programs of a build: output to a log, a line when it begins to take long, errors in clear words."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.images.errors import classify

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
    """

    log: Path
    progress: Callable[[str], None]

    def run(self, title: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """Run a program to its end.

        Raises
        ------
        StepFailed
            It ended with an error; subclasses tell a missing network and unknown keys apart.
        """
        with self.log.open("ab") as log:
            begin = log.seek(0, 2)
            status = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=env, check=False
            ).returncode
        if status != 0:
            with self.log.open("rb") as log:
                end = log.seek(0, 2)
                log.seek(max(begin, end - _TAIL_BYTES))
                output = log.read().decode(errors="replace")
            raise classify(title, status, output, self.log)

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
