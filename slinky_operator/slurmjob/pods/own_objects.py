"""Pods and Secrets that belong to one SlurmJob: found by name, and never somebody else's of that name."""

from __future__ import annotations

from typing import Final

from slinky_api.v1alpha1.slurmjob.kind import SlurmJob
from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube
from slinky_operator.kube.resources import SECRETS, Resource
from slinky_operator.slurmjob.pods.bodies import is_owned

REFUSED_S: Final = 60.0
"""Seconds until a pod that the API server has refused is tried again."""

NAME_TAKEN_S: Final = 5.0
"""The same where an object of that name may just be being collected."""


class NotOurs(Exception):
    """Somebody else's object has the name; the text names it."""


async def find(kube: Kube, resource: Resource, job: SlurmJob, name: str) -> Object | None:
    """Read an object of a SlurmJob; None if there is none.

    Raises
    ------
    NotOurs
        Somebody else's object has the name.
    KubeError
        The API server failed.
    """
    try:
        found = await kube.get(resource, name, job.namespace)
    except errors.NotFound:
        return None
    if not is_owned(found, job):
        raise NotOurs(f"{resource.kind} {name} exists and does not belong to this SlurmJob")
    return found


async def change(kube: Kube, resource: Resource, found: Object, patch: Object) -> None:
    """Merge into an object that was found, unless another one has its name by now.

    Raises
    ------
    KubeError
        The API server failed, or has another object of that name.
    """
    about = found["metadata"]
    _ = await kube.merge_patch(resource, about["name"], patch, about["namespace"], uid=about["uid"])


async def delete(kube: Kube, resource: Resource, found: Object) -> None:
    """Delete an object that was found, unless another one has its name by now; no error if it is gone.

    Raises
    ------
    KubeError
        The API server failed, or has another object of that name.
    """
    about = found["metadata"]
    try:
        _ = await kube.delete(resource, about["name"], about["namespace"], uid=about["uid"])
    except errors.NotFound:
        return


def has(found: Object, patch: Object) -> bool:
    """Whether an object has all that a patch would change."""
    return all(
        has(found.get(key) or {}, value) if isinstance(value, dict) else found.get(key) == value
        for key, value in patch.items()
    )


async def put_secret(kube: Kube, job: SlurmJob, secret: Object) -> None:
    """Create the Secret of a pod, or change its content.

    Raises
    ------
    NotOurs
        Somebody else's Secret has the name.
    KubeError
        The API server failed, or has another object of that name.
    """
    found = await find(kube, SECRETS, job, secret["metadata"]["name"])
    if found is None:
        _ = await kube.create(SECRETS, secret)
        return
    patch = {"data": secret["data"]}
    if not has(found, patch):
        await change(kube, SECRETS, found, patch)


def retry_after(error: Exception) -> float:
    """Seconds until what the API server has refused is tried again."""
    # An earlier SlurmJob of the same name may just be being collected.
    return NAME_TAKEN_S if isinstance(error, NotOurs) else REFUSED_S
