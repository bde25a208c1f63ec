"""Where the job log server beside a slurmd is reached, by the pod of the node. Pure.

What the server does is in `slinky_operator.pod_programs.joblogs`; whose pod it is, the caller has checked.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurm.pods import pod_ownership


@dataclass(frozen=True, slots=True)
class NoServer:
    """Why a node has no server.

    Parameters
    ----------
    why
        In words.
    may_come
        Whether that may change by itself.
    """

    why: str
    may_come: bool = False


def has_server(pod: Object) -> bool:
    """Whether the job log server is in a slurmd pod."""
    found = (pod.get("spec") or {}).get("initContainers") or ()
    return any(one.get("name") == naming.JOB_LOGS_CONTAINER for one in found)


def server_of(pod: Object | None, node: str, cluster: Cluster) -> str | NoServer:
    """Find the URL of the job log server beside a slurmd, or say why there is none.

    Parameters
    ----------
    pod
        The slurmd pod of a node; None if there is none.
    node
        Name of the node.
    cluster
        Its Cluster.
    """
    if pod is None or not pod_ownership.is_slurmd(pod):
        return NoServer(f"node {node} is not a pod of Cluster {cluster.name}", may_come=True)
    if not has_server(pod):
        return NoServer(f"pod {pod['metadata']['name']} has no job log server: set jobLogs in its NodeSet")
    address = _address(pod)
    if not address:
        return NoServer(f"pod {pod['metadata']['name']} has no address", may_come=True)
    return f"http://{address}:{naming.JOB_LOGS_PORT}"


def _address(pod: Object) -> str:
    """Address of a pod as it stands in a URL; empty if it has none."""
    try:
        found = ipaddress.ip_address(str((pod.get("status") or {}).get("podIP") or ""))
    except ValueError:
        return ""
    return f"[{found}]" if found.version == 6 else str(found)  # noqa: PLR2004 - IPv6
