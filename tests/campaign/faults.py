"""What breaks, as data: processes that are killed or frozen, and machines whose services are.

All is done from the machine, by signals and by the supervisors of the local Kubernetes, so that a fault begins and ends
whatever else is broken.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from hack.localkube.cluster import CONTROL_PLANE, Cluster
from hack.localkube.kubectl import wait_for
from tests.support.slurm_in_kubernetes import PATIENCE

API_SERVER: Final = "kube-apiserver"
SLURMCTLD_KILLED: Final = "slurmctld killed"
MARIADB_KILLED: Final = "MariaDB killed"


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault.

    Attributes
    ----------
    begin
        Breaks it; `values` are those that were drawn. Returns what it did, in words.
    end
        Mends it, where it does not mend itself.
    lasts
        Seconds between both, least and most; 0 for what happens at once.
    weight
        How often, compared with others.
    """

    begin: Callable[[Cluster, Mapping[str, Any]], str]
    end: Callable[[Cluster, Mapping[str, Any]], None] | None = None
    lasts: tuple[float, float] = (0, 0)
    weight: int = 2

    def draw(self, random: Random) -> dict[str, Any]:
        values: dict[str, Any] = {"which": random.randrange(6)}
        return values if self.end is None else {**values, "lasts": round(random.uniform(*self.lasts), 1)}

    @contextmanager
    def during(self, cluster: Cluster, values: Mapping[str, Any]) -> Iterator[str]:
        """Break it, and mend it whatever happens."""
        try:
            yield self.begin(cluster, values)
        finally:
            if self.end is not None:
                self.end(cluster, values)


def processes(cluster: Cluster, command: str, *, is_name: bool = True) -> list[int]:
    """Processes of pods of this local Kubernetes, oldest first; no API server is asked.

    Parameters
    ----------
    command
        Name of the program, or words in its command line.
    is_name
        Which of both.
    """
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            ours = cluster.paths.cgroup in (entry / "cgroup").read_text()
            argv = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            name = (entry / "comm").read_text().strip()
            if ours and (name == command if is_name else command in argv):
                found.append(int(entry.name))
    return sorted(found)


def _send(command: str, number: signal.Signals, *, is_name: bool = True, all_of_them: bool = False) -> _Doing:
    def begin(cluster: Cluster, values: Mapping[str, Any]) -> str:
        found = processes(cluster, command, is_name=is_name)
        if found and not all_of_them:
            found = [found[values["which"] % len(found)]]
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        return f"{number.name} to {command} {found}" if found else f"no process of {command} is there"

    return begin


_Doing = Callable[[Cluster, Mapping[str, Any]], str]


def _thaw(command: str, *, is_name: bool = True) -> Callable[[Cluster, Mapping[str, Any]], None]:
    def end(cluster: Cluster, values: Mapping[str, Any]) -> None:
        for pid in processes(cluster, command, is_name=is_name):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    return end


def _killed(command: str, weight: int = 2, *, is_name: bool = True, all_of_them: bool = False) -> Fault:
    return Fault(_send(command, signal.SIGKILL, is_name=is_name, all_of_them=all_of_them), weight=weight)


def _frozen(command: str, lasts: tuple[float, float], weight: int = 2, *, is_name: bool = True) -> Fault:
    begin = _send(command, signal.SIGSTOP, is_name=is_name, all_of_them=True)
    return Fault(begin, _thaw(command, is_name=is_name), lasts, weight)


def _machine_signal(service: str, number: signal.Signals) -> _Doing:
    def begin(cluster: Cluster, values: Mapping[str, Any]) -> str:
        host = _host(cluster, service, values)
        cluster.machine(host).send(service, number)
        return f"{number.name} to {service} of {host}"

    return begin


def _stopped(service: str, lasts: tuple[float, float], weight: int = 2) -> Fault:
    def begin(cluster: Cluster, values: Mapping[str, Any]) -> str:
        host = _host(cluster, service, values)
        cluster.machine(host).stop(service, signal.SIGKILL)
        return f"{service} of {host} stopped"

    def end(cluster: Cluster, values: Mapping[str, Any]) -> None:
        cluster.machine(_host(cluster, service, values)).resume(service)

    return Fault(begin, end, lasts, weight)


def _host(cluster: Cluster, service: str, values: Mapping[str, Any]) -> str:
    nodes = cluster.node_names()
    return nodes[values["which"] % len(nodes)] if service == "kubelet" else CONTROL_PLANE


def _thaw_machine(service: str) -> Callable[[Cluster, Mapping[str, Any]], None]:
    def end(cluster: Cluster, values: Mapping[str, Any]) -> None:
        cluster.machine(_host(cluster, service, values)).send(service, signal.SIGCONT)

    return end


OPERATOR: Final = "slurm-operator"
AGENT: Final = "slinky_operator.agent"

PROCESSES: Final = (
    "operator killed",
    "operators killed",
    "operator frozen",
    "slurmrestd killed",
    "slurmrestd frozen",
    SLURMCTLD_KILLED,
    "slurmctld frozen",
    "slurmctld ended",
    "slurmdbd killed",
    "slurmdbd frozen",
    MARIADB_KILLED,
    "MariaDB frozen",
    "agent killed",
    "agent frozen",
)
MACHINES: Final = ("API server killed", "API server frozen", "kubelet stopped", "DNS gone")

FAULTS: Final[Mapping[str, Fault]] = {
    "operator killed": _killed(OPERATOR, weight=4),
    "operators killed": _killed(OPERATOR, all_of_them=True),
    # Longer than its Lease lasts, now and then.
    "operator frozen": Fault(_send(OPERATOR, signal.SIGSTOP), _thaw(OPERATOR), (3, 25), weight=3),
    "slurmrestd killed": _killed("slurmrestd"),
    "slurmrestd frozen": _frozen("slurmrestd", (3, 20)),
    SLURMCTLD_KILLED: _killed("slurmctld", weight=1),
    "slurmctld frozen": _frozen("slurmctld", (3, 15)),
    "slurmctld ended": Fault(_send("slurmctld", signal.SIGTERM)),
    "slurmdbd killed": _killed("slurmdbd"),
    "slurmdbd frozen": _frozen("slurmdbd", (3, 20)),
    MARIADB_KILLED: _killed("mariadbd", weight=1),
    "MariaDB frozen": _frozen("mariadbd", (3, 20), weight=1),
    "agent killed": _killed(AGENT, is_name=False),
    "agent frozen": _frozen(AGENT, (3, 20), is_name=False),
    "API server killed": Fault(_machine_signal(API_SERVER, signal.SIGKILL), weight=3),
    "API server frozen": Fault(_machine_signal(API_SERVER, signal.SIGSTOP), _thaw_machine(API_SERVER), (3, 15)),
    "kubelet stopped": _stopped("kubelet", (5, 25)),
    "DNS gone": _stopped("coredns", (5, 20)),
}


def mend_all(cluster: Cluster) -> None:
    """Let everything run that a fault may have left frozen or stopped."""
    for command in (OPERATOR, "slurmrestd", "slurmctld", "slurmdbd", "mariadbd"):
        _thaw(command)(cluster, {})
    _thaw(AGENT, is_name=False)(cluster, {})
    master = cluster.machine(CONTROL_PLANE)
    master.send(API_SERVER, signal.SIGCONT)
    master.resume("coredns")
    for name in cluster.node_names():
        cluster.machine(name).resume("kubelet")
    wait_for("the API server", lambda: cluster.kubectl("get", "--raw=/readyz").strip() == "ok", PATIENCE)


def moment() -> float:
    """Now, in seconds of the clock that jobs have, too."""
    return time.time()
