"""Pod and Secret that make a list of copies. Pure.

The pod runs as the user of the job, and as no other: what he may not read or write, it does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.slurmjob.files import JobVolume
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob
from slinky_operator.kube.objects import Object
from slinky_operator.pod_programs.joblogs.copies import orders
from slinky_operator.slurmjob.pods import bodies
from slinky_operator.slurmjob.pods.bodies import Image

PREPARE: Final = "-prepare"
RESULTS: Final = "-results"
"""Suffixes of the names of pod and Secret."""

CONTAINER: Final = "copy"
FOLDER: Final = "/run/copies"
SHARED_FOLDER: Final = "/shared"
DEADLINE_S: Final = 60_000
"""Seconds after which a pod is ended: eight copies take two hours each at most, with the wait for a server."""

_ORDERS: Final = "orders"
_SHARED: Final = "shared"


def volume_folder(index: int) -> str:
    """Where the pod mounts the volume of an item."""
    return f"/volumes/{index}"


def shared_volume(job: SlurmJob) -> JobVolume | None:
    """The claim that nodes mount too."""
    logs = job.spec.logs
    return job.spec.shared_volume or (logs.volume if logs is not None else None)


def name_of(job: str, suffix: str, attempt: int) -> str:
    """Name of pod and Secret of an attempt."""
    return bodies.name_of(job, f"{suffix}-{attempt + 1}" if attempt else suffix)


def items_of(pod: Object) -> tuple[str, ...]:
    """Names of the items that a pod copies, in the order of its orders."""
    text = (pod["metadata"].get("annotations") or {}).get(labels.ANNOTATION_COPIES) or ""
    return tuple(one for one in str(text)[:1024].split(",") if one)


def has_orders(pod: Object, text: str) -> bool:
    """Whether a pod was made, or changed, with these orders."""
    return (pod["metadata"].get("annotations") or {}).get(labels.ANNOTATION_JOB_FILE) == bodies.digest(text)


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
    about = bodies.metadata(job, name)
    about["annotations"] = {
        labels.ANNOTATION_JOB_FILE: bodies.digest(orders.text(copies)),
        labels.ANNOTATION_COPIES: ",".join(copy.name for copy in copies),
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
    # A new volume belongs to root. What is only read keeps its owners, and so does what all nodes mount: others have
    # files there.
    group = {"fsGroup": gid, "fsGroupChangePolicy": "OnRootMismatch"} if is_own and not is_shared else {}
    program = ["copy", "--orders", f"{FOLDER}/{orders.NAME}"]
    return bodies.pod(
        about,
        {"activeDeadlineSeconds": DEADLINE_S},
        {"runAsUser": uid, "runAsGroup": gid, **group},
        [bodies.container(CONTAINER, image, program, mounts, cpu="1")],
        made,
    )


def _claim(name: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": name}}


def _mounted(
    copies: Sequence[orders.Copy], sources: Sequence[tuple[str, str, dict[str, Any]]]
) -> tuple[list[Object], list[Object]]:
    """Volumes and mounts for sources by name and folder.

    A source is one volume, in however many folders it is mounted: of two volumes with one claim the kubelet mounts one,
    and waits for the other for ever. Only mounts are read-only, since a claim may be read here and written there.
    """
    written = {copy.target.folder for copy in copies}
    made: list[Object] = []
    mounts: list[Object] = []
    for own, folder, source in sources:
        known = next((one["name"] for one in made if {**source, "name": one["name"]} == one), None)
        if known is None:
            made.append({"name": own, **source})
        read_only = {} if folder in written else {"readOnly": True}
        mounts.append({"name": known or own, "mountPath": folder, **read_only})
    return made, mounts
