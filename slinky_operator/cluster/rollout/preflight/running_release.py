"""Which release of Slurm slurmctld runs, and whether its state may be given to another one. Pure.

Tags of images prove nothing. The release of a new image is what its own `slurmctld -V` says in the rehearsal; it is
noted on slurmctld's StatefulSet in the same write that brings the image. Before the first rehearsal, slurmrestd's
release is used: it came with the same slurmctld.
"""

from __future__ import annotations

from typing import Final

from slinky_api import labels
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.slurmctld import pod as slurmctld_pod
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming
from slinky_operator.slurm.releases import Release, problem_of_step

ANNOTATION: Final = labels.CLUSTER_PREFIX + "slurm-release"
"""On slurmctld's StatefulSet: what `slurmctld -V` of its image said when it was tried."""

UNTRIED: Final = "untried"
"""The same of an image that came without a trial: to a slurmctld that did not run, or with a StatefulSet that was lost
and is made again with the image of a pod that nobody has seen up before.

slurmrestd's release says nothing of it: slurmrestd may still have the image before.
"""


def running(snapshot: Snapshot) -> Release | None:
    """The release that slurmctld runs; `None` if nothing is known."""
    live = snapshot.children.get(("StatefulSet", naming.controller(snapshot.cluster.name)))
    if _noted(live) == UNTRIED:
        return None
    noted = Release.read(_noted(live))
    slurm = snapshot.slurm
    shown = slurm.slurm_version if slurm is not None else ""
    return noted or Release.read(shown or snapshot.cluster.status.slurm_version or "")


def refused(snapshot: Snapshot, tried: str) -> str:
    """Why slurmctld must not be replaced by the one that was tried; empty if it may.

    Parameters
    ----------
    tried
        What its `slurmctld -V` said.
    """
    old, new = running(snapshot), Release.read(tried)
    return "" if old is None or new is None else problem_of_step(old, new)


def noted(child: Child, live: Object | None, tried: str, *, is_untold: bool = False) -> Child:
    """slurmctld's StatefulSet with the release of its image.

    Parameters
    ----------
    live
        The StatefulSet as it is; its note is kept while its image is.
    tried
        The release that was tried for this write; empty if none was.
    is_untold
        Whether there is no StatefulSet, and a slurmctld of this Cluster has run, but maybe not with this image.
    """
    is_untried = is_untold if live is None else _another_image(child.body, live)
    release = tried or (UNTRIED if is_untried else _noted(live))
    if not release:
        return child
    metadata = child.body["metadata"]
    annotations = {**(metadata.get("annotations") or {}), ANNOTATION: release}
    return Child(child.resource, {**child.body, "metadata": {**metadata, "annotations": annotations}})


def _noted(live: Object | None) -> str:
    return "" if live is None else str((live["metadata"].get("annotations") or {}).get(ANNOTATION) or "")


def _another_image(wanted: Object, live: Object) -> bool:
    return slurmctld_pod.image(wanted["spec"]["template"]) != slurmctld_pod.image(live["spec"]["template"])
