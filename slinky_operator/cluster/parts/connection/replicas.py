"""The slurmrestds that the operator calls: the pods themselves, and not the Service in front of them. Pure.

Behind a Service nobody knows which pod has a connection, so that a call cannot be sent to another one if a pod hangs.
How a call finds a pod that answers is in `slinky_operator.slurm.connection.replicas`.
"""

from __future__ import annotations

from slinky_operator.cluster.observe import Snapshot
from slinky_operator.kube.objects import Object, is_ready
from slinky_operator.slurm import naming


def replicas(snapshot: Snapshot) -> tuple[str, ...]:
    """URLs of the slurmrestds of a managed Cluster; none if no pod runs, or slurmrestd is external.

    Those that are ready, if there are any: a slurmctld that is silent makes all of them unready, since their threads
    wait for it, and they must still be asked.
    """
    if snapshot.cluster.spec.external:
        return ()
    running = [pod for pod in snapshot.pods.daemons.get(naming.COMPONENT_RESTAPI, ()) if _address(pod)]
    ready = [pod for pod in running if is_ready(pod)]
    urls = (_url(_address(pod)) for pod in sorted(ready or running, key=lambda pod: str(pod["metadata"]["name"])))
    return tuple(dict.fromkeys(urls))


def _address(pod: Object) -> str:
    """The address of a pod that runs; that of one that has ended may be another pod's by now."""
    status = pod.get("status") or {}
    return str(status.get("podIP") or "") if status.get("phase") == "Running" else ""


def _url(address: str) -> str:
    return f"http://{f'[{address}]' if ':' in address else address}:{naming.SLURMRESTD_PORT}"
