"""A shell that runs one block of commands after the other, as a reader's terminal would.

Variables, the folder and what runs in the background last from one block to the next. Each block ends at its first
command that fails.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self


class CommandsFailed(AssertionError):
    """A block of commands failed, or did not end in time; the text has the commands and what they printed."""


class Shell:
    """One bash.

    Parameters
    ----------
    folder
        Where it starts.
    notes
        Folder for the commands and their output.
    environment
        All its variables.
    """

    def __init__(self, folder: Path, notes: Path, environment: Mapping[str, str]) -> None:
        self._notes = notes
        self._count = 0
        self._ended, write = os.pipe()
        self._report = write
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=dict(environment),
            pass_fds=[write],
            start_new_session=True,
            text=True,
        )
        os.close(write)

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the shell and all that it left in the background."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._process.wait()
        os.close(self._ended)

    def run(self, commands: str, place: str, timeout: float) -> str:
        """Run commands and return all that they printed.

        Parameters
        ----------
        commands
            As in a script.
        place
            Where they stand, for the error.
        timeout
            Seconds they may take.

        Raises
        ------
        CommandsFailed
            One of them failed, or they did not end in time.
        """
        self._count += 1
        script, output = self._notes / f"{self._count}.sh", self._notes / f"{self._count}.out"
        script.write_text(commands)
        # What the block starts must not hold the pipe that tells of the shell's end.
        line = f"set -eo pipefail; . '{script}' >'{output}' 2>&1 </dev/null {self._report}>&-; echo >&{self._report}\n"
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line)
            self._process.stdin.flush()
        readable, _, _ = select.select([self._ended], [], [], timeout)
        printed = output.read_text(errors="replace") if output.exists() else ""
        if not readable:
            raise CommandsFailed(f"{place}: not ended after {timeout:.0f} s:\n{commands}\nIt printed:\n{printed}")
        if not os.read(self._ended, 1):
            raise CommandsFailed(f"{place}: failed:\n{commands}\nIt printed:\n{printed}")
        return printed
