"""The wires between machines: a bridge in the control plane's machine, one cable to each Node and one to the host.

    host ──(lkXXXXXXXX)── control-plane: bridge `fabric` 10.90.N.1 ──┬── eth0 10.90.N.11 node-1 ── cni0 10.244.1.0/24
                                                                     └── eth0 10.90.N.12 node-2 ── cni0 10.244.2.0/24

On the host there is one network interface and its route, nothing else: no bridge, no firewall rule, no sysctl. Both
vanish with the control plane's machine.
"""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from hack.localkube.errors import LocalKubeError, Unsupported
from hack.localkube.host.machine import Machine

SERVICE_NETWORK = "10.96.0.0/12"
POD_NETWORK = "10.244.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"


@dataclass(frozen=True, slots=True)
class Fabric:
    """The addresses of one cluster.

    Attributes
    ----------
    mark
        Eight characters that no other cluster has; the host's interface is named after them.
    subnet
        A /24 that no route of the host covers.
    """

    mark: str
    subnet: ipaddress.IPv4Network

    @property
    def control_plane(self) -> str:
        """The address of the API server and of the cluster's DNS."""
        return str(self.subnet[1])

    @property
    def host(self) -> str:
        """The host's address on the fabric."""
        return str(self.subnet[254])

    @property
    def outsider(self) -> str:
        """The address of a machine outside Kubernetes; there is one at most."""
        return str(self.subnet[200])

    @property
    def host_interface(self) -> str:
        """The one interface that the host gets; at most 15 characters."""
        return f"lk{self.mark}"

    def node(self, index: int) -> str:
        """Return the address of Node `index`, counted from 1."""
        return str(self.subnet[10 + index])

    @staticmethod
    def pods(index: int) -> ipaddress.IPv4Network:
        """Return the pod range of Node `index`, counted from 1."""
        return ipaddress.IPv4Network(f"10.244.{index}.0/24")


def choose(mark: str) -> Fabric:
    """Return a fabric whose addresses the host does not use.

    Raises
    ------
    LocalKubeError
        All of 10.90.0.0/16 is in use.
    """
    routes = json.loads(_run(["ip", "-json", "-4", "route", "show", "table", "all"]) or "[]")
    used = [
        ipaddress.IPv4Network(route["dst"], strict=False)
        for route in routes
        if route["dst"][0].isdigit() and not route["dst"].startswith("0.")
    ]
    for third in range(256):
        subnet = ipaddress.IPv4Network(f"10.90.{third}.0/24")
        if not any(subnet.overlaps(network) for network in used):
            return Fabric(mark, subnet)
    raise LocalKubeError("no free network in 10.90.0.0/16: end some clusters with `make down`")


def wire_control_plane(fabric: Fabric, machine: Machine) -> None:
    """Make the fabric bridge in the control plane's machine and the host's cable into it."""
    _script(
        machine,
        "ip link set lo up",
        "ip link add fabric type bridge",
        f"ip addr add {fabric.control_plane}/{fabric.subnet.prefixlen} dev fabric",
        "ip link set fabric up",
        "sysctl -qw net.ipv4.ip_forward=1",
    )
    _run(["ip", "link", "delete", fabric.host_interface], may_fail=True)
    _cable(machine, "to-host", fabric.host_interface, os.getpid())
    _run(["ip", "addr", "add", f"{fabric.host}/{fabric.subnet.prefixlen}", "dev", fabric.host_interface])
    _run(["ip", "link", "set", fabric.host_interface, "up"])


def wire_node(fabric: Fabric, control_plane: Machine, machine: Machine, index: int, nodes: int) -> None:
    """Plug a Node into the fabric, with routes to the pods of all other Nodes."""
    _cable(control_plane, f"to-{machine.name}"[:15], "eth0", machine.pid)
    others = [
        f"ip route add {fabric.pods(other)} via {fabric.node(other)}" for other in range(1, nodes + 1) if other != index
    ]
    _script(
        machine,
        "ip link set lo up",
        f"ip addr add {fabric.node(index)}/{fabric.subnet.prefixlen} dev eth0",
        "ip link set eth0 up",
        f"ip route add default via {fabric.control_plane}",
        *others,
        "sysctl -qw net.ipv4.ip_forward=1",
        # Without it, packets from pod to pod of one Node pass by kube-proxy's rules.
        "sysctl -qw net.bridge.bridge-nf-call-iptables=1",
    )
    _script(control_plane, f"ip route add {fabric.pods(index)} via {fabric.node(index)}")


def wire_outsider(fabric: Fabric, control_plane: Machine, name: str, process: int) -> str:
    """Plug the network of a process outside Kubernetes into the fabric, as a machine whose site routes pods.

    Parameters
    ----------
    name
        Of its port on the bridge; at most 12 characters.
    process
        One whose network namespace is its own. The cable goes with that, or with the cluster.

    Returns
    -------
    str
        Its address, which Nodes and pods reach.
    """
    inside = ["nsenter", "--target", str(process), "--net", "--"]
    _cable(control_plane, f"to-{name}", "eth0", process)
    for command in (
        ["ip", "link", "set", "lo", "up"],
        ["ip", "addr", "add", f"{fabric.outsider}/{fabric.subnet.prefixlen}", "dev", "eth0"],
        ["ip", "link", "set", "eth0", "up"],
        ["ip", "route", "add", "default", "via", fabric.control_plane],
    ):
        _run([*inside, *command])
    return fabric.outsider


def _cable(switch: Machine, port: str, plug: str, process: int) -> None:
    """Lay a cable from the switch's bridge to the network of a process."""
    # Made inside the switch's namespace, so that a crash between two commands leaves nothing on the host.
    far_end = ["netns", str(process)]
    _run(switch.in_network("ip", "link", "add", port, "type", "veth", "peer", "name", plug, *far_end))
    _run(switch.in_network("ip", "link", "set", port, "master", "fabric", "up"))


def _script(machine: Machine, *commands: str) -> None:
    """Run fixed commands in a machine's network, as one process."""
    _run(machine.in_network("sh", "-ec", "\n".join(commands)))


def _run(command: Sequence[str], *, may_fail: bool = False) -> str:
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0 and not may_fail:
        raise Unsupported(f"`{' '.join(command)}` failed: {run.stderr.strip() or run.stdout.strip()}")
    return run.stdout
