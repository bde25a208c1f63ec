"""Faults of the network: a daemon that lives, and hears nobody: neither requests nor answers to its own.

No NetworkPolicy has an effect in the local Kubernetes. What comes into the pod is dropped in its own network, from the
machine, but for what stays in it: what runs in the pod goes on, and so do probes that are commands. What it sends is
not dropped, since its sockets would be told of that, as no network does.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from hack.localkube.cluster import Cluster
from hack.localkube.programs import debian
from tests.campaign.faults.kind import Doing, Fault, MetNothing, Place, soon
from tests.campaign.faults.processes import THERE, processes, state

SLURMCTLD_UNREACHABLE: Final = "slurmctld unreachable"

COMMENT: Final = "campaign"
"""By which the rules are known."""

RULE: Final = ("INPUT", "!", "-i", "lo", "-m", "comment", "--comment", COMMENT, "-j", "DROP")
"""What is dropped."""

DROPS: Final = 30.0
"""Seconds in which a packet must have been dropped: nodes, probes and the operator send some every few seconds."""

COUNTED: Final = re.compile(rf"^\s*(\d+)\s+\d+\s+DROP\s.*/\* {COMMENT} \*/", re.MULTILINE)


def _unreachable(command: str, lasts: tuple[float, float]) -> Fault:
    return Fault(_cut_off(command), _mend, lasts)


def _cut_off(command: str) -> Doing:
    def begin(place: Place, values: Mapping[str, Any]) -> str:
        found = soon(lambda: processes(place.cluster, command), THERE)
        if not found:
            raise MetNothing(f"no process of {command} is there")
        pid = found[values["which"] % len(found)]
        _in_pod(pid, "-I", *RULE)
        dropped = soon(lambda: sum(map(int, COUNTED.findall(_in_pod(pid, "-nvxL")))), DROPS)
        if not dropped:
            raise MetNothing(f"{command} [{pid}] gets no packets")
        lives = "lives" if state(pid) else "has ended meanwhile"
        return f"packets for {command} [{pid}], which {lives}, are dropped: {dropped} so far"

    return begin


def _in_pod(pid: int, *arguments: str) -> str:
    """Run iptables in the network of a process; what it prints, which is nothing where that has gone."""
    program = debian.which("iptables") or "iptables"
    command = ["nsenter", f"--target={pid}", "--net", "--", program, "-w", "5", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _mend(place: Place, values: Mapping[str, Any]) -> None:
    mend(place)


def mend(place: Place) -> None:
    """Let packets pass again, in every pod: the process whose pod it was may have ended."""
    for pid in _one_of_each_network(place.cluster):
        if f"--comment {COMMENT}" in _in_pod(pid, "-S"):
            _in_pod(pid, "-D", *RULE)


def _one_of_each_network(cluster: Cluster) -> Iterator[int]:
    """A process in the network of each pod."""
    known = set()
    for pid in processes(cluster, ""):
        with suppress(OSError):
            network = Path(f"/proc/{pid}/ns/net").readlink()
            if network not in known:
                known.add(network)
                yield pid


UNREACHABLE: Final[Mapping[str, Fault]] = {
    # Shorter than Slurm waits before it misses nodes.
    SLURMCTLD_UNREACHABLE: _unreachable("slurmctld", (5, 25)),
    "slurmrestd unreachable": _unreachable("slurmrestd", (5, 30)),
}
