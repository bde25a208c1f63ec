"""Long scripts of SlurmJobs are left out of the cache, and read again where they are needed.

A script may have a megabyte, and is read once in the life of a job: when it is submitted. So the cache has a digest in
its place. Translating is the only place that reads a script; what was translated is kept there while there is room.
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
from slinky_operator.kube.resources import SLURMJOBS
from slinky_operator.reconcile.namespaces import Getter

LONG: Final = 1024
"""Characters of a script from which on it is left out."""

MARK: Final = "#!slurm-operator: left out, sha256 "
"""What stands in place of a script, before its digest. Somebody may write this, too: it is then read as it is."""


def prune_job(obj: Object) -> None:
    """Leave the script of a SlurmJob out, in place, if it is long."""
    prune_managed_fields(obj)
    spec = obj.get("spec")
    script = spec.get("script") if isinstance(spec, dict) else None
    if isinstance(spec, dict) and isinstance(script, str) and len(script) > LONG:
        # The spec itself is kopf's, too.
        obj["spec"] = {**spec, "script": _mark(script)}


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
    script = job.spec.script
    if script is None or not script.startswith(MARK):
        return job
    obj = await kube.get(SLURMJOBS, job.name, job.namespace)
    found = await _parsed(obj)
    is_same = found.uid == job.uid and found.metadata.generation == job.metadata.generation
    if not is_same or script not in {found.spec.script, _mark(found.spec.script or "")}:
        target = Target("get", str(SLURMJOBS), job.namespace, job.name)
        raise errors.Conflict(target, "it has changed since it was cached")
    return found


async def _parsed(obj: Object) -> SlurmJob:
    parsed: ParseCache[SlurmJob] = ParseCache(SlurmJob)
    await parsed.prepare(obj)
    return parsed.read(obj)


def _mark(script: str) -> str:
    return MARK + hashlib.sha256(script.encode("utf-8", "surrogatepass")).hexdigest()
