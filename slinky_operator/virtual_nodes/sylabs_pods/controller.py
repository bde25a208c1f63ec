"""One pass over a SlurmJob for the pod that wlm-operator gave its object. Rules are in `model`."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Final

from typing_extensions import override

from slinky_api.conditions import Reason
from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube, Recorder
from slinky_operator.kube.resources import SLURMJOBS, VIRTUAL_PODS
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.reconciler import Postponed, Reconciler
from slinky_operator.reconcile.writes.children import NameTaken, create_or_adopt
from slinky_operator.runtime.controller import Result
from slinky_operator.virtual_nodes.directory import Directory
from slinky_operator.virtual_nodes.sylabs_pods import model
from slinky_operator.virtual_nodes.sylabs_pods.model import Create, Delete

AGAIN_S: Final = 60.0
"""Seconds until a name is looked at again that another pod has: no event tells that it has gone."""

OVERTAKEN_S: Final = 0.5
"""Seconds until the pass after one that found the pod changed."""


class SylabsPodReconciler(Reconciler):
    """Keeps the pods that show SlurmJobs of old objects.

    Parameters
    ----------
    kube, recorder
        The API server, and Events.
    jobs, pods, nodes
        Caches of SlurmJobs, of pods on virtual Nodes, and of these Nodes.
    clusters
        Reads Clusters.
    permitted
        `<namespace>/<name>` of Clusters that may have virtual Nodes, or `*`.
    clock, now
        Monotonic seconds, and the wall clock.
    """

    def __init__(
        self,
        kube: Kube,
        recorder: Recorder,
        jobs: Store,
        pods: Store,
        nodes: Store,
        clusters: ClusterReader,
        permitted: Collection[str],
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(SLURMJOBS, jobs, kube, recorder, clock=clock, now=now)
        self._kube = kube
        self._recorder = recorder
        self._now = now
        self._pods = pods
        self._nodes = nodes
        self._directory = Directory(nodes)
        self._clusters = clusters
        self._permitted = frozenset(permitted)

    @override
    async def tell(self, key: Key, error: BaseException) -> None:
        """Report the error of a pass in an Event: the conditions of a SlurmJob are about its job."""
        obj = self.objects.get(*key)
        if obj is not None:
            _ = self.failures.note(obj, error)

    @override
    async def run_pass(self, key: Key, obj: Object) -> Result:
        name = model.pod_name(obj)
        if not name:
            return Result()
        pod = self._pods.get(key[0], name)
        if pod is not None and not model.is_of(pod, obj):
            return self._taken(obj, name)
        cluster = await self._clusters.named(model.cluster_of(obj))
        if isinstance(cluster, InvalidObjectError):
            # Its own controller says why it cannot be read; the pod stays as it is.
            return Result()
        step = model.decide(obj, pod, self._node(obj, cluster), self._now())
        try:
            match step:
                case Create(body):
                    _ = await create_or_adopt(self._kube, VIRTUAL_PODS, body, lambda found: model.is_of(found, obj))
                case Delete(found):
                    about = found["metadata"]
                    _ = await self._kube.delete(VIRTUAL_PODS, about["name"], about["namespace"], uid=about["uid"])
                case None:
                    pass
        except NameTaken:
            return self._taken(obj, name)
        except (errors.Conflict, errors.NotFound):
            return Postponed(OVERTAKEN_S)
        return Result()

    def _node(self, job: Object, cluster: Cluster | None) -> Object | None:
        """The Node on which the pod of a SlurmJob is to be; None for no pod."""
        key, partition = model.cluster_of(job), model.partition_of(job)
        virtual = cluster.spec.jobs.virtual_nodes if cluster is not None else None
        if cluster is None or virtual is None or not virtual.sylabs_pods or cluster.deleting:
            return None
        if not partition or not {"*", "/".join(key)} & self._permitted:
            return None
        names = (
            node.name
            for node in self._directory.of_cluster(key)
            if (node.partition, node.cluster_uid) == (partition, cluster.uid)
        )
        name = next(names, None)
        return None if name is None else self._nodes.get(None, name)

    def _taken(self, job: Object, name: str) -> Result:
        # It may be the operator's: two of the old kinds use the same names.
        words = f"pod {name} is not this job's: kubectl logs shows the output of this job once that pod has gone"
        self._recorder.warning(job, Reason.NAME_TAKEN, words)
        return Result(AGAIN_S)
