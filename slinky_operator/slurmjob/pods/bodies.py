"""What the pods of a SlurmJob and their Secrets have in common: names, owners, and a container without rights. Pure."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import SLURMJOBS
from slinky_operator.reconcile.writes.parts import owner_reference

SELECTOR: Final = f"{labels.LABEL_JOB_LOGS}=true"
"""Label selector of the pods."""

MAX_NAME: Final = 253
_DIGEST: Final = 8
"""Characters that tell apart names which were cut."""
_LABEL_VALUE: Final = 63


@dataclass(frozen=True, slots=True)
class Image:
    """The operator's own image."""

    name: str
    pull_policy: str = ""


def name_of(job: str, suffix: str) -> str:
    """Name of a pod and its Secret: that of the SlurmJob, cut where it is too long, with a suffix."""
    if len(job) + len(suffix) <= MAX_NAME:
        return f"{job}{suffix}"
    cut = hashlib.sha256(job.encode()).hexdigest()[:_DIGEST]
    return f"{job[: MAX_NAME - len(suffix) - _DIGEST - 1].rstrip('.-')}-{cut}{suffix}"


def is_owned(obj: Object, job: SlurmJob) -> bool:
    """Whether an object belongs to this very SlurmJob."""
    return job.uid in owners(obj)


def owners(obj: Object) -> frozenset[str]:
    """Uids of an object's owners."""
    return frozenset(str(owner.get("uid")) for owner in obj["metadata"].get("ownerReferences") or ())


def prune_pod(pod: Object) -> None:
    """Reduce a pod, in place, to what its end and its loss are noticed by."""
    about = pod["metadata"]
    pod["metadata"] = {
        key: about[key] for key in ("name", "namespace", "uid", "resourceVersion", "ownerReferences") if key in about
    }
    pod["status"] = {"phase": (pod.get("status") or {}).get("phase")}
    _ = pod.pop("spec", None)


def digest(text: str) -> str:
    """Tells two texts of Secrets apart, without disclosing either."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def mark(text: str) -> dict[str, Any]:
    """Metadata by which a pod names the text of its Secret; its change makes the kubelet read the Secret."""
    return {"metadata": {"annotations": {labels.ANNOTATION_JOB_FILE: digest(text)}}}


def metadata(job: SlurmJob, name: str) -> dict[str, Any]:
    """Metadata of an object that belongs to a SlurmJob."""
    own = {labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY, labels.LABEL_JOB_LOGS: "true"}
    if len(job.name) <= _LABEL_VALUE:
        own[labels.LABEL_SLURMJOB_NAME] = job.name
    about = {"name": name, "namespace": job.namespace, "labels": own}
    return {**about, "ownerReferences": [owner_reference(SLURMJOBS, job)]}


def data(key: str, text: str) -> dict[str, str]:
    """Content of a Secret with one text."""
    return {key: base64.b64encode(text.encode()).decode()}


def secret(job: SlurmJob, name: str, key: str, text: str) -> Object:
    """The Secret of a pod."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(job, name),
        "type": "Opaque",
        "data": data(key, text),
    }


def pod(
    about: dict[str, Any],
    spec: dict[str, Any],
    security: dict[str, Any],
    containers: Sequence[Object],
    volumes: Sequence[Object],
) -> Object:
    """A pod without rights that runs once.

    Parameters
    ----------
    about
        Its metadata.
    spec
        What only pods of this kind have.
    security
        Of its security context: as whom it runs.
    containers, volumes
        What runs in it, and what that mounts.
    """
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": about,
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 5,
            **spec,
            "securityContext": {"runAsNonRoot": True, **security, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": list(containers),
            "volumes": list(volumes),
        },
    }


def container(name: str, image: Image, arguments: Sequence[str], mounts: Sequence[Object], cpu: str) -> Object:
    """A container without rights that runs a program of the operator's image.

    Parameters
    ----------
    arguments
        Of `python -m slinky_operator.joblogs`.
    cpu
        Its limit.
    """
    return {
        "name": name,
        "image": image.name,
        **({"imagePullPolicy": image.pull_policy} if image.pull_policy else {}),
        "command": ["python", "-m", "slinky_operator.joblogs", *arguments],
        "resources": {
            "requests": {"cpu": "10m", "memory": "32Mi"},
            "limits": {"cpu": cpu, "memory": "128Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [dict(mount) for mount in mounts],
    }
