"""A shell that runs one block of commands after the other, as a reader's terminal would.

Variables, the folder and background processes last from one block to the next. Each block ends at its first failed
command.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

PROMPTS = (b"$ ", b"# ")
"""How a shell's prompt ends."""


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
        self._folder, self._notes, self._environment = folder, notes, dict(environment)
        self._count = 0
        self._ended, write = os.pipe()
        self._report = write
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=self._environment,
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

    def type(self, command: str, words: str, place: str, timeout: float) -> str:
        """Run a command in a terminal of its own, type words when a prompt is shown, and return all that was shown.

        It knows nothing of the shell's variables.

        Parameters
        ----------
        command
            What opens the shell that is typed into.
        words
            What is typed; the last of them ends it.
        place, timeout
            As for `run`.

        Raises
        ------
        CommandsFailed
            It failed, or did not end in time.
        """
        ours, theirs = os.openpty()
        shown = b""
        process = subprocess.Popen(
            ["bash", "-c", command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=self._folder,
            env=self._environment,
            start_new_session=True,
        )
        os.close(theirs)
        try:
            deadline = time.monotonic() + timeout
            typed = False
            while piece := _piece(ours, deadline - time.monotonic()):
                shown += piece
                if not typed and shown.endswith(PROMPTS):
                    typed = True
                    os.write(ours, f"{words}\n".encode())
            if process.wait(max(deadline - time.monotonic(), 0.1)) == 0:
                return shown.decode(errors="replace")
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        finally:
            os.close(ours)
        raise CommandsFailed(f"{place}: failed:\n{command}\nIt showed:\n{shown.decode(errors='replace')}")


def _piece(terminal: int, timeout: float) -> bytes:
    """What a terminal shows next; nothing once it is closed, or when the time is over."""
    readable, _, _ = select.select([terminal], [], [], max(timeout, 0.0))
    try:
        return os.read(terminal, 65536) if readable else b""
    except OSError:  # the last process has left it
        return b""
