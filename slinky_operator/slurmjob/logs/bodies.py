"""Pod and Secret that show the output of a SlurmJob. Pure."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob
from slinky_operator.joblogs import job_file
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import SLURMJOBS

NOBODY: Final = 65534
"""Uid and gid of a follower that reads from a server."""

SUFFIX: Final = "-logs"
MAX_NAME: Final = 253
_DIGEST: Final = 8
"""Characters that tell apart names which were cut."""

SELECTOR: Final = f"{labels.LABEL_JOB_LOGS}=true"
"""Label selector of the pods."""

STREAMS: Final = ("stdout", "stderr")
FOLDER: Final = "/run/job"
_FILE_VOLUME: Final = "job"
_CLAIM_VOLUME: Final = "output"
_RESOURCES: Final = {
    "requests": {"cpu": "10m", "memory": "32Mi"},
    "limits": {"cpu": "500m", "memory": "128Mi"},
}
_LABEL_VALUE: Final = 63


@dataclass(frozen=True, slots=True)
class Image:
    """The operator's own image."""

    name: str
    pull_policy: str = ""


def name_of(job: str) -> str:
    """Name of pod and Secret of a SlurmJob."""
    if len(job) + len(SUFFIX) <= MAX_NAME:
        return f"{job}{SUFFIX}"
    digest = hashlib.sha256(job.encode()).hexdigest()[:_DIGEST]
    return f"{job[: MAX_NAME - len(SUFFIX) - _DIGEST - 1].rstrip('.-')}-{digest}{SUFFIX}"


def is_ours(found: Object, job: SlurmJob) -> bool:
    """Whether an object is of this very SlurmJob."""
    return job.uid in owners(found)


def owners(found: Object) -> frozenset[str]:
    """Uids of an object's owners."""
    return frozenset(str(one.get("uid")) for one in found["metadata"].get("ownerReferences") or ())


def prune_pod(pod: Object) -> None:
    """Reduce a pod, in place, to what its end and its loss are noticed by."""
    about = pod["metadata"]
    pod["metadata"] = {
        key: about[key] for key in ("name", "namespace", "uid", "resourceVersion", "ownerReferences") if key in about
    }
    pod["status"] = {"phase": (pod.get("status") or {}).get("phase")}
    _ = pod.pop("spec", None)


def digest(text: str) -> str:
    """Tells two job files apart, without disclosing either."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def data(text: str) -> dict[str, str]:
    """Content of the Secret."""
    return {job_file.NAME: base64.b64encode(text.encode()).decode()}


def secret(job: SlurmJob, text: str) -> Object:
    """The Secret with the job's file."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(job),
        "type": "Opaque",
        "data": data(text),
    }


def pod(job: SlurmJob, text: str, image: Image, uid: int | None, gid: int | None) -> Object:
    """The pod, with a container for each stream.

    Parameters
    ----------
    text
        The job's file.
    uid, gid
        Of the job, from Slurm's record: as them, and as no other, a claim is read.
    """
    about = _metadata(job)
    about["annotations"] = {labels.ANNOTATION_JOB_FILE: digest(text)}
    volume = job.spec.logs.volume if job.spec.logs is not None else None
    user, group = (uid or NOBODY, gid or NOBODY) if volume is not None else (NOBODY,) * 2
    volumes: list[Object] = [
        {"name": _FILE_VOLUME, "secret": {"secretName": name_of(job.name), "defaultMode": 0o444}},
    ]
    mounts: list[Object] = [{"name": _FILE_VOLUME, "mountPath": FOLDER, "readOnly": True}]
    if volume is not None:
        claim = {"claimName": volume.claim_name, "readOnly": True}
        volumes.append({"name": _CLAIM_VOLUME, "persistentVolumeClaim": claim})
        mounts.append({"name": _CLAIM_VOLUME, "mountPath": volume.mount_path, "readOnly": True})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": about,
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 5,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": user,
                "runAsGroup": group,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [_container(stream, image, mounts) for stream in STREAMS],
            "volumes": volumes,
        },
    }


def _container(stream: str, image: Image, mounts: list[Object]) -> dict[str, Any]:
    arguments = ["--job", f"{FOLDER}/{job_file.NAME}", "--stream", stream]
    return {
        "name": stream,
        "image": image.name,
        **({"imagePullPolicy": image.pull_policy} if image.pull_policy else {}),
        "command": ["python", "-m", "slinky_operator.joblogs", "follow", *arguments],
        "resources": {key: dict(value) for key, value in _RESOURCES.items()},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [dict(one) for one in mounts],
    }


def _metadata(job: SlurmJob) -> dict[str, Any]:
    own = {labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY, labels.LABEL_JOB_LOGS: "true"}
    if len(job.name) <= _LABEL_VALUE:
        own[labels.LABEL_SLURMJOB_NAME] = job.name
    owner = {
        "apiVersion": f"{SLURMJOBS.group}/{SLURMJOBS.version}",
        "kind": SLURMJOBS.kind,
        "name": job.name,
        "uid": job.uid,
        "controller": True,
    }
    return {
        "name": name_of(job.name),
        "namespace": job.namespace,
        "labels": own,
        "ownerReferences": [owner],
    }
