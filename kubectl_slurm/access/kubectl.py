"""kubectl, which has the user's credentials: this program never sees them.

``kubectl proxy`` listens on a unix socket in a folder that only this user can enter. It signs in as any kubectl does,
by certificates, tokens, plugins for clouds or OIDC, and honours ``--context`` and ``--kubeconfig``. What it says
meanwhile, such as where to log in, is passed on. It is in a session of its own: Ctrl-C ends this program, which still
needs it to put away what it has made, and ends it last.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from kubectl_slurm.errors import KubectlFailed
from slurm_client.cli.text import safe

PATIENCE: Final = 30.0
"""Seconds for a command of kubectl."""

_KEPT: Final = 10_000
"""Characters of what it says that are kept for an error."""

_END: Final = 5.0
"""Seconds in which a proxy ends by itself."""

_ECHO: Final = ("{", "to:", "Resource: ", "Name: ")
"""Begin of lines in which `kubectl apply` repeats what it was given."""

_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with the options that name a Kubernetes.

    Attributes
    ----------
    program
        Its path, or its name on the PATH.
    kubeconfig, context
        As kubectl has them; empty for its defaults.
    """

    program: str = "kubectl"
    kubeconfig: str = ""
    context: str = ""

    def command(self, *arguments: str) -> list[str]:
        """The command line."""
        given = {"--kubeconfig": self.kubeconfig, "--context": self.context}
        return [self.program, *(f"{name}={value}" for name, value in given.items() if value), *arguments]

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl and return what it prints.

        Raises
        ------
        KubectlFailed
            It is missing, fails, or does not end.
        """
        try:
            done = subprocess.run(
                self.command(*arguments),
                input=stdin,
                stdin=None if stdin is not None else subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=PATIENCE,
                check=False,
            )
        except OSError as error:
            raise self._not_run(error) from error
        except subprocess.TimeoutExpired:
            raise KubectlFailed(f"kubectl {arguments[0]} has not ended within {PATIENCE:.0f} s") from None
        if done.returncode:
            raise KubectlFailed(f"kubectl {arguments[0]} failed: {last(done.stderr)}")
        return done.stdout

    def namespace(self) -> str:
        """The namespace of the context; ``default`` if it has none."""
        settings = json.loads(self.run("config", "view", "--minify", "--output=json") or "{}")
        contexts = settings.get("contexts") or [{}]
        found = str((contexts[0].get("context") or {}).get("namespace") or "default")
        return found if _NAMESPACE.fullmatch(found) else "default"

    @contextmanager
    def proxy(self) -> Iterator[Path]:
        """Run ``kubectl proxy``; yields its socket.

        Raises
        ------
        KubectlFailed
            It is missing, does not start, or ends: there is no such context, say.
        """
        with tempfile.TemporaryDirectory(prefix="kubectl-slurm-") as folder:
            socket = Path(folder) / "api"
            command = self.command("proxy", f"--unix-socket={socket}")
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            except OSError as error:
                raise self._not_run(error) from error
            try:
                assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 - as asked for
                said = _Relay(process.stderr)
                self._wait_until_it_listens(process.stdout, said)
                yield socket
            finally:
                _end(process)

    @staticmethod
    def _wait_until_it_listens(output: IO[bytes], said: _Relay) -> None:
        # It prints a line when it listens, and closes its output when it ends.
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            if not selector.select(PATIENCE):
                raise KubectlFailed(f"kubectl proxy does not listen after {PATIENCE:.0f} s: {said.last()}")
        if not os.read(output.fileno(), 4096):
            raise KubectlFailed(f"kubectl proxy failed: {said.last()}")

    def _not_run(self, error: OSError) -> KubectlFailed:
        if isinstance(error, FileNotFoundError):
            return KubectlFailed(f"{self.program} is not on the PATH")
        return KubectlFailed(f"cannot run {self.program}: {error.strerror or error}")


class _Relay:
    """Passes on what kubectl writes to its standard error, but for its last error, which becomes ours."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._text = ""
        self._thread = threading.Thread(target=self._pass_on, name="stderr of kubectl", daemon=True)
        self._thread.start()

    def last(self) -> str:
        """What was said last."""
        self._thread.join(1.0)
        return last(self._text)

    def _pass_on(self) -> None:
        # Not by lines: a prompt ends with none.
        with self._source:
            while data := os.read(self._source.fileno(), 4096):
                text = data.decode(errors="replace")
                self._text = (self._text + text)[-_KEPT:]
                if not text.startswith("error: "):
                    sys.stderr.write("\n".join(safe(line.rstrip("\r")) for line in text.split("\n")))
                    sys.stderr.flush()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def checked_namespace(name: str) -> str:
    """A name of a namespace; it becomes part of paths.

    Raises
    ------
    KubectlFailed
        It is none.
    """
    if _NAMESPACE.fullmatch(name) is None:
        raise KubectlFailed(f"{safe(name)!r:.80} is no name of a namespace")
    return name


def last(text: str) -> str:
    """The last lines of what kubectl has said, without the patch and the object that `apply` puts before the reason."""
    said = (line.strip() for line in text.splitlines())
    lines: Sequence[str] = [line for line in said if line and not line.startswith(_ECHO)]
    return safe("; ".join(lines[-5:]))[:1000] if lines else "it printed nothing"
