"""The step about slurmds outside Kubernetes: what their administrator needs, while slurmctld has a Service for them.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from slinky_operator.cluster import adoption
from slinky_operator.cluster.actions import Action, Remove
from slinky_operator.cluster.parts.external_nodes import manifests as outside
from slinky_operator.cluster.parts.slurmctld.manifests import outside_service
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.writes.due import writes
from slinky_operator.kube.resources import CONFIGMAPS, SERVICES
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming


def tell_outside(state: PassState) -> Iterator[Action]:
    """Write the ConfigMap beside the Service `<cluster>-controller-outside`, and delete it with that."""
    snapshot = state.snapshot
    cluster, name = snapshot.cluster, naming.controller_outside(snapshot.cluster.name)
    service, live = (snapshot.children.get((one.kind, name)) for one in (SERVICES, CONFIGMAPS))
    if outside_service(cluster) is not None:
        if service is not None and not cluster.deleting:
            told = snapshot.slurm.slurm_version if snapshot.slurm is not None else ""
            body = outside.config_map(cluster, service, told or cluster.status.slurm_version or "")
            yield from writes(snapshot, (Child(CONFIGMAPS, body),), state.now)
    elif live is not None and not live["metadata"].get("deletionTimestamp") and adoption.is_ours(live, cluster):
        yield Remove(CONFIGMAPS, name, live["metadata"]["uid"])
