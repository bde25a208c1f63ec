"""Run kubectl against one cluster, and wait for what it says."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from hack.localkube import commands, execs, objects
from hack.localkube.api_server import Refused
from hack.localkube.errors import LocalKubeError
from hack.localkube.programs import build


class KubectlFailed(LocalKubeError):
    """kubectl ended with an error; `stderr` has its words."""

    def __init__(self, arguments: tuple[str, ...], stderr: str) -> None:
        super().__init__(f"kubectl {' '.join(arguments)}: {stderr.strip()}")
        self.arguments = arguments
        self.stderr = stderr


class Kubectl:
    """kubectl with one kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def __call__(self, *arguments: str, stdin: str | None = None, timeout: float = 120.0) -> str:
        """Do what kubectl does with these arguments, and return what it prints; what is simple is done without it.

        Raises
        ------
        KubectlFailed
            It ended with an error, or after `timeout` seconds not at all.
        """
        try:
            return self._quick(arguments, stdin, timeout)
        except commands.LeftToKubectl:
            return self.process(*arguments, stdin=stdin, timeout=timeout)

    def _quick(self, arguments: tuple[str, ...], stdin: str | None, timeout: float) -> str:
        """Do it over connections that are kept, or leave it to kubectl."""
        try:
            known = objects.opened(self.kubeconfig)
        except (OSError, ValueError, LookupError) as error:
            raise commands.LeftToKubectl from error
        try:
            if "exec" not in arguments:
                return commands.run(known, arguments, stdin, timeout)
            wanted = execs.read(arguments)
            if wanted is None or stdin is not None:
                raise commands.LeftToKubectl
            return execs.run(known.server, wanted, timeout)
        except TimeoutError as error:
            raise KubectlFailed(arguments, f"no answer in {timeout:.0f} s") from error
        except (Refused, execs.Failed, OSError) as error:
            raise KubectlFailed(arguments, str(error)) from error

    def process(self, *arguments: str, stdin: str | None = None, timeout: float = 120.0) -> str:
        """Run kubectl itself, and return what it printed.

        Raises
        ------
        KubectlFailed
            It ended with an error, or after `timeout` seconds not at all.
        """
        try:
            run = subprocess.run(
                [str(build.tool("kubectl")), f"--kubeconfig={self.kubeconfig}", *arguments],
                input=stdin,
                stdin=subprocess.DEVNULL if stdin is None else None,
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout,
                env=self.environment(),
            )
        except subprocess.TimeoutExpired as error:
            raise KubectlFailed(arguments, f"no answer in {timeout:.0f} s") from error
        if run.returncode != 0:
            raise KubectlFailed(arguments, run.stderr)
        return run.stdout

    def environment(self) -> dict[str, str]:
        """Return the variables of a kubectl process."""
        # A discovery cache of its own: the addresses of short-lived clusters repeat.
        return {**os.environ, "KUBECACHEDIR": str(self.kubeconfig.parent / "kubectl-cache")}

    def get(self, *arguments: str) -> dict[str, Any]:
        """Return the object or list that ``kubectl get`` shows; what is simply asked for is read without kubectl.

        Raises
        ------
        KubectlFailed
            There is no such object, or no answer.
        """
        asked = objects.query(arguments)
        if asked is None:
            answer: dict[str, Any] = json.loads(self("get", *arguments, "--output=json"))
            return answer
        try:
            return objects.opened(self.kubeconfig).get(asked)
        except (Refused, OSError) as error:
            raise KubectlFailed(("get", *arguments), str(error)) from error

    def apply(self, objects: Iterable[Mapping[str, Any]]) -> str:
        """Apply objects by server-side apply."""
        items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        return self("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=json.dumps(items))


LONGEST_PAUSE = 0.5
"""Seconds between two looks at what has taken ten seconds or more."""

LONGEST_LOOK = 5.0
"""Seconds of pause after a look that took as long, or longer."""


def wait_for(
    what: str,
    ready: Callable[[], bool],
    timeout: float,
    poll: float = 0.1,
    not_yet: tuple[type[Exception], ...] = (KubectlFailed,),
) -> None:
    """Wait until `ready` says so; errors of the types `not_yet` count as "not yet".

    Raises
    ------
    LocalKubeError
        It did not come true within `timeout` seconds; the text has the last error.
    """
    begun = time.monotonic()
    last = ""
    while (waited := (looked := time.monotonic()) - begun) < timeout:
        try:
            if ready():
                return
        except not_yet as error:
            last = f" ({error})"
        # What has taken long may be seen a little later: each look costs a command. On a busy machine, that takes from
        # what is waited for: half of the time at most is spent looking.
        took = time.monotonic() - looked
        time.sleep(max(poll, min(waited / 20, LONGEST_PAUSE), min(took, LONGEST_LOOK)))
    raise LocalKubeError(f"{what}: not within {timeout:.0f} s{last}")
