"""Whether updates of slurmd pods wait for the Cluster: slurmd must not be newer than slurmctld. Pure.

slurmctld refuses the registration of a newer slurmd, so an update with such an image would take nodes out of service
one by one. While a Cluster gets other images, and until its Slurm is of the release in the tag of a NodeSet's image,
pods keep their revision, as if the update were paused. A tag that is no version shows nothing; then only the Cluster's
own upgrade is waited for.
"""

from __future__ import annotations

from slinky_api.conditions import ClusterCondition, Reason, find
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.slurm.releases import Release


def wait_of(cluster: Cluster, image: str) -> str:
    """What an update waits for; empty if for nothing.

    Parameters
    ----------
    image
        Of slurmd in the wanted revision.
    """
    if cluster.spec.external or cluster.deleting:
        return ""
    progressing = find(cluster.status.conditions, ClusterCondition.PROGRESSING)
    if progressing is not None and progressing.status == "True" and progressing.reason == Reason.UPGRADING:
        return f"Cluster {cluster.name} is being upgraded: {progressing.message}"
    new, there = Release.of_image(image), Release.read(cluster.status.slurm_version or "")
    if new is None or there is None or new.series <= there.series:
        return ""
    return (
        f"image {image} is of Slurm {new}, and slurmctld, which must not be older than slurmd, of Slurm {there}. "
        f"Change the images of Cluster {cluster.name} first"
    )


def held(nodeset: NodeSet, wait: str) -> NodeSet:
    """The NodeSet with its update paused if it waits."""
    if not wait:
        return nodeset
    spec = nodeset.spec
    rolling = spec.update_strategy.rolling_update.model_copy(update={"paused": True})
    strategy = spec.update_strategy.model_copy(update={"rolling_update": rolling})
    return nodeset.model_copy(update={"spec": spec.model_copy(update={"update_strategy": strategy})})
