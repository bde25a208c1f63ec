"""What a daemon of a Cluster is to the controller: its objects, the Secrets it needs, and why it does not start.

Each daemon implements `Component` in a module of its own; `daemons` lists them. The plan, the conditions and the
observed pods walk that list and name no daemon. What only one daemon has (slurmctld's configuration, keys and
replacement) stays with the rooms that are about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from slinky_api.conditions import ClusterCondition
from slinky_api.v1alpha1.cluster import Cluster
from slinky_api.v1alpha1.common import Component as ComponentSpec
from slinky_operator.cluster.components import Images
from slinky_operator.cluster.components.pod_trouble import DaemonTrouble, of_pod
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource
from slinky_operator.reconcile.children import Child
from slinky_operator.slurm import naming


@dataclass(frozen=True, slots=True)
class Materials:
    """What the objects of daemons are made from."""

    snapshot: Snapshot
    images: Images
    slurm_conf: str
    """Text of the slurm.conf that slurmctld has, or is to have."""

    key_notes: Mapping[str, str]
    """What slurmctld's StatefulSet says of its keys."""


class Component(Protocol):
    """One daemon of a Cluster.

    Attributes
    ----------
    daemon
        The daemon as people call it, which is the name of its container and of its field in `Images`: `slurmctld`.
    component
        Value of `app.kubernetes.io/component` on its objects; with the Cluster's name before it, the name of its
        workload.
    resource
        Of its workload: the object that makes its pods.
    template_field
        Where a user writes its pod template, for messages.
    condition
        The condition that says whether it answers; `None` for a daemon without which Slurm serves.
    mounts_keys
        Whether its pods mount keys of the Cluster: its workload is not created before they are there.
    keeps_state
        Whether it leaves state that an older release cannot read.
    """

    daemon: str
    component: str
    resource: Resource
    template_field: str
    condition: ClusterCondition | None = None
    mounts_keys: bool = False
    keeps_state: bool = False

    def spec(self, cluster: Cluster) -> ComponentSpec:
        """What the Cluster says of the daemon: image, resources, template."""
        ...

    def workload(self, materials: Materials) -> Child:
        """Make the object that makes its pods.

        Raises
        ------
        RefusedFragment
            If the user's template cannot be used; the daemon then stays as it is.
        """
        ...

    def services(self, materials: Materials) -> Iterable[Child]:
        """Make its other objects, which are written before any workload."""
        _ = materials
        return ()

    def is_wanted(self, cluster: Cluster) -> bool:
        """Whether the Cluster is to have the daemon; its objects are deleted where it is not."""
        _ = cluster
        return True

    def secrets(self, cluster: Cluster) -> Iterable[str]:
        """Names of the Secrets that its pods mount, or that its objects are made from."""
        _ = cluster
        return ()

    def takes_patches(self, cluster: Cluster) -> bool:
        """Whether it follows the operator's default image to a newer patch release."""
        _ = cluster
        return True

    def troubles(self, snapshot: Snapshot, wall: datetime) -> Iterable[DaemonTrouble]:
        """Why it does not start, at the time of day `wall`; nothing about pods just made."""
        for pod in self.pods(snapshot):
            yield from of_pod(self.daemon, pod, wall)

    def pods(self, snapshot: Snapshot) -> Sequence[Object]:
        """Give its pods; none that is being deleted."""
        return snapshot.daemon_pods.get(self.component, ())

    def key(self, cluster: Cluster) -> tuple[str, str]:
        """Kind and name of its workload, by which it is found among the Cluster's children."""
        return self.resource.kind, naming.daemon(cluster.name, self.component)

    def is_ready(self, snapshot: Snapshot) -> bool:
        """Whether a pod of it is ready."""
        live = snapshot.children.get(self.key(snapshot.cluster)) or {}
        return bool((live.get("status") or {}).get("readyReplicas"))
