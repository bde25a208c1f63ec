"""Names of Nodes: the machine of one that is lost for good gets another, with a kubelet that Kubernetes does not know.

In clouds a Node that is lost never returns: another machine comes, under another name. Here it is the same machine, and
the kubelet of its next Node has the rights of the administrator, since only `hack.localkube` issues certificates, and
that beforehand. All that is known of it lies in the folder of the machine, and goes with that.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from hack.localkube.cluster import Cluster
from hack.localkube.errors import LocalKubeError
from hack.localkube.host.machine import ServiceSpec
from hack.localkube.programs import debian

NAMED: Final = re.compile(r"node-(\d+)")
"""How Nodes are called that have machines."""

KUBELET: Final = "kubelet"


def name_of(cluster: Cluster, machine: str) -> str:
    """The Node of a machine."""
    file = _name(cluster, machine)
    return file.read_text() if file.exists() else machine


def is_away(cluster: Cluster, machine: str) -> bool:
    """Whether its Node is lost for good, and another has not come yet."""
    return _command(cluster, machine).exists()


def is_on(cluster: Cluster, machine: str, kubelet: int) -> bool:
    """Whether a kubelet is that of a machine."""
    return any(word.startswith(f"--config={cluster.paths.machine(machine)}/") for word in command_of(kubelet))


def command_of(pid: int) -> list[str]:
    """The command line of a process; empty if it has ended."""
    try:
        return [os.fsdecode(word) for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]]
    except OSError:
        return []


def put_away(cluster: Cluster, machine: str, command: Sequence[str]) -> None:
    """Note how the kubelet was started of a Node that is lost for good."""
    _command(cluster, machine).write_text(json.dumps(command))


def replace(cluster: Cluster) -> None:
    """Let another Node come for each that is lost for good."""
    for machine in filter(lambda one: is_away(cluster, one), cluster.node_names()):
        # Its deletion may have met a fault.
        with suppress(LocalKubeError):
            _delete(cluster, name_of(cluster, machine))
        name = following([name_of(cluster, one) for one in cluster.node_names()])
        _name(cluster, machine).write_text(name)
        argv = renamed(json.loads(_command(cluster, machine).read_text()), name, cluster.paths.kubeconfig)
        host = cluster.machine(machine)
        host.run(ServiceSpec(KUBELET, argv, {"PATH": debian.SYSTEM_PATH}, host.folder / "kubelet.log"))
        _command(cluster, machine).unlink()


def forget(cluster: Cluster) -> None:
    """Delete the objects of Nodes that are lost for good, where a fault has kept them."""
    there = {name_of(cluster, one) for one in cluster.node_names()}
    for obj in cluster.kubectl.get("nodes")["items"]:
        name = obj["metadata"]["name"]
        if NAMED.fullmatch(name) and name not in there:
            _delete(cluster, name)


def following(names: Sequence[str]) -> str:
    """A name that no Node has had."""
    return f"node-{max(int(found[1]) for found in map(NAMED.fullmatch, names) if found) + 1}"


def renamed(argv: Sequence[str], name: str, kubeconfig: Path) -> list[str]:
    """The command line of a kubelet, for a Node of another name."""
    other = {"--hostname-override": name, "--kubeconfig": str(kubeconfig)}
    options = (one.partition("=") for one in argv)
    return [f"{option}={other.get(option, value)}" if equals else option for option, equals, value in options]


def _delete(cluster: Cluster, name: str) -> None:
    cluster.kubectl("delete", "node", name, "--ignore-not-found", "--wait=false", timeout=15)


def _name(cluster: Cluster, machine: str) -> Path:
    return cluster.paths.machine(machine) / "node-name"


def _command(cluster: Cluster, machine: str) -> Path:
    return cluster.paths.machine(machine) / "kubelet-to-come.json"
