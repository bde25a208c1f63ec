"""What triggers autoscaling: a change of the spec of a NodeSet, and of the connection to a Slurm.

Jobs are polled (`controller`): no event of Kubernetes says that one has been submitted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from slinky_operator.kube.cache.store import Key, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NODESETS
from slinky_operator.reconcile.triggers import SlurmByUid, Triggers, cluster_of, is_same, written_by_users


class AutoscalingTriggers:
    """Handlers of caches and of Clusters' Slurm: each returns the keys of Clusters.

    Parameters
    ----------
    slurm
        The Slurm of every Cluster.
    """

    def __init__(self, slurm: SlurmByUid) -> None:
        self._slurm = slurm

    def table(self) -> Triggers:
        """All handlers, by their source."""
        return Triggers(
            objects={CLUSTERS: self.cluster, NODESETS: self.nodeset},
            contact=self.contact,
        )

    def cluster(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of Clusters: their own key when they come and go."""
        obj = new or old
        if obj is not None and (old is None or new is None or old["metadata"]["uid"] != new["metadata"]["uid"]):
            yield key_of(obj)

    def nodeset(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of NodeSets: the Cluster of one with autoscaling, unless only its status has changed."""
        if is_same(old, new, _of_interest):
            return
        for obj in (old, new):
            spec = (obj or {}).get("spec")
            if (
                obj is not None
                and is_scaled(obj)
                and isinstance(spec, dict)
                and isinstance(spec.get("clusterName"), str)
            ):
                yield key_of(obj)[0], spec["clusterName"]

    def contact(self, cluster_uid: str) -> Iterable[Key]:
        """Handler of connections to Slurm."""
        return cluster_of(self._slurm, cluster_uid)


def is_scaled(obj: Object) -> bool:
    """Whether a NodeSet has autoscaling."""
    spec = obj.get("spec")
    return isinstance(spec, dict) and isinstance(spec.get("autoscaling"), dict)


def _of_interest(obj: Object) -> tuple[Any, ...]:
    return written_by_users(obj, "annotations")
