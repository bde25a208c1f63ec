"""What a controller exports: its name and kind, the caches it reads, and how to build it. `controllers` lists these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.events import Recorder
from slinky_operator.kube.resources import Resource
from slinky_operator.metrics.changes import Changes
from slinky_operator.reconcile.cached.caches import Caches, CacheSpec
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.reconciler import Reconciler
from slinky_operator.reconcile.triggers import Triggers
from slinky_operator.runtime.tasks import Supervisor
from slinky_operator.settings import Settings
from slinky_operator.slurm.connection.clients import ClientMap
from slinky_operator.slurm.connection.pod_reader import PodReader


@dataclass(frozen=True, slots=True)
class Services:
    """What the process provides to every controller."""

    settings: Settings
    kube: KubeClient
    caches: Caches
    clusters: ClusterReader
    """Parsed Clusters, for all controllers but their own."""
    slurm: ClientMap
    """The Slurm of every Cluster."""
    recorder: Recorder
    supervisor: Supervisor
    """Runs background tasks."""
    http: PodReader
    """For calls to daemons that are neither Kubernetes nor Slurm's REST API."""
    changes: Changes
    """Counts what controllers do, for metrics."""


@dataclass(frozen=True, slots=True)
class Built:
    """A controller that is ready to run."""

    reconciler: Reconciler
    triggers: Triggers


@dataclass(frozen=True, slots=True)
class ControllerSpec:
    """One controller, for the process."""

    name: str
    """For log lines and metrics."""
    resource: Resource
    """The kind that it reconciles."""
    caches: Callable[[Settings], Sequence[CacheSpec]]
    """What it reads."""
    build: Callable[[Services], Built]
    """Build it; nothing is started."""
    workers: Callable[[Settings], int]
    """How many objects it processes concurrently."""

    def describe(self, key: Key) -> tuple[str, str | None, str]:
        """Kind, namespace and name of a key, for log lines."""
        return self.resource.kind, key[0], key[1]
