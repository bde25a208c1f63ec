"""Long scripts of jobs are left out of the cache, and read again where they are needed.

A script may have a megabyte, and is read once in the life of a job: when it is submitted, or when the SlurmJob of an
object of an old kind is made. So the cache has a digest in its place. Translating is the only place that reads a
script; of SlurmJobs, what was translated is kept there while there is room.
"""

from __future__ import annotations

import hashlib
from typing import Final

from slinky_api.v1alpha1.slurmjob.kind import SlurmJob
from slinky_operator.kube import errors
from slinky_operator.kube.cache.informer import prune_managed_fields
from slinky_operator.kube.cache.parse_cache import ParseCache
from slinky_operator.kube.errors import Target
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Getter
from slinky_operator.kube.resources import SLURMJOBS, Resource

LONG: Final = 1024
"""Characters of a script from which on it is left out."""

MARK: Final = "#!slurm-operator: left out, sha256 "
"""What stands in place of a script, before its digest. Somebody may write this, too: it is then read as it is."""


def prune_job(obj: Object) -> None:
    """Leave the script of a SlurmJob out, in place, if it is long."""
    _leave_out(obj, "script")


def prune_old_job(obj: Object) -> None:
    """Leave the script of an object of an old kind out, in place, if it is long."""
    _leave_out(obj, "batch")


async def whole(kube: Getter, job: SlurmJob) -> SlurmJob:
    """A SlurmJob with its script.

    Raises
    ------
    Conflict
        It is not the one in the cache any more.
    KubeError
        It cannot be read.
    InvalidObjectError
        It cannot be parsed.
    """
    if not is_left_out(job.spec.script):
        return job
    obj = await read_again(
        kube, SLURMJOBS, "script", job.spec.script or "", job.namespace, job.name, job.uid, job.metadata.generation
    )
    parsed: ParseCache[SlurmJob] = ParseCache(SlurmJob)
    await parsed.prepare(obj)
    return parsed.read(obj)


def is_left_out(script: str | None) -> bool:
    """Whether the cache has a digest in place of a script."""
    return script is not None and script.startswith(MARK)


async def read_again(
    kube: Getter, resource: Resource, field: str, known: str, namespace: str, name: str, uid: str, generation: int
) -> Object:
    """An object as the API server has it, with the script that was left out of the cache.

    Parameters
    ----------
    field
        Of the spec, with the script.
    known
        What the cache has there.

    Raises
    ------
    Conflict
        It is not the one in the cache any more.
    KubeError
        It cannot be read.
    """
    obj = await kube.get(resource, name, namespace)
    metadata, spec = obj["metadata"], obj.get("spec")
    script = spec.get(field) if isinstance(spec, dict) else None
    is_same = metadata.get("uid") == uid and metadata.get("generation", 0) == generation
    if not is_same or not isinstance(script, str) or known not in {script, _mark(script)}:
        raise errors.Conflict(Target("get", str(resource), namespace, name), "it has changed since it was cached")
    return obj


def _leave_out(obj: Object, field: str) -> None:
    prune_managed_fields(obj)
    spec = obj.get("spec")
    script = spec.get(field) if isinstance(spec, dict) else None
    if isinstance(spec, dict) and isinstance(script, str) and len(script) > LONG:
        # The spec itself is kopf's, too.
        obj["spec"] = {**spec, field: _mark(script)}


def _mark(script: str) -> str:
    return MARK + hashlib.sha256(script.encode("utf-8", "surrogatepass")).hexdigest()
