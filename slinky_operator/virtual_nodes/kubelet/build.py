"""The kubelet API from what the process has: settings, caches, connections. Nothing is started here."""

from __future__ import annotations

from collections.abc import Callable

from slinky_api.events import EventReason
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.resources import CLUSTERS, NODESETS, PODS, SLURMJOBS, VIRTUAL_NODES, VIRTUAL_PODS
from slinky_operator.reconcile.cached.job_nodes import Nodes
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.reconcile.spec import Services
from slinky_operator.slurm.connection.job_output import JobOutput
from slinky_operator.virtual_nodes import pod_jobs
from slinky_operator.virtual_nodes.arrival import mark_of
from slinky_operator.virtual_nodes.directory import Directory
from slinky_operator.virtual_nodes.kubelet.answers import Answers
from slinky_operator.virtual_nodes.kubelet.callers import Callers
from slinky_operator.virtual_nodes.kubelet.output import Sources
from slinky_operator.virtual_nodes.kubelet.served_pods import ServedPod
from slinky_operator.virtual_nodes.kubelet.service import KubeletApi, Serving


class CachedPods:
    """Pods on virtual Nodes with the SlurmJobs that they own, from caches.

    Parameters
    ----------
    pods, jobs
        With the indexes of `pod_jobs`.
    nodes
        Which virtual Nodes there are.
    """

    def __init__(self, pods: Store, jobs: Store, nodes: Directory) -> None:
        self._pods, self._jobs, self._nodes = pods, jobs, nodes

    def find(self, namespace: str, name: str) -> ServedPod | None:
        """The pod of a name, if it is on a virtual Node."""
        pod = self._pods.get(namespace, name)
        if pod is None or self._nodes.find(str((pod.get("spec") or {}).get("nodeName") or "")) is None:
            return None
        find = pod_jobs.shown_job if pod_jobs.shown_name(pod) else pod_jobs.job_of
        return ServedPod(pod, find(self._jobs, pod))


def build(
    services: Services, output: JobOutput, leads: Callable[[], bool], ends: Callable[[float], None]
) -> KubeletApi:
    """Build the kubelet API.

    Parameters
    ----------
    services
        What the process provides.
    output
        Reads files of jobs.
    leads
        Whether this replica leads, and its caches are filled.
    ends
        Takes when the certificate ends, in seconds since the epoch.
    """
    settings, store = services.settings, services.caches.store
    pods = CachedPods(store(VIRTUAL_PODS), store(SLURMJOBS), Directory(store(VIRTUAL_NODES)))
    nodes = Nodes(store(NODESETS), store(PODS))
    sources = Sources(services.clusters, nodes, SecretReader(services.kube))
    answers = Answers(pods, Callers(services.kube), sources, output, leads, mark=mark_of(settings.identity))
    serving = Serving(
        port=settings.virtual_nodes_port,
        certificate_folder=settings.virtual_nodes_certificate,
        client_ca=settings.virtual_nodes_client_ca,
        addresses=(settings.virtual_nodes_address,),
    )

    def tell(problem: str) -> None:
        # At the Clusters that have such Nodes: their administrators are the ones to do something.
        for cluster in store(CLUSTERS):
            if ((cluster.get("spec") or {}).get("jobs") or {}).get("virtualNodes"):
                services.recorder.warning(cluster, EventReason.KUBELET_API, problem)

    return KubeletApi(serving, answers, services.kube, tell=tell, ends=ends)
