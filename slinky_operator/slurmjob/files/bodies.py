"""Pod and Secret that make a list of copies. Pure.

The pod runs as the user of the job, and as no other: what he may not read or write, it does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.slurmjob.files import JobVolume
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob
from slinky_operator.joblogs.copies import orders
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import SLURMJOBS
from slinky_operator.slurmjob.logs.bodies import Image, digest

PREPARE: Final = "-prepare"
RESULTS: Final = "-results"
"""Suffixes of the names of pod and Secret."""

CONTAINER: Final = "copy"
FOLDER: Final = "/run/copies"
SHARED_FOLDER: Final = "/shared"
MAX_NAME: Final = 253
DEADLINE_S: Final = 60_000
"""Seconds after which a pod is ended: eight copies take two hours each at most, with the wait for a server."""

_ORDERS: Final = "orders"
_SHARED: Final = "shared"
_DIGEST: Final = 8
"""Characters that tell apart names which were cut."""
_LABEL_VALUE: Final = 63
_RESOURCES: Final = {
    "requests": {"cpu": "10m", "memory": "32Mi"},
    "limits": {"cpu": "1", "memory": "128Mi"},
}


def volume_folder(index: int) -> str:
    """Where the pod mounts the volume of an item."""
    return f"/volumes/{index}"


def shared_volume(job: SlurmJob) -> JobVolume | None:
    """The claim that nodes mount too."""
    logs = job.spec.logs
    return job.spec.shared_volume or (logs.volume if logs is not None else None)


def name_of(job: str, suffix: str, attempt: int) -> str:
    """Name of pod and Secret of an attempt."""
    ending = f"{suffix}-{attempt + 1}" if attempt else suffix
    if len(job) + len(ending) <= MAX_NAME:
        return f"{job}{ending}"
    cut = hashlib.sha256(job.encode()).hexdigest()[:_DIGEST]
    return f"{job[: MAX_NAME - len(ending) - _DIGEST - 1].rstrip('.-')}-{cut}{ending}"


def items_of(pod: Object) -> tuple[str, ...]:
    """Names of the items that a pod copies, in the order of its orders."""
    text = (pod["metadata"].get("annotations") or {}).get(labels.ANNOTATION_COPIES) or ""
    return tuple(one for one in str(text)[:1024].split(",") if one)


def has_orders(pod: Object, text: str) -> bool:
    """Whether a pod was made, or changed, with these orders."""
    return (pod["metadata"].get("annotations") or {}).get(labels.ANNOTATION_JOB_FILE) == digest(text)


def metadata(job: SlurmJob, name: str) -> dict[str, Any]:
    """Metadata of an object that belongs to a SlurmJob."""
    own = {labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY, labels.LABEL_JOB_LOGS: "true"}
    if len(job.name) <= _LABEL_VALUE:
        own[labels.LABEL_SLURMJOB_NAME] = job.name
    owner = {
        "apiVersion": SLURMJOBS.api_version,
        "kind": SLURMJOBS.kind,
        "name": job.name,
        "uid": job.uid,
        "controller": True,
    }
    return {"name": name, "namespace": job.namespace, "labels": own, "ownerReferences": [owner]}


def pod(
    job: SlurmJob,
    name: str,
    copies: Sequence[orders.Copy],
    volumes: Sequence[tuple[int, dict[str, Any]]],
    image: Image,
    uid: int,
    gid: int,
) -> Object:
    """The pod.

    Parameters
    ----------
    name
        Of pod and Secret.
    copies
        What it makes.
    volumes
        Sources of volumes by their folder.
    image
        The operator's own.
    uid, gid
        Of the job's user.
    """
    about = metadata(job, name)
    about["annotations"] = {
        labels.ANNOTATION_JOB_FILE: digest(orders.text(copies)),
        labels.ANNOTATION_COPIES: ",".join(one.name for one in copies),
    }
    shared = shared_volume(job)
    sources = [(f"volume-{index}", volume_folder(index), source) for index, source in volumes]
    if shared is not None and any(SHARED_FOLDER in {one.source.folder, one.target.folder} for one in copies):
        sources.append((_SHARED, SHARED_FOLDER, _claim(shared.claim_name)))
    made, mounts = _mounted(copies, sources)
    is_own = all(one.target.folder not in {"", SHARED_FOLDER} for one in copies)
    is_shared = shared is not None and any(source == _claim(shared.claim_name) for _, _, source in sources)
    made.insert(0, {"name": _ORDERS, "secret": {"secretName": name, "defaultMode": 0o444}})
    mounts.insert(0, {"name": _ORDERS, "mountPath": FOLDER, "readOnly": True})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": about,
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 5,
            "activeDeadlineSeconds": DEADLINE_S,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": uid,
                "runAsGroup": gid,
                # A new volume belongs to root. What is only read keeps its owners, and what all nodes mount, where
                # others have files.
                **({"fsGroup": gid, "fsGroupChangePolicy": "OnRootMismatch"} if is_own and not is_shared else {}),
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [_container(image, mounts)],
            "volumes": made,
        },
    }


def _claim(name: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": name}}


def _mounted(
    copies: Sequence[orders.Copy], sources: Sequence[tuple[str, str, dict[str, Any]]]
) -> tuple[list[Object], list[Object]]:
    """Volumes and mounts for sources by name and folder.

    A source is one volume, in however many folders it is mounted: of two volumes with one claim the kubelet mounts one,
    and waits for the other for ever. Only mounts are read-only, since a claim may be read here and written there.
    """
    written = {one.target.folder for one in copies}
    made: list[Object] = []
    mounts: list[Object] = []
    for own, folder, source in sources:
        known = next((one["name"] for one in made if {**source, "name": one["name"]} == one), None)
        if known is None:
            made.append({"name": own, **source})
        read_only = {} if folder in written else {"readOnly": True}
        mounts.append({"name": known or own, "mountPath": folder, **read_only})
    return made, mounts


def _container(image: Image, mounts: list[Object]) -> dict[str, Any]:
    return {
        "name": CONTAINER,
        "image": image.name,
        **({"imagePullPolicy": image.pull_policy} if image.pull_policy else {}),
        "command": ["python", "-m", "slinky_operator.joblogs", "copy", "--orders", f"{FOLDER}/{orders.NAME}"],
        "resources": {key: dict(value) for key, value in _RESOURCES.items()},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    }
