"""A daemon of a Cluster, for the controller: its objects, the Secrets it needs, and why it does not start.

Each daemon implements `Component` in its own module; `parts.daemons` lists them. The plan and the conditions iterate
over that list and name no daemon. What only one daemon has (slurmctld's configuration, keys and replacement) and the
order of upgrades are in the rooms for these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from slinky_api.conditions import ClusterCondition
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.common import Component as ComponentSpec
from slinky_api.v1alpha1.common import Persistence
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource
from slinky_operator.reconcile.pod_trouble import DaemonTrouble, of_pod
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import Parsed


@dataclass(frozen=True, slots=True)
class Materials:
    """The input for the objects of daemons."""

    snapshot: Snapshot
    images: Images
    conf: Parsed
    """What the slurm.conf says that slurmctld has, or will have."""

    key_notes: Mapping[str, str]
    """The annotations of slurmctld's StatefulSet about its keys."""


class Component(Protocol):
    """One daemon of a Cluster.

    Attributes
    ----------
    daemon
        The daemon's usual name, which is the name of its container and of its field in `Images`: `slurmctld`.
    component
        Value of `app.kubernetes.io/component` on its objects; prefixed with the Cluster's name, the name of its
        workload.
    resource
        Of its workload: the object that creates its pods.
    template_field
        Where a user writes its pod template, for messages.
    condition
        The condition that shows whether it answers; `None` for a daemon without which Slurm works.
    mounts_keys
        Whether its pods mount keys of the Cluster: its workload is not created before these exist.
    has_releases
        Whether its image has a release of Slurm: such daemons get new images one after the other (`upgrade.order`).
    keeps_state
        Whether it leaves state that an older release cannot read.
    state_volume
        Name of the volume with its state, in its pods and in its StatefulSet; empty without `persistence`.
    """

    daemon: str
    component: str
    resource: Resource
    template_field: str
    condition: ClusterCondition | None = None
    mounts_keys: bool = False
    has_releases: bool = True
    keeps_state: bool = False
    state_volume: str = ""

    def spec(self, cluster: Cluster) -> ComponentSpec:
        """The Cluster's settings for the daemon: image, resources, template."""
        ...

    def persistence(self, cluster: Cluster) -> Persistence | None:
        """The Cluster's settings for the volume with its state; `None` if it keeps none."""
        _ = cluster
        return None

    def with_persistence(self, cluster: Cluster, persistence: Persistence) -> Cluster:
        """The Cluster with other settings for that volume."""
        _ = persistence
        return cluster

    @property
    def persistence_field(self) -> str:
        """Where a user writes them, for messages."""
        return self.template_field.removesuffix("template") + "persistence"

    def claim_name(self, cluster: Cluster) -> str:
        """The claim that its StatefulSet makes for that volume."""
        return f"{self.state_volume}-{naming.daemon(cluster.name, self.component)}-0"

    def workload(self, materials: Materials) -> Child:
        """Build the object that creates its pods.

        Raises
        ------
        RefusedFragment
            The user's template cannot be used; the daemon then stays unchanged.
        """
        ...

    def services(self, materials: Materials) -> Iterable[Child]:
        """Build its other objects, which are written before any workload."""
        _ = materials
        return ()

    def is_wanted(self, cluster: Cluster) -> bool:
        """Whether the Cluster needs the daemon; if not, its objects are deleted."""
        _ = cluster
        return True

    def secrets(self, cluster: Cluster) -> Iterable[str]:
        """Names of the Secrets that its pods mount, or that its objects depend on."""
        _ = cluster
        return ()

    def is_prepared(self, snapshot: Snapshot) -> bool:
        """Whether what its pods start with is there; until then its workload is neither created nor changed."""
        _ = snapshot
        return True

    def takes_patches(self, cluster: Cluster) -> bool:
        """Whether it follows the operator's default image to a newer patch release."""
        _ = cluster
        return True

    def troubles(self, snapshot: Snapshot, wall: datetime) -> Iterable[DaemonTrouble]:
        """Why it does not start, at the time of day `wall`; nothing about pods just created."""
        for pod in self.pods(snapshot):
            yield from of_pod(self.daemon, pod, wall)

    def pods(self, snapshot: Snapshot) -> Sequence[Object]:
        """Return its pods; none that is being deleted."""
        return snapshot.pods.daemons.get(self.component, ())

    def key(self, cluster: Cluster) -> tuple[str, str]:
        """Kind and name of its workload, its key among the Cluster's children."""
        return self.resource.kind, naming.daemon(cluster.name, self.component)

    def is_ready(self, snapshot: Snapshot) -> bool:
        """Whether a pod of it is ready."""
        live = snapshot.children.get(self.key(snapshot.cluster)) or {}
        return bool((live.get("status") or {}).get("readyReplicas"))
