"""The operator as a process with the chart's arguments, as its Deployment runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hack.machine import ports
from hack.packaging.render import ROOT
from tests.support import web


def arguments_of(objects: Sequence[Mapping[str, Any]]) -> list[str]:
    """The arguments in the Deployment of a rendered chart."""
    (deployment,) = [obj for obj in objects if obj["kind"] == "Deployment"]
    found: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    return found


def fetch(url: str) -> str:
    """The body, whatever the status; empty while nobody listens."""
    try:
        return web.fetch(url, timeout=60).body.decode()
    except OSError:
        return ""


@contextmanager
def running(
    arguments: Sequence[str],
    kubeconfig: Path,
    namespace: str,
    log: Path,
    *,
    instead: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Run it, and give the address of its health server; at the end it must end in good order.

    Parameters
    ----------
    arguments
        Those of the chart.
    kubeconfig
        What it works with.
    namespace
        Of its Lease.
    log
        Takes what it says.
    instead
        Values of flags that are others than in a pod.
    environment
        More variables.
    """
    (port,) = ports.hold(1)
    values = {"--health-port": str(port), **(instead or {})}
    own = [one for one in arguments if one.partition("=")[0] not in values]
    variables = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}:{ROOT / 'api'}",
        "SLURM_OPERATOR_LEASE_NAMESPACE": namespace,
        **(environment or {}),
    }
    command = [
        *(sys.executable, "-m", "slinky_operator", f"--kubeconfig={kubeconfig}", "--health-host=127.0.0.1"),
        *own,
        *(f"{flag}={value}" for flag, value in values.items()),
    ]
    with log.open("a") as output:
        process = subprocess.Popen(command, env=variables, stdout=output, stderr=subprocess.STDOUT, cwd=log.parent)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            status = process.wait(120)
    assert status == 0, log.read_text()
