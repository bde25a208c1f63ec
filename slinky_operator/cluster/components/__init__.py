"""The objects of a Cluster, each daemon in its own module: pure functions from a Cluster to bodies.

================  ============================================================================================
module            concern
================  ============================================================================================
`accounting`      the daemons of accounting: slurmdbd, and the MariaDB that the operator runs for it
`component`       daemon of a Cluster, for the controller: its objects, the Secrets it needs
`daemons`         the daemons of a Cluster, in the order in which they are written
`default_images`  which image a daemon has if its Cluster names none
`exporter`        the exporter of a Cluster: a Deployment with one pod, a Service, and a Token of its own
`login_sets`      LoginSets: what the entries of `spec.login` become
`monitoring`      how Prometheus finds metrics of slurmctld and of the exporter: a Service for each alone
`outside`         what an administrator needs for slurmds outside Kubernetes, as texts to copy, in a ConfigMap
`shared`          what several daemons share: objects, and rules for parts of them
`slurmctld`       slurmctld: a StatefulSet with one pod and its state on a claim
`slurmctld_pod`   slurmctld's pod: the template of its StatefulSet, and how it compares with the running pod
`slurmrestd`      slurmrestd: a Deployment without any key, and a Service in front of it
================  ============================================================================================

They have no owner references to the Cluster. `kubectl delete --cascade=foreground` makes the garbage collector
delete what a Cluster owns before its finalizers are handled: slurmctld would be deleted while jobs run. The Cluster's
finalizer deletes them instead, and the label with its uid identifies the owner. Only the exporter, without which jobs
go on, is different.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.identity.pod import SssdImage
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS
from slinky_operator.slurm import naming


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """Images, and the priority of pods, used if a Cluster names none."""

    slurmctld: str
    slurmrestd: str
    agent: str
    """The operator's own."""

    slurmd: str
    """Used in preflights; NodeSets get theirs from the NodeSet controller."""

    pull_policy: str = ""
    sssd: str = ""
    """The sidecar of daemons that resolve users by SSSD."""

    slurmdbd: str = ""
    mariadb: str = ""
    priority_class: str = ""
    """PriorityClass of the daemons' pods; empty for that of the Kubernetes cluster."""

    @property
    def sssd_image(self) -> SssdImage:
        """The same with its pull policy."""
        return SssdImage(self.sssd, self.pull_policy)

    def of(self, daemon: str) -> str:
        """The image of a daemon, by the name of its container."""
        return str(getattr(self, daemon))

    def with_image(self, daemon: str, image: str) -> Images:
        """The same with another image for a daemon."""
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


def owned(cluster: Cluster, about: Object) -> Object:
    """Metadata of an object without which jobs go on: the garbage collector deletes it with the Cluster.

    Parameters
    ----------
    about
        From `metadata`.
    """
    # It blocks no deletion, which would need another right.
    owner = {"apiVersion": CLUSTERS.api_version, "kind": CLUSTERS.kind, "name": cluster.name, "uid": cluster.uid}
    return {**about, "ownerReferences": [owner]}


def locked_down() -> dict[str, Any]:
    """Security context of a container without any privileges."""
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
        Whether the user's group owns mounted volumes.
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
    """Image and pull policy of a container; the policy in the settings is for the images in the settings."""
    if wanted is not None or not pull_policy:
        return {"image": wanted or default}
    return {"image": default, "imagePullPolicy": pull_policy}
