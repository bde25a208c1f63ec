"""Which Slurms concern a Kubernetes Node: those of slurmd pods by their Clusters, and those whose node it is itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.cache.stubs import is_stub
from slinky_operator.kube.objects import Object
from slinky_operator.nodeset.execute.hosts.proof import Bridged, SlurmOf
from slinky_operator.nodeset.ports import Slurm, SlurmByCluster


def clients(slurm: SlurmByCluster, uid_of: Callable[[Key], str | None]) -> SlurmOf:
    """The Slurm of a Cluster by its namespace and name.

    Parameters
    ----------
    slurm
        The same by uid.
    uid_of
        Uid of a Cluster; None if it does not exist.
    """

    def find(key: Key) -> Slurm | None:
        uid = uid_of(key)
        return slurm.get(uid) if uid is not None else None

    return find


def bridged(
    slurm: SlurmByCluster,
    clusters: Callable[[], Iterable[Object]],
    labels_of: Callable[[str], Mapping[str, str]],
    is_whole: Callable[[], bool] = lambda: True,
) -> Bridged:
    """The Slurms of which Kubernetes Nodes are nodes themselves, or are to be.

    Parameters
    ----------
    slurm
        The Slurm of a Cluster by its uid.
    clusters
        Clusters that may have such nodes, as the API server has them: one that cannot be read as a whole has its pods
        still.
    labels_of
        Labels of a Kubernetes Node by its name.
    is_whole
        Whether these are all Clusters: one for which there is no room may have any Node.
    """

    def find(hosts: Iterable[str]) -> dict[str, list[Slurm | None]]:
        there = list(clusters())
        if not is_whole() or any(map(is_stub, there)):
            return {host: [None] for host in hosts}
        known = [(_chosen(obj), slurm.get(obj["metadata"]["uid"])) for obj in there]
        found: dict[str, list[Slurm | None]] = {}
        for host in hosts:
            own, names = labels_of(host), found.setdefault(host, [])
            for chosen, client in known:
                record = client.nodes.get(host) if client is not None else None
                if (chosen and chosen.items() <= own.items()) or (record is not None and record.is_external):
                    names.append(client)
        return found

    return find


def _chosen(cluster: Object) -> Mapping[str, str]:
    """Labels of the Kubernetes Nodes that the Slurm of a Cluster is to have."""
    bridge = ((cluster.get("spec") or {}).get("jobs") or {}).get("bridge") or {}
    return bridge.get("nodeLabels") or {}
