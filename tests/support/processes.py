"""Processes of pods, seen from the host: for tests that kill or freeze them."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def of_pod(pod: str, command: str) -> list[int]:
    """Return the processes whose host name is the pod's and whose command line holds `command`.

    Raises
    ------
    AssertionError
        There is none: a test that kills nothing shows nothing.
    """
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
            argv = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it ended while we looked, or is none of ours
        if f"HOSTNAME={pod}".encode() in environment and command in argv:
            found.append(int(entry.name))
    assert found, f"no process {command!r} in pod {pod}"
    return found


def send(pod: str, command: str, number: signal.Signals) -> None:
    """Send a signal to these processes."""
    for pid in of_pod(pod, command):
        os.kill(pid, number)
