"""kubectl, which has the user's credentials: this program never sees them.

``kubectl proxy`` listens on a unix socket in a folder that only this user can enter. It signs in as any kubectl does,
by certificates, tokens, plugins for clouds or OIDC, and honours ``--context`` and ``--kubeconfig``.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kubectl_slurm.errors import KubectlFailed
from slurm_client.cli.text import safe

PATIENCE: Final = 30.0
"""Seconds for a command of kubectl."""

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
        except FileNotFoundError:
            raise KubectlFailed(f"{self.program} is not on the PATH") from None
        except subprocess.TimeoutExpired:
            raise KubectlFailed(f"kubectl {arguments[0]} has not ended within {PATIENCE:.0f} s") from None
        if done.returncode:
            raise KubectlFailed(f"kubectl {arguments[0]} failed: {_last(done.stderr)}")
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
            It is missing, or ends: there is no such context, say.
        """
        with tempfile.TemporaryDirectory(prefix="kubectl-slurm-") as folder:
            socket = Path(folder) / "api"
            command = self.command("proxy", f"--unix-socket={socket}")
            try:
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
                )
            except FileNotFoundError:
                raise KubectlFailed(f"{self.program} is not on the PATH") from None
            with process:
                try:
                    # It prints a line when it listens, and closes its output when it ends.
                    if not process.stdout or not process.stdout.readline():
                        raise KubectlFailed(f"kubectl proxy failed: {_last(process.communicate()[1])}")
                    yield socket
                finally:
                    process.terminate()


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


def _last(text: str) -> str:
    lines: Sequence[str] = [line for line in text.strip().splitlines() if line.strip()]
    return safe("; ".join(line.strip() for line in lines[-5:]))[:1000] if lines else "it printed nothing"
