"""What triggers the Cluster controller: which Clusters an event is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from slinky_api import labels
from slinky_operator.cluster.observe import CHILDREN
from slinky_operator.kube.cache.store import Key, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NODESETS, PODS
from slinky_operator.reconcile.triggers import (
    SlurmByUid,
    Subscribe,
    Triggers,
    cluster_of,
    is_same,
    own_key,
    written_by_users,
)

NODE_EVENT_DELAY: Final = 0.5
"""Seconds for which node events are batched: they change only counts here."""


class ClusterTriggers:
    """Handlers of caches and of Clusters' Slurm: each returns the keys of the Clusters to reconcile.

    Parameters
    ----------
    slurm
        The Slurm of every Cluster.
    """

    def __init__(self, slurm: SlurmByUid) -> None:
        self._slurm = slurm

    def table(self, config_maps: Subscribe) -> Triggers:
        """All handlers, by their source.

        Parameters
        ----------
        config_maps
            Registers a function that is called after changes of ConfigMaps that Clusters name.
        """
        return Triggers(
            objects={
                CLUSTERS: own_key,
                NODESETS: self.nodeset,
                PODS: self.pod,
                **dict.fromkeys(CHILDREN, self.child),
            },
            contact=self.slurm,
            node=lambda cluster_uid, _: self.slurm(cluster_uid),
            node_delay=NODE_EVENT_DELAY,
            others=(config_maps,),
        )

    def slurm(self, cluster_uid: str) -> Iterable[Key]:
        """Change of the connection to a Cluster's Slurm, or event of one of its nodes: that Cluster."""
        return cluster_of(self._slurm, cluster_uid)

    def nodeset(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of NodeSets: the Cluster that one names, or named, unless only its status has changed."""
        if is_same(old, new, _of_interest):
            return
        for obj in (old, new):
            name = ((obj or {}).get("spec") or {}).get("clusterName")
            if obj is not None and isinstance(name, str):
                yield key_of(obj)[0], name

    def child(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of objects that belong to Clusters: the one that their label names, or named."""
        for obj in (old, new):
            name = _labels(obj).get(labels.LABEL_CLUSTER_NAME)
            if obj is not None and name:
                yield key_of(obj)[0], name

    def pod(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of pods of Clusters: daemons like any child; slurmd pods once they end: a deletion waits for it."""
        if new is None or labels.LABEL_CLUSTER_UID not in _labels(new):
            yield from self.child(old, new)


def _labels(obj: Object | None) -> dict[str, str]:
    return ((obj or {}).get("metadata") or {}).get("labels") or {}


def _of_interest(obj: Object) -> tuple[Any, ...]:
    """What slurm.conf and the finalizers depend on: the status changes all the time."""
    return written_by_users(obj, "finalizers")
