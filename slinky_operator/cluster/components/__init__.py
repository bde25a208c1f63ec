"""The objects a Cluster consists of, each daemon in its own module: pure functions from a Cluster to bodies.

None of them carries an owner reference to the Cluster. `kubectl delete --cascade=foreground` makes the garbage
collector delete what a Cluster owns before its finalizers have had their say: slurmctld would go while jobs run. The
Cluster's finalizer takes them away instead, and the label with its uid says whose they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from slinky_api.v1alpha1.cluster import Cluster
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming


@dataclass(frozen=True, slots=True)
class Images:
    """Images used where a Cluster names none."""

    slurmctld: str
    slurmrestd: str
    agent: str
    """The operator's own."""

    slurmd: str
    """Tried in preflights; NodeSets are served elsewhere."""

    pull_policy: str = ""

    def of(self, daemon: str) -> str:
        """The image of a daemon, by the name of its container."""
        return str(getattr(self, daemon))

    def with_image(self, daemon: str, image: str) -> Images:
        """The same with another image of a daemon."""
        return replace(self, **{daemon: image})


def metadata(cluster: Cluster, name: str, component: str, annotations: dict[str, str] | None = None) -> Object:
    """Name, namespace and labels of an object of this Cluster."""
    body: Object = {
        "name": name,
        "namespace": cluster.namespace,
        "labels": naming.common_labels(cluster, component),
    }
    if annotations:
        body["annotations"] = annotations
    return body


def locked_down() -> dict[str, Any]:
    """Security context of a container that needs nothing."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def pod_security(uid: int, *, volumes: bool = False) -> dict[str, Any]:
    """Security context of a pod that runs as one user, within the restricted Pod Security level.

    Parameters
    ----------
    volumes
        Whether the user's group is to own what is mounted.
    """
    context: dict[str, Any] = {
        "runAsNonRoot": True,
        "runAsUser": uid,
        "runAsGroup": uid,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    if volumes:
        context |= {"fsGroup": uid, "fsGroupChangePolicy": "OnRootMismatch"}
    return context


def image_of(wanted: str | None, default: str, pull_policy: str) -> dict[str, Any]:
    """Image and pull policy of a container; the setting's policy is for the setting's images."""
    if wanted is not None or not pull_policy:
        return {"image": wanted or default}
    return {"image": default, "imagePullPolicy": pull_policy}
