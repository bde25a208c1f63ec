"""From caches to the snapshot of one object of an old kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Final

from slinky_api import labels
from slinky_api.errors import InvalidObjectError
from slinky_api.sylabs import slurm, wlm
from slinky_api.v1alpha1.slurmjob.kind import SlurmJobStatus
from slinky_operator.jobs import tenants
from slinky_operator.kube.cache.store import Indexer, Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Getter
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.namespaces import NamespaceReader
from slinky_operator.reconcile.writes.parts import controller_of, stored_status
from slinky_operator.sylabs import clusters, plan
from slinky_operator.sylabs.kinds import OldKind
from slinky_operator.sylabs.partitions import Clients, PartitionReader
from slinky_operator.sylabs.snapshot import Child, Snapshot

CHILD: Final = "child"
"""Index of the cache of an old kind over `<namespace>/<SlurmJob>`."""

_GENERATION: Final = re.compile(r"[0-9]{1,18}", re.ASCII)

WITHOUT_JOB: Final = "without job"
"""Index of the cache of an old kind: under the empty text, objects whose job has no number yet."""


def indexes_of(kind: OldKind) -> Mapping[str, Indexer]:
    """Indexes that the cache of a kind must have."""

    def by_child(obj: Object) -> list[str]:
        return [f"{obj['metadata'].get('namespace')}/{kind.child(obj['metadata']['name'])}"]

    return {CHILD: by_child, WITHOUT_JOB: _without_job}


def _without_job(obj: Object) -> list[str]:
    return [] if (obj.get("status") or {}).get("jobId") else [""]


class Observer:
    """Builds snapshots.

    Parameters
    ----------
    kind
        The old kind.
    kube
        Reads Namespaces.
    jobs, clusters
        Caches of SlurmJobs and of Clusters.
    trusted
        `<namespace>/<name>` of Clusters that need no consent of a Namespace.
    with_nodes
        The same of Clusters that may have virtual Nodes, or `*`.
    slurm
        Clients of Clusters.
    clock, now
        Monotonic seconds, and the wall clock.
    """

    def __init__(
        self,
        kind: OldKind,
        kube: Getter,
        jobs: Store,
        clusters: ClusterReader,
        trusted: Collection[str],
        with_nodes: Collection[str],
        slurm: Clients,
        *,
        clock: Callable[[], float],
        now: Callable[[], datetime],
    ) -> None:
        self._kind = kind
        self._jobs = jobs
        self._clusters = clusters
        self._now = now
        self._trusted = trusted
        self._with_nodes = with_nodes
        self._namespaces = NamespaceReader(kube, clock)
        self._partitions = PartitionReader(slurm, clock)

    async def observe(self, job: wlm.SlurmJob | wlm.WlmJob | slurm.SlurmJob) -> Snapshot:
        """Read everything that a pass needs.

        Raises
        ------
        KubeError
            A Namespace could not be read, for another reason than a missing right.
        """
        found = Snapshot(self._kind, job, self._now(), self._child(job))
        if not plan.needs_cluster(found):
            return found
        chosen = await self._cluster(job.namespace)
        if isinstance(chosen, clusters.Chosen):
            return Snapshot(
                self._kind, job, found.now, None, await self._partitions.ask(chosen, job.spec.node_selector)
            )
        return Snapshot(self._kind, job, found.now, None, chosen)

    def _child(self, job: wlm.SlurmJob | wlm.WlmJob | slurm.SlurmJob) -> Child | None:
        obj = self._jobs.get(job.namespace, self._kind.child(job.name))
        if obj is None:
            return None
        metadata = obj["metadata"]
        owner = controller_of(obj)
        resource = self._kind.resource
        group = str(owner.get("apiVersion", "")).partition("/")[0]
        is_of_kind = (group, owner.get("kind"), owner.get("name")) == (resource.group, resource.kind, job.name)
        is_ours = is_of_kind and owner.get("uid") == job.uid
        source = (metadata.get("annotations") or {}).get(labels.ANNOTATION_SOURCE_GENERATION) or ""
        return Child(
            is_ours=is_ours,
            of_namesake=is_of_kind and not is_ours,
            generation=int(source) if _GENERATION.fullmatch(source) else None,
            # The controller of SlurmJobs writes another if it cannot be read.
            status=stored_status(SlurmJobStatus, obj),
        )

    async def _cluster(self, namespace: str) -> clusters.Chosen | tenants.Refused:
        every = self._clusters.store.items()
        await self._clusters.prepare(*every)
        found = []
        for obj in every:
            try:
                candidate = clusters.candidate(self._clusters.read(obj), self._with_nodes)
            except InvalidObjectError:
                candidate = clusters.unreadable(obj)
            if candidate is not None:
                found.append(candidate)
        about = await self._namespaces.read(namespace) if found else None
        return clusters.choose(found, namespace, about, self._trusted)
