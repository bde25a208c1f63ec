"""What an administrator needs for slurmds outside Kubernetes, as texts to copy, in a ConfigMap. Pure.

A slurmd outside gets slurm.conf from slurmctld, in which slurmctld has the name that pods know it by: a machine outside
must resolve that name to an address of the Service `<cluster>-controller-outside`, and reach port 6817 there, whatever
other port a Node forwards. `SlurmctldAddr` would not spare it the name (Slurm 24.11 and 26.05).

There is no key among the texts, only the command that shows it to who may read Secrets. Which nodes there are is left
to `spec.nodes`, and when the ConfigMap is written, to the step.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.daemons import metadata
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming

ADDRESS: Final = "ADDRESS"
"""In place of an address that Kubernetes does not show."""


def config_map(cluster: Cluster, service: Object, version: str) -> Object:
    """The ConfigMap.

    Parameters
    ----------
    service
        `slurmctld.outside_service`, as the API server shows it.
    version
        Of Slurm, as slurmctld last reported it; empty if it never has.
    """
    name, host = naming.controller_outside(cluster.name), naming.controller_host(cluster.name, cluster.namespace)
    key = naming.mounted_key(cluster)
    assert key is not None  # noqa: S101 - a managed Cluster has one
    path = f"{naming.CONF_FOLDER}/{key.file}"
    item = key.key.replace(".", "\\.")
    found = address_of(service)
    data = {
        "address": found or ADDRESS,
        "hosts": f"{found if _is_number(found) else ADDRESS} {host}\n",
        "key": (
            f"kubectl -n {cluster.namespace} get secret {key.secret} -o jsonpath='{{.data.{item}}}' | base64 -d"
            f" > {key.file}\n"
        ),
        "slurmd": f'slurmd -D -N "$(hostname -s)" --conf-server {host}:{naming.SLURMCTLD_PORT}\n',
        "steps": _steps(service, found, path),
    }
    if version:
        data["version"] = version
    return {"metadata": metadata(cluster, name, naming.COMPONENT_CONFIG), "data": data}


def address_of(service: Object) -> str:
    """The address at which port 6817 of a Service is reached from outside; empty if Kubernetes shows none.

    That of a load balancer may be a name.
    """
    balancer = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    shown = [str(one.get("ip") or one.get("hostname") or "") for one in balancer]
    shown += [str(one) for one in (service.get("spec") or {}).get("externalIPs") or ()]
    return next(filter(None, shown), "")


def _is_number(address: str) -> bool:
    """Whether an address may be in /etc/hosts: names may not."""
    try:
        _ = ipaddress.ip_address(address)
    except ValueError:
        return False
    return True


def _steps(service: Object, address: str, path: str) -> str:
    """What to do on each machine."""
    port = naming.SLURMCTLD_PORT
    lines = [
        "1. Install the Slurm of `version`, or an older one that it supports; users need the same ids as in the pods.",
        "2. Add the line of `hosts` to /etc/hosts, or the name to your name service.",
    ]
    if not address:
        lines.append(f"   {_unknown(service, port)}")
    elif not _is_number(address):
        lines.append(f"   ADDRESS: what {address} resolves to; that may change, so an alias of it is better.")
    lines += [
        f"3. Store the output of `key` as {path}, owner slurm or root, mode 0400.",
        f"4. Let slurmctld reach port {naming.SLURMD_PORT} of the machine, and the machine port {port} of the address.",
        "5. Start `slurmd`; its node must be in spec.nodes under the name after -N.",
    ]
    return "".join(f"{line}\n" for line in lines)


def _unknown(service: Object, port: int) -> str:
    spec = service.get("spec") or {}
    forwarded = next((one["nodePort"] for one in spec.get("ports") or () if one.get("nodePort")), None)
    if spec.get("type") == "LoadBalancer":
        return "ADDRESS: the load balancer has no address yet."
    if forwarded is None:
        return f"ADDRESS: the Service has no address outside Kubernetes; slurmd calls its port {port}."
    return (
        f"ADDRESS: of any Node, which has slurmctld at port {forwarded}. slurmd always calls port {port}: forward "
        "that, or give the Service externalIPs or type LoadBalancer."
    )
