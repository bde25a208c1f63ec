"""Reach a port inside the cluster from the test, as a user would."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from hack.localkube.kubectl import Kubectl
from hack.localkube.programs import build


@contextmanager
def port_forward(kubectl: Kubectl, namespace: str, target: str, port: int) -> Iterator[int]:
    """Forward a free local port to `port` of `target` (``service/NAME`` or ``pod/NAME``) and yield the local one."""
    process = subprocess.Popen(
        [
            str(build.tool("kubectl")),
            f"--kubeconfig={kubectl.kubeconfig}",
            f"--namespace={namespace}",
            "port-forward",
            target,
            f":{port}",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        match = re.search(r"127\.0\.0\.1:(\d+)", first)
        if match is None:
            raise AssertionError(f"kubectl port-forward {target}: {first}{process.stdout.read()}")
        yield int(match[1])
    finally:
        process.terminate()
        process.communicate()
