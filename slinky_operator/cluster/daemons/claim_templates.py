"""The claim of a daemon that keeps state, in its StatefulSet."""

from __future__ import annotations

from typing import Any

from slinky_api.v1alpha1.common import Persistence


def claim_of(volume: str, persistence: Persistence) -> dict[str, Any]:
    """Fields of a StatefulSet's spec that make a claim for its one pod; nothing deletes that with the StatefulSet.

    Parameters
    ----------
    volume
        Name of the volume in the pod.
    persistence
        The user's settings, with a claim that is to be generated.
    """
    claim: dict[str, Any] = {
        "accessModes": list(persistence.access_modes),
        "resources": {"requests": {"storage": persistence.size}},
    }
    if persistence.storage_class_name is not None:
        claim["storageClassName"] = persistence.storage_class_name
    about: dict[str, Any] = {"name": volume}
    if persistence.labels:
        about["labels"] = dict(persistence.labels)
    if persistence.annotations:
        about["annotations"] = dict(persistence.annotations)
    return {
        "volumeClaimTemplates": [{"metadata": about, "spec": claim}],
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    }


def is_generated(persistence: Persistence) -> bool:
    """Whether a StatefulSet with these settings makes a claim."""
    return persistence.enabled and persistence.existing_claim is None
