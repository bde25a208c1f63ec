"""Routes from this machine to pods: agents, slurmds and job log servers are asked at the addresses of their pods.

Where a Node's address is on a network that this machine is on (the local Kubernetes, kind and minikube on Linux), the
Node forwards packets to its pods. Elsewhere (Docker Desktop, a Kubernetes of a cloud) there is no such route, and what
needs one waits.
"""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hack.localkube.host.network import Fabric
from hack.machine.progress import say


@dataclass(frozen=True, slots=True)
class Route:
    """The pods of a Node, and the Node's address."""

    pods: str
    gateway: str

    def command(self, verb: str) -> list[str]:
        """Return the command that adds or deletes it."""
        return ["ip", "route", verb, self.pods, "via", self.gateway]


def wanted(nodes: Sequence[Mapping[str, Any]], on_link: Sequence[str]) -> list[Route]:
    """Return the routes to pods of Nodes whose address is on a network of this machine.

    Parameters
    ----------
    nodes
        Node objects.
    on_link
        Networks that this machine has an interface on.
    """
    networks = [ipaddress.ip_network(one) for one in on_link]
    found = []
    for node in nodes:
        pods = node.get("spec", {}).get("podCIDR") or _of_the_local_kubernetes(node["metadata"]["name"])
        addresses = [
            one["address"] for one in node.get("status", {}).get("addresses", ()) if one["type"] == "InternalIP"
        ]
        gateway = next((one for one in addresses if any(ipaddress.ip_address(one) in net for net in networks)), None)
        if pods and gateway:
            found.append(Route(pods, gateway))
    return found


def _of_the_local_kubernetes(name: str) -> str | None:
    """Its Nodes have no podCIDR: their ranges go by their numbers."""
    number = name.removeprefix("node-")
    return str(Fabric.pods(int(number))) if number != name and number.isdecimal() else None


@contextmanager
def routed(nodes: Sequence[Mapping[str, Any]]) -> Iterator[None]:
    """Have routes to pods as long as this lasts; say what is missing where they cannot be made."""
    table = _routes()
    routes = [one for one in wanted(nodes, _on_link(table)) if one.pods not in {entry["dst"] for entry in table}]
    made: list[Route] = []
    if len(wanted(nodes, _on_link(table))) < len(nodes):
        say(
            "  ...  this machine has no route to some pods: only slurmrestd is forwarded, and what the operator asks "
            "agents, slurmds and job log servers waits"
        )
    if routes and os.geteuid() != 0:
        say("  ...  as root, these give a route to pods:")
        for one in routes:
            say(f"         {' '.join(one.command('add'))}")
        routes = []
    try:
        for one in routes:
            made += [one] if subprocess.run(one.command("add"), check=False).returncode == 0 else []
        yield
    finally:
        for one in made:
            # It went with its interface, if the local Kubernetes has ended.
            subprocess.run(one.command("delete"), check=False, stderr=subprocess.DEVNULL)


def _routes() -> list[dict[str, Any]]:
    try:
        run = subprocess.run(["ip", "-json", "-4", "route", "show"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return []  # a Mac has no `ip`
    found: list[dict[str, Any]] = json.loads(run.stdout or "[]")
    return found


def _on_link(table: Sequence[Mapping[str, Any]]) -> list[str]:
    return [entry["dst"] for entry in table if "gateway" not in entry and entry["dst"] != "default"]
