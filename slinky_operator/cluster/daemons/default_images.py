"""Which image a daemon has if its Cluster names none. Pure.

The operator's settings name default images. They apply to daemons created from then on: a running one keeps the image
that it was created with, so that an upgrade of the operator, or another default, restarts no slurmctld under jobs and
starts no slurmrestd that is newer than its slurmctld. To move a Cluster to another image, name it in its spec.

A newer patch release of the same series in the same repository (`…:26.05.5` to `…:26.05.6`) is used: for slurmctld
after a trial, as for any other change of its pod, and not if its state is an `emptyDir`, which ends with the pod. A
daemon is never downgraded because a name was removed from the spec or the default was lowered. Versions are read from
tags; if a tag is not a version, nothing is known.

A StatefulSet of slurmctld that is lost, while its pod may run on, is created with the image that it had, also where the
Cluster names another one: that is tried afterwards, in its order among the daemons.

slurmd must not be newer than slurmctld either: the image for NodeSets that name none is kept in the Cluster's status,
where the NodeSet controller reads it.

SSSD beside the daemons keeps its image in the same way; its Cluster names another one in `identity.sssd.image`.

The agent beside slurmctld is the operator's own image. It is updated when slurmctld's pod is replaced for another
reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.common import Component as ComponentSpec
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.daemons.component import Component
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.identity import pod as identity
from slinky_operator.kube.objects import Object, is_ready
from slinky_operator.slurm import naming
from slinky_operator.slurm.pod_templates.shapes import spec_of
from slinky_operator.slurm.releases import TAGGED, is_newer_patch, is_older

ANNOTATION: Final = labels.CLUSTER_PREFIX + "image-from"
"""On the StatefulSet and the Deployment: who has set the image of the daemon."""


class Origin(StrEnum):
    """Values of `ANNOTATION`."""

    DEFAULT = "default"
    SPEC = "spec"


def origin(spec: ComponentSpec, container: str) -> Origin:
    """Who sets the image of a daemon.

    Parameters
    ----------
    spec
        The Cluster's settings for the daemon.
    container
        Name of the daemon's container.
    """
    containers = spec_of(spec.template).get("containers") or ()
    in_template = any(one.get("image") for one in containers if one.get("name") == container)
    return Origin.SPEC if spec.image is not None or in_template else Origin.DEFAULT


def note(spec: ComponentSpec, container: str) -> dict[str, str]:
    """The annotation for a daemon; see `origin`."""
    return {ANNOTATION: str(origin(spec, container))}


def kept(snapshot: Snapshot, defaults: Images, daemons: Iterable[Component]) -> Images:
    """Default images for an existing Cluster.

    Parameters
    ----------
    defaults
        From the settings.
    daemons
        Those that the Cluster needs.
    """
    cluster, status = snapshot.cluster, snapshot.cluster.status
    served = _has_served(cluster)
    images = defaults
    for one in daemons:
        live = snapshot.children.get(one.key(cluster))
        image = _of_daemon(live, one, cluster, defaults.of(one.daemon), served=served)
        if one.daemon == naming.CONTROLLER_CONTAINER:
            image = lost(snapshot) or image
        images = images.with_image(one.daemon, image)
    controller = snapshot.children.get(("StatefulSet", naming.controller(cluster.name)))
    slurmd = _of_slurmd(
        status.slurmd_image, _image(controller, naming.CONTROLLER_CONTAINER), defaults.of(naming.SLURMD)
    )
    sssd = _image(controller, identity.SSSD, "initContainers") or defaults.of(identity.SSSD)
    return images.with_image(naming.SLURMD, slurmd).with_image(identity.SSSD, sssd)


def lost(snapshot: Snapshot) -> str:
    """The image with which a lost StatefulSet of slurmctld is created; empty if there is one, or never was.

    That of the pod that runs on, which may have written slurmctld's state; else that with which it was last up.
    """
    cluster = snapshot.cluster
    if ("StatefulSet", naming.controller(cluster.name)) in snapshot.children or not _has_served(cluster):
        return ""
    last, pod = cluster.status.slurmctld_image, snapshot.pods.controller
    if not last or pod is None or not is_ready(pod):
        return last or ""
    return _image({"spec": {"template": pod}}, naming.CONTROLLER_CONTAINER) or last


def settled(snapshot: Snapshot) -> str | None:
    """The image of slurmctld to keep in the status: that with which it was last up, from the spec or not."""
    live = snapshot.children.get(("StatefulSet", naming.controller(snapshot.cluster.name)))
    is_up = live is not None and _is_up(live)
    return (_image(live, naming.CONTROLLER_CONTAINER) if is_up else "") or snapshot.cluster.status.slurmctld_image


def with_running_agent(snapshot: Snapshot, images: Images) -> Images:
    """The same with the running agent; unchanged if there is none."""
    live = snapshot.children.get(("StatefulSet", naming.controller(snapshot.cluster.name)))
    agent = _image(live, naming.AGENT_CONTAINER)
    return images.with_image(naming.AGENT_CONTAINER, agent) if agent else images


def _of_daemon(live: Object | None, daemon: Component, cluster: Cluster, default: str, *, served: bool) -> str:
    """The default image for one daemon.

    Parameters
    ----------
    served
        Whether the Cluster's Slurm has ever answered: then its state was written by the version that slurmctld ran.
    """
    runs = _image(live, daemon.daemon)
    if live is None or not runs:
        return default
    named_by = (live["metadata"].get("annotations") or {}).get(ANNOTATION)
    if named_by == Origin.DEFAULT or (named_by is None and (served or _is_up(live))):
        # An object created by an older version of the operator does not show who has set its image.
        return default if daemon.takes_patches(cluster) and is_newer_patch(default, runs) else runs
    # A slurmctld that is briefly not ready has run nevertheless; one with a bad image fails its trial before.
    stays = _is_up(live) or (served and daemon.keeps_state)
    return runs if stays and is_older(default, runs) else default


def _of_slurmd(known: str | None, slurmctld: str, default: str) -> str:
    """The default image for slurmd: the recorded one, else none that is newer than slurmctld."""
    place = TAGGED.fullmatch(default)
    if not known and place is not None and is_older(slurmctld, default):
        # What an older version of the operator created, or a former Cluster left, does not show slurmd's image.
        known = f"{place['place']}:{slurmctld.rpartition(':')[2]}"
    return known if known and not is_newer_patch(default, known) else default


def _has_served(cluster: Cluster) -> bool:
    """Whether the Cluster's Slurm has ever answered."""
    config = cluster.status.config
    return bool(cluster.status.slurm_version or (config is not None and config.applied_hash))


def _is_up(live: Object) -> bool:
    """Whether a daemon runs with the image that its object names."""
    status: Mapping[str, Any] = live.get("status") or {}
    updated = status.get("updatedReplicas") in {None, (live.get("spec") or {}).get("replicas")}
    return bool(status.get("readyReplicas")) and not status.get("unavailableReplicas") and updated


def _image(live: Object | None, container: str, kind: str = "containers") -> str:
    containers = [] if live is None else live["spec"]["template"]["spec"].get(kind) or []
    return next((str(one.get("image") or "") for one in containers if one.get("name") == container), "")
