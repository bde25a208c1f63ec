"""The generated part of a slurmd pod, before the user's template is merged over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.spec import Confinement, ContainerJobs, Ssh
from slinky_operator.identity import pod as identity
from slinky_operator.identity.pod import SssdImage
from slinky_operator.nodeset.model import check_tables
from slinky_operator.nodeset.model.pods.pod_facts import SLURMD
from slinky_operator.nodeset.model.pods.pod_names import PodSlot
from slinky_operator.nodeset.pod_spec import job_logs
from slinky_operator.slurm import naming
from slinky_operator.slurm.health_checks import programs as health_checks
from slinky_operator.slurm.pod_templates import confinement, security, ssh_server

GRACE_SECONDS: Final = 30
"""Seconds between SIGTERM and SIGKILL. The operator deletes pods whose nodes are empty; slurmd then ends at once."""

COMPONENT: Final = "worker"
CONF_FOLDER: Final = naming.CONF_FOLDER
KEY_VOLUME: Final = "slurm-key"
RUN_VOLUME: Final = "run"
SPOOL_VOLUME: Final = "slurm-spool"
CHECKS_VOLUME: Final = "health-checks"
CONFIG_VOLUME: Final = "slurm-config"
"""Only in pods whose slurmd has files of its own (`slurm.confinement`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The operator's settings for what a NodeSet does not set."""

    image: str
    image_pull_policy: str = ""
    domain: str = ""
    """DNS domain of the Kubernetes cluster; empty if it is not known."""
    sssd: SssdImage = SssdImage("")  # noqa: RUF009 - frozen
    """The sidecar of Clusters with users from SSSD."""
    agent: str = ""
    """The operator's own image, for what runs beside slurmd."""


def spec(nodeset: NodeSet, cluster: Cluster, defaults: Defaults) -> dict[str, Any]:
    """The pod's spec, without what depends on its slot."""
    container: dict[str, Any] = {
        "name": SLURMD,
        "image": nodeset.spec.image or cluster.status.slurmd_image or defaults.image,
        "ports": [{"name": SLURMD, "containerPort": naming.SLURMD_PORT, "protocol": "TCP"}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        ],
        "securityContext": security.slurmd(),
        # Why it ends is its last output: the NodeSet's conditions quote it.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": SPOOL_VOLUME, "mountPath": naming.SPOOL_FOLDER},
            # An image also built for other daemons may have a /run/slurm owned by the user slurm, which slurmd rejects.
            {"name": RUN_VOLUME, "mountPath": naming.RUN_FOLDER},
        ],
    }
    volumes: list[dict[str, Any]] = [{"name": SPOOL_VOLUME, "emptyDir": {}}, {"name": RUN_VOLUME, "emptyDir": {}}]
    key = naming.mounted_key(cluster)
    if key is not None:
        container["volumeMounts"].append({"name": KEY_VOLUME, "mountPath": CONF_FOLDER, "readOnly": True})
        volumes.append(
            {
                "name": KEY_VOLUME,
                "secret": {
                    "secretName": key.secret,
                    "defaultMode": 0o400,
                    "items": [{"key": key.key, "path": key.file}],
                },
            }
        )
    if nodeset.spec.confinement is Confinement.CONSTRAIN:
        volumes.append(confinement.volume(CONFIG_VOLUME, cluster.name))
        container["volumeMounts"].append(
            {"name": CONFIG_VOLUME, "mountPath": confinement.GIVEN_FOLDER, "readOnly": True}
        )
        container["env"] += confinement.environment(key)
        container["securityContext"] = confined_security(nodeset)
    if nodeset.spec.ssh is not None:
        found, mounts = ssh_server.volumes(*_ssh_secrets(nodeset.spec.ssh))
        volumes += found
        container["volumeMounts"] += mounts
        container["ports"].append({"name": "ssh", "containerPort": nodeset.spec.ssh.port, "protocol": "TCP"})
    if nodeset.spec.health is not None and nodeset.spec.health.checks:
        # It is there before the pod, unless somebody deletes it: slurmd does without.
        source = {"name": check_tables.name(nodeset), "defaultMode": 0o500, "optional": True}
        volumes.append({"name": CHECKS_VOLUME, "configMap": source})
        container["volumeMounts"].append(
            {"name": CHECKS_VOLUME, "mountPath": health_checks.GIVEN_FOLDER, "readOnly": True}
        )
    if nodeset.spec.containers is ContainerJobs.ROOTLESS:
        container["securityContext"] |= security.ROOTLESS_CONTAINERS
    if defaults.image_pull_policy and nodeset.spec.image is None:
        container["imagePullPolicy"] = defaults.image_pull_policy
    if nodeset.spec.resources is not None:
        container["resources"] = nodeset.spec.resources.to_dict()
    made = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "containers": [container],
        "volumes": volumes,
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {labels.LABEL_NODESET_UID: nodeset.uid}},
            }
        ],
    }
    known = identity.on_node(made, cluster, SLURMD, defaults.sssd)
    return job_logs.attached(known, nodeset, cluster, SLURMD, defaults.agent, defaults.image_pull_policy)


def confined_security(nodeset: NodeSet) -> dict[str, Any]:
    """Security context of a slurmd that confines its jobs."""
    return confinement.security_context(ssh_server.CAPABILITIES if nodeset.spec.ssh is not None else ())


def _ssh_secrets(ssh: Ssh) -> tuple[str | None, str | None]:
    """Names of the Secrets with keys of users, and with host keys."""
    users, hosts = ssh.authorized_keys_ref, ssh.host_keys_ref
    return (None if users is None else users.name), (None if hosts is None else hosts.name)


def own_labels(nodeset: NodeSet, cluster: Cluster, revision: str) -> dict[str, str]:
    """The labels that identify the pod's owner, and those that an application has."""
    selector = nodeset.spec.selector
    defaults = naming.common_labels(cluster, COMPONENT)
    own = nodeset.spec.template or {}
    users = {
        **(selector.match_labels if selector is not None else {}),
        **((own.get("metadata") or {}).get("labels") or {}),
    }
    # The user may choose the labels that name the application; those that identify the owner are fixed.
    named = {key: users.get(key, value) for key, value in defaults.items() if key.startswith("app.kubernetes.io/")}
    return {
        **(selector.match_labels if selector is not None else {}),
        **named,
        **reserved_labels(nodeset, cluster),
        labels.LABEL_REVISION: revision,
    }


def reserved_labels(nodeset: NodeSet, cluster: Cluster) -> dict[str, str]:
    """The labels that identify the owner, the same for all pods of a NodeSet: no template may change them."""
    return {
        **naming.slurmd_labels(cluster.name),
        labels.LABEL_CLUSTER_UID: cluster.uid,
        labels.LABEL_NODESET_NAME: nodeset.name,
        labels.LABEL_NODESET_UID: nodeset.uid,
        labels.LABEL_SCALING_MODE: nodeset.mode.value,
        **({labels.LABEL_POD_PROTECT: "true"} if nodeset.spec.workload_disruption_protection else {}),
    }


def labels_of(place: PodSlot) -> dict[str, str]:
    """The labels that identify the pod."""
    return {
        labels.LABEL_POD_NAME: place.pod,
        labels.LABEL_POD_HOSTNAME: place.node,
        **({labels.LABEL_POD_INDEX: str(place.ordinal)} if place.ordinal is not None else {}),
    }
