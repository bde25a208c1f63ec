"""Faults of machines: services that are killed, frozen or stopped, and a Node that is lost with all that runs there.

All is done by the supervisors of the local Kubernetes and by signals; only the object of a lost Node is deleted by way
of the API server, as an administrator or a cloud provider does. What follows a Node that is lost for good is left to
:mod:`tests.campaign.site.nodes`.
"""

from __future__ import annotations

import math
import os
import re
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from hack.localkube.cluster import CONTROL_PLANE, Cluster
from hack.localkube.errors import LocalKubeError
from hack.localkube.kubectl import wait_for
from tests.campaign.faults.kind import Doing, Ending, Fault, MetNothing, Place, soon
from tests.campaign.faults.processes import OBEYED, THERE, hit, processes, state
from tests.campaign.site import nodes
from tests.support.slurm_in_kubernetes import PATIENCE

API_SERVER: Final = "kube-apiserver"
NODE_LOST: Final = "Node lost"
NODE_REPLACED: Final = "Node lost for good and replaced"
NODE_GONE: Final = "Node lost for good"
LOSSES: Final = (NODE_LOST, NODE_REPLACED, NODE_GONE)
"""The Node returns under its name; another one comes; nobody comes before the end of the round."""

LOST: Final = re.compile(r"is lost after (\d+) s, with ([\w, -]+)$")

DAEMONS: Final = ("slurmctld", "mariadbd")
"""What a lost Node may take with it."""


def lost_with(said: str) -> tuple[str, ...]:
    """What was lost with a Node, from what its fault has said: nodes of Slurm, and daemons by their programs."""
    found = LOST.search(said)
    return tuple(found[2].split(", ")) if found else ()


def lost_after(said: str) -> float:
    """Seconds from the beginning of the fault until the last process there was killed: many on a busy machine."""
    found = LOST.search(said)
    return float(found[1]) if found else 0.0


def _machine_signal(service: str, number: signal.Signals) -> Doing:
    def begin(place: Place, values: Mapping[str, Any]) -> str:
        host = _host(place.cluster, service, values)
        found = soon(lambda: of_service(place.cluster, service), THERE)
        if not found:
            raise MetNothing(f"no {service} is there")
        hit(found, number)
        return f"{number.name} to {service} of {host}"

    return begin


def of_service(cluster: Cluster, service: str) -> list[int]:
    """Processes of a service of the control plane, by the folder of its machine in their command lines."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            argv = [os.fsdecode(word) for word in (entry / "cmdline").read_bytes().split(b"\0")]
            # Not that of a machine whose name only begins so.
            ours = any(f"{cluster.paths.root}/" in word for word in argv)
            if entry.name.isdigit() and Path(argv[0]).name == service and ours and state(int(entry.name)):
                found.append(int(entry.name))
    return sorted(found)


def _stopped(service: str, lasts: tuple[float, float], weight: int = 2) -> Fault:
    def begin(place: Place, values: Mapping[str, Any]) -> str:
        host = _host(place.cluster, service, values)
        _stop(place.cluster, host, service)
        return f"{service} of {host} stopped"

    def end(place: Place, values: Mapping[str, Any]) -> None:
        place.cluster.machine(_host(place.cluster, service, values)).resume(service)

    return Fault(begin, end, lasts, weight)


def _stop(cluster: Cluster, host: str, service: str) -> None:
    machine = cluster.machine(host)
    machine.stop(service, signal.SIGKILL)
    if not soon(lambda: not machine.services()[service]["running"], OBEYED):
        raise MetNothing(f"{service} of {host} goes on")


def _host(cluster: Cluster, service: str, values: Mapping[str, Any]) -> str:
    """A machine; none whose Node is lost for good, but where all are."""
    there = [one for one in cluster.node_names() if not nodes.is_away(cluster, one)] or cluster.node_names()
    return there[values["which"] % len(there)] if service == "kubelet" else CONTROL_PLANE


def _thaw_machine(service: str) -> Ending:
    def end(place: Place, values: Mapping[str, Any]) -> None:
        place.cluster.machine(_host(place.cluster, service, values)).send(service, signal.SIGCONT)

    return end


def _lose(place: Place, values: Mapping[str, Any]) -> str:
    """The machine is gone: its kubelet and all processes of its pods; and then its Node."""
    began = time.monotonic()
    return _lost(place.cluster, _host(place.cluster, "kubelet", values), began)


def _lose_for_good(place: Place, values: Mapping[str, Any]) -> str:
    """The same, and the Node never returns; another that went so before has its successor first."""
    cluster, began = place.cluster, time.monotonic()
    nodes.replace(cluster)
    host = _host(cluster, "kubelet", values)
    kubelet = [pid for pid in of_service(cluster, "kubelet") if nodes.is_on(cluster, host, pid)]
    if not kubelet:
        raise MetNothing(f"no kubelet of {host} is there")
    command = nodes.command_of(kubelet[0])
    said = _lost(cluster, host, began)
    nodes.put_away(cluster, host, command)
    return said


def _lost(cluster: Cluster, host: str, began: float) -> str:
    _stop(cluster, host, "kubelet")
    node = nodes.name_of(cluster, host)
    gone = [node, *sorted(_nodes_of_slurm(cluster, host))]
    gone += [name for name in DAEMONS if processes(cluster, name, below=host)]
    if not soon(lambda: _has_none_left(cluster, host), OBEYED):
        raise MetNothing(f"processes of pods of {host} go on")
    lost = f"{node} is lost after {math.ceil(time.monotonic() - began)} s, with {', '.join(gone)}"
    try:
        cluster.kubectl("delete", "node", node, "--wait=false", timeout=15)
    except LocalKubeError as error:
        # Kubernetes takes it for lost all the same, only later.
        return f"its Node stays ({error}); {lost}"
    return lost


def _has_none_left(cluster: Cluster, host: str) -> bool:
    """Whether no process of a pod is left on a Node; those that are get killed."""
    left = [pid for pid in processes(cluster, "", below=host) if state(pid)]
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return not left


def _nodes_of_slurm(cluster: Cluster, host: str) -> set[str]:
    """Names of nodes whose slurmd runs on a Node: pods have the name of their node as host name."""
    found = set()
    for pid in processes(cluster, "slurmd", below=host):
        with suppress(OSError):
            variables = dict(
                one.split("=", 1) for one in Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in one
            )
            found.add(variables.get("HOSTNAME", ""))
    return found - {""}


def _return(place: Place, values: Mapping[str, Any]) -> None:
    place.cluster.machine(_host(place.cluster, "kubelet", values)).resume("kubelet")


def _replace(place: Place, values: Mapping[str, Any]) -> None:
    nodes.replace(place.cluster)


def _leave(place: Place, values: Mapping[str, Any]) -> None:
    """Nobody comes: the round goes on without it."""


MACHINES: Final[Mapping[str, Fault]] = {
    "API server killed": Fault(_machine_signal(API_SERVER, signal.SIGKILL), weight=3),
    "API server frozen": Fault(_machine_signal(API_SERVER, signal.SIGSTOP), _thaw_machine(API_SERVER), (3, 15)),
    "kubelet stopped": _stopped("kubelet", (5, 25)),
    "DNS gone": _stopped("coredns", (5, 20)),
    # Longer than Kubernetes waits before it takes pods of a Node that is gone for gone.
    NODE_LOST: Fault(_lose, _return, (60, 75), weight=3),
    NODE_REPLACED: Fault(_lose_for_good, _replace, (60, 75), weight=1),
    NODE_GONE: Fault(_lose_for_good, _leave, (60, 75), weight=1),
}


def mend(place: Place) -> None:
    """Let every service run that a fault may have left frozen or stopped."""
    cluster = place.cluster
    master = cluster.machine(CONTROL_PLANE)
    master.send(API_SERVER, signal.SIGCONT)
    master.resume("coredns")
    for name in cluster.node_names():
        if not nodes.is_away(cluster, name):
            cluster.machine(name).resume("kubelet")
    nodes.replace(cluster)
    wait_for("the API server", lambda: cluster.kubectl("get", "--raw=/readyz").strip() == "ok", PATIENCE)
    nodes.forget(cluster)
