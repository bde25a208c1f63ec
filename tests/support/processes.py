"""Processes of pods, seen from the host: for tests that kill or freeze them."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def of_pod(pod: Mapping[str, Any], command: str) -> list[int]:
    """Return the processes of a pod whose command line holds `command`.

    They are known by the pod's uid in the name of their cgroup: a name may be borne by a pod of another cluster on
    the same machine, too.
    """
    mark = f"pod{pod['metadata']['uid']}"
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            groups = (entry / "cgroup").read_text()
            argv = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it ended while we looked, or is none of ours
        if mark in groups and command in argv:
            found.append(int(entry.name))
    return found


def send(pod: Mapping[str, Any], command: str, number: signal.Signals) -> None:
    """Send a signal to these processes.

    Raises
    ------
    AssertionError
        There is none: a test that kills nothing shows nothing.
    """
    found = of_pod(pod, command)
    assert found, f"no process {command!r} in pod {pod['metadata']['name']}"
    for pid in found:
        # One that has gone since, with the first process of its container for example, needs no signal.
        with suppress(ProcessLookupError):
            os.kill(pid, number)
