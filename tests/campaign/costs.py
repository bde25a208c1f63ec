"""What the operator costs while nothing happens, and what it lets others see that is secret."""

from __future__ import annotations

import base64
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from typing_extensions import override

from hack.installing.operator import NAMESPACE
from hack.localkube.errors import LocalKubeError
from tests.campaign.faults.processes import OPERATOR, processes
from tests.campaign.site.site import Site
from tests.support import audit

QUIET: Final = 12.0
"""Seconds that are watched."""

CPU: Final = 0.25
"""Share of a core of all replicas together that is too much at rest, on a machine that is busy with other things."""

WRITES: Final = 8
"""Writes to one object in the quiet time that are too many."""

GROWTH: Final = 80.0
"""MiB that a process may grow after its first round."""

SHORTEST: Final = 16
"""Characters from which on a value of a Secret is looked for: shorter ones are names."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one quiet time has cost.

    Attributes
    ----------
    cpu
        Share of a core, all replicas together.
    memory
        Resident MiB of each process.
    writes
        Writes of the operator's pods, by verb, resource and name; Leases are not counted.
    """

    cpu: float
    memory: dict[int, float]
    writes: Counter[str]

    @override
    def __str__(self) -> str:
        return f"{self.cpu:.2f} of a core at rest, {max(self.memory.values(), default=0):.0f} MiB"

    def complaints(self, before: Cost | None) -> Iterator[str]:
        """What is too much, also compared with an earlier quiet time."""
        if self.cpu > CPU:
            yield f"operator: {self.cpu:.2f} of a core at rest"
        for what, count in self.writes.items():
            if count > WRITES:
                yield f"operator: {count} times {what} in {QUIET:.0f} s at rest"
        for pid, size in self.memory.items():
            grown = size - before.memory.get(pid, size) if before else 0
            if grown > GROWTH:
                yield f"operator: its memory grew by {grown:.0f} MiB to {size:.0f}"


def measure(site: Site) -> Cost:
    """Watch the operator while nothing happens."""
    pids = processes(site.cluster, OPERATOR)
    before, begun = {pid: _cpu(pid) for pid in pids}, time.time()
    time.sleep(QUIET)
    spent = sum(_cpu(pid) - seconds for pid, seconds in before.items())
    writes = Counter(
        f"{one.verb} {one.resource} {one.namespace}/{one.name}"
        for one in audit.writes(site.cluster.paths.audit_log)
        if one.at.timestamp() >= begun and f":{NAMESPACE}:" in one.user and one.resource != "leases"
    )
    return Cost(spent / QUIET, {pid: _memory(pid) for pid in pids}, writes)


def _cpu(pid: int) -> float:
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:
        return 0.0


def leaks(site: Site) -> Iterator[str]:
    """Where values of Secrets stand that should not."""
    values = dict(_values(site))
    for place, text in _places(site):
        for name, value in values.items():
            if value in text:
                yield f"{place}: has {name}"


def _values(site: Site) -> Iterator[tuple[str, str]]:
    for secret in site.slurm.get("secrets")["items"]:
        for key, encoded in (secret.get("data") or {}).items():
            value = base64.b64decode(encoded).decode(errors="replace").strip()
            for form in (value, encoded):
                if len(form) >= SHORTEST:
                    yield f"{secret['metadata']['name']}/{key}{'' if form is value else ' (base64)'}", form


def _places(site: Site) -> Iterator[tuple[str, str]]:
    kubectl = site.cluster.kubectl
    for name in site.operator.pods():
        for when in ((), ("--previous",)):
            try:
                yield f"log of {name}", kubectl("logs", "--namespace", NAMESPACE, name, *when)
            except LocalKubeError:
                continue  # it was never started again
    yield "Events", json.dumps(site.slurm.get("events"))
    for kind in ("clusters.slinky.slurm.net", "nodesets.slinky.slurm.net"):
        yield f"status of {kind}", json.dumps([one.get("status") for one in site.slurm.get(kind)["items"]])
