"""What the daemons of a Cluster share: pure functions from a Cluster to bodies, and the protocol of a daemon.

==================  =====================================================================================
module              concern
==================  =====================================================================================
`component`         daemon of a Cluster, for the controller: its objects, the Secrets it needs
`default_images`    which image a daemon has if its Cluster names none
`shared_objects`    the ConfigMap with slurm.conf, and what all slurmd pods of a Cluster share
`service_fragment`  a user's Service settings merged over the generated ones
`claim_templates`   claims of daemons
`agent_container`   the agent as a container beside a daemon
`volumes`           which volumes the agents look at
`availability`      spreading of replicas, and budgets for their eviction
==================  =====================================================================================

The objects of each daemon are made in a part; `parts.daemons` lists the daemons.

The objects have no owner references to the Cluster. `kubectl delete --cascade=foreground` makes the garbage collector
delete what a Cluster owns before its finalizers are handled: slurmctld would be deleted while jobs run. The Cluster's
finalizer deletes them instead, and the label with its uid identifies the owner. Only what jobs do not need is
different (`owned`): the exporter, and the key of job logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.identity.pod import SSSD, SssdImage
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS
from slinky_operator.slurm import naming


@dataclass(frozen=True, slots=True)
class Images:
    """What pods have that no Cluster names: images if it has none, their priority, the domain of names."""

    named: Mapping[str, str]
    """By daemon, as its container is called; slurmd's is used in preflights, as NodeSets get theirs from the NodeSet
    controller, `agent` is the operator's own, and `sssd` the sidecar of daemons that resolve users by SSSD."""

    pull_policy: str = ""
    priority_class: str = ""
    """PriorityClass of the daemons' pods; empty for that of the Kubernetes cluster."""

    domain: str = ""
    """DNS domain of the Kubernetes cluster; empty if it is not known."""

    @property
    def sssd_image(self) -> SssdImage:
        """The same with its pull policy."""
        return SssdImage(self.of(SSSD), self.pull_policy)

    def of(self, daemon: str) -> str:
        """The image of a daemon, by the name of its container; empty if it is not known."""
        return self.named.get(daemon, "")

    def with_image(self, daemon: str, image: str) -> Images:
        """The same with another image for a daemon."""
        return replace(self, named={**self.named, daemon: image})


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
