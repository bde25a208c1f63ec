"""The objects shared by a Cluster's parts: the configuration, and what all its slurmd pods share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.daemons import metadata
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf.render import hash_of

ANNOTATION_HASH: Final = labels.CLUSTER_PREFIX + "config-hash"
"""On the ConfigMap: hash over its files."""

CONFIG_MODE: Final = 0o555
"""Mode of mounted files: slurmctld exits if one of its scripts is not executable, and a volume has one mode for all
files unless each file is named, which would change the pod with every new one."""

ANNOTATION_CHANGE: Final = labels.CLUSTER_PREFIX + "change"
"""On both ConfigMaps: the write that they are from. On that of the last good files, the write that was verified."""

ANNOTATION_REFUSED: Final = labels.CLUSTER_PREFIX + "refused-hash"
"""On the ConfigMap: hash of the configuration that slurmctld rejected; the earlier one has been restored."""

ANNOTATION_REFUSED_WHY: Final = labels.CLUSTER_PREFIX + "refused-why"
ANNOTATION_REFUSED_AT: Final = labels.CLUSTER_PREFIX + "refused-at"

LONGEST_WHY: Final = 2000
"""Maximum characters of a stored reason."""

EVERY_POD: Final = 2_147_483_647
"""For a PodDisruptionBudget: more pods than there can be, so that none may be evicted, however many there are."""


def config_map(cluster: Cluster, files: Mapping[str, str], digest: str, change: str, name: str = "") -> Object:
    """slurm.conf and its other files, under the name that slurmctld mounts or another one.

    Parameters
    ----------
    change
        Identifies this write, also among writes of the same files.
    """
    notes = {ANNOTATION_HASH: digest, ANNOTATION_CHANGE: change}
    about = metadata(cluster, name or naming.config(cluster.name), naming.COMPONENT_CONFIG, notes)
    return {"metadata": about, "data": dict(files)}


def intact(config_map: Object | None) -> Object | None:
    """The same ConfigMap if it exists and holds what the operator has written; `None` otherwise."""
    if config_map is None:
        return None
    digest = (config_map["metadata"].get("annotations") or {}).get(ANNOTATION_HASH)
    return config_map if digest == hash_of(config_map.get("data") or {}) else None


def change_of(config_map: Object) -> str:
    """Which write it is from."""
    return str((config_map["metadata"].get("annotations") or {}).get(ANNOTATION_CHANGE, ""))


def marked_refused(body: Object, digest: str, why: str, at: datetime | None) -> Object:
    """The same ConfigMap with a note on which configuration slurmctld rejected.

    Parameters
    ----------
    at
        When; `None` if it is not to be retried automatically.
    """
    about = body["metadata"]
    note = {
        ANNOTATION_REFUSED: digest,
        ANNOTATION_REFUSED_WHY: why[:LONGEST_WHY],
        ANNOTATION_REFUSED_AT: "" if at is None else at.isoformat(timespec="seconds"),
    }
    return {**body, "metadata": {**about, "annotations": {**about["annotations"], **note}}}


def refused_of(config_map: Object) -> tuple[str, str, datetime | None]:
    """Hash of the configuration that slurmctld rejected, why, and when; empty if there is none."""
    notes = config_map["metadata"].get("annotations") or {}
    try:
        at = datetime.fromisoformat(notes.get(ANNOTATION_REFUSED_AT, ""))
    except ValueError:
        at = None
    return notes.get(ANNOTATION_REFUSED, ""), notes.get(ANNOTATION_REFUSED_WHY, ""), at


def node_service(cluster: Cluster) -> Object:
    """The headless Service of all slurmd pods: a DNS name for each, before it is ready."""
    return {
        "metadata": metadata(cluster, naming.node_service(cluster.name), naming.COMPONENT_CONFIG),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": naming.slurmd_labels(cluster.name),
            "ports": [{"name": "slurmd", "port": naming.SLURMD_PORT, "protocol": "TCP"}],
        },
    }


def disruption_budget(cluster: Cluster) -> Object:
    """The PodDisruptionBudget of all slurmd pods with the label: none of them may be evicted.

    It selects by the Cluster's name: pods left by a former Cluster of this name are in it at once, and the budget left
    by a former Cluster protects pods created for the next one.
    """
    return {
        "metadata": metadata(cluster, naming.disruption_budget(cluster.name), naming.COMPONENT_CONFIG),
        "spec": {
            "minAvailable": EVERY_POD,
            "selector": {"matchLabels": {labels.LABEL_CLUSTER_NAME: cluster.name, labels.LABEL_POD_PROTECT: "true"}},
        },
    }
