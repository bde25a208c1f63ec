"""A shell in a container that stays open from one command to the next.

Each exec costs 0.1 s of CPU in kubectl, and as much in the container's runtime; a command in an open shell costs only
the command. For read-only commands: if the container has ended meanwhile, they are repeated in the next one.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import shlex
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

from hack.localkube.kubectl import Kubectl, KubectlFailed
from hack.localkube.programs import build


class _Ended(Exception):
    """The shell ended before the command did; the text has its last words."""


@dataclass(frozen=True, slots=True)
class _Running:
    """A shell that was started.

    Attributes
    ----------
    process
        kubectl, whose pipes are those of the shell in the container.
    mark
        A line that begins with it ends what a command has printed.
    """

    process: subprocess.Popen[bytes]
    mark: str

    def run(self, argv: Sequence[str], timeout: float) -> tuple[int, str, str]:
        """Return status, output and errors of a command."""
        stdin, stdout, stderr = self.process.stdin, self.process.stdout, self.process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        end = f"printf '\\n{self.mark} %s\\n'"
        # Where it has ended, its output says so.
        with contextlib.suppress(BrokenPipeError):
            stdin.write(f'{shlex.join(argv)} </dev/null; {end} "$?"; {end} - >&2\n'.encode())
            stdin.flush()
        deadline = time.monotonic() + timeout
        printed = {stdout.fileno(): b"", stderr.fileno(): b""}
        unread = set(printed)
        mark = f"\n{self.mark} ".encode()
        while unread:
            readable, _, _ = select.select(unread, [], [], max(deadline - time.monotonic(), 0.0))
            if not readable:
                raise TimeoutError
            for number in readable:
                piece = os.read(number, 65536)
                printed[number] += piece
                if not piece or (piece.endswith(b"\n") and mark in printed[number]):
                    unread.discard(number)
        if not all(mark in text for text in printed.values()):
            raise _Ended(b" ".join(printed.values()).decode(errors="replace").strip())
        output, _, status = printed[stdout.fileno()].rpartition(mark)
        errors = printed[stderr.fileno()].rpartition(mark)[0]
        return int(status), output.decode(errors="replace"), errors.decode(errors="replace")

    def end(self) -> None:
        """End kubectl, and with it the shell."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            # What could not be written goes with it.
            with contextlib.suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()


class KeptShell:
    """A shell in a container, started when it is first needed and again when its container is another one.

    Parameters
    ----------
    kubectl
        Access to the Kubernetes cluster.
    namespace, pod, container
        Where it runs.
    """

    def __init__(self, kubectl: Kubectl, namespace: str, pod: str, container: str) -> None:
        self._kubectl, self._where = kubectl, (f"--namespace={namespace}", pod, f"--container={container}")
        self._running: _Running | None = None

    def run(self, *argv: str, timeout: float = 120.0) -> str:
        """Run a command that only looks, and return what it printed.

        Parameters
        ----------
        argv
            The command.
        timeout
            Seconds it may take.

        Raises
        ------
        KubectlFailed
            It ended with an error, or not in time, or the container cannot be reached.
        """
        was_kept = self._running is not None
        try:
            return self._run(argv, timeout)
        except _Ended as error:
            if not was_kept:
                raise KubectlFailed(("exec", *self._where, *argv), str(error)) from error
        try:
            return self._run(argv, timeout)
        except _Ended as error:
            raise KubectlFailed(("exec", *self._where, *argv), str(error)) from error

    def _run(self, argv: Sequence[str], timeout: float) -> str:
        running = self._running or self._start()
        # Kept again only if all that it printed has been read.
        self._running = None
        try:
            status, output, errors = running.run(argv, timeout)
        except TimeoutError as error:
            running.end()
            raise KubectlFailed(("exec", *self._where, *argv), f"no answer in {timeout:.0f} s") from error
        except BaseException:
            running.end()
            raise
        self._running = running
        if status != 0:
            text = f"{errors}\ncommand terminated with exit code {status}"
            raise KubectlFailed(("exec", *self._where, *argv), text)
        return output

    def _start(self) -> _Running:
        process = subprocess.Popen(
            [
                str(build.tool("kubectl")),
                f"--kubeconfig={self._kubectl.kubeconfig}",
                "exec",
                "--stdin",
                *self._where,
                "--",
                "sh",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._kubectl.environment(),
        )
        return _Running(process, f"end-{secrets.token_hex(8)}")

    def close(self) -> None:
        """End it."""
        if self._running is not None:
            self._running.end()
            self._running = None
