"""Files that are copied before a job starts, and after it has ended, as the fields of a SlurmJob.

Only claims are volumes here. Anyone who may write a job need not be allowed to write pods: a path of a Node, a Secret
or an NFS server that the operator's pod mounts would give them what they cannot have otherwise.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from slinky_api.sylabs import slurm
from slinky_api.sylabs.common import Prepare, Results
from slinky_api.v1alpha1.common import ApiModel
from slinky_api.v1alpha1.slurmjob.files import JobPrepare, JobResults
from slinky_operator.jobs.refusal import InvalidJob

_SOURCE: Final = "persistentVolumeClaim"
_INSTEAD: Final = (
    "write persistentVolumeClaim: {claimName: NAME} with a claim of this namespace that has the files: no other volume "
    "is mounted"
)

_VOLUME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""The name of a volume of a pod."""

_Model = TypeVar("_Model", bound=ApiModel)


def prepared(prepare: Prepare | None) -> tuple[JobPrepare, ...]:
    """Translate what is copied before the job starts: all that is in the volume, into a folder with its name.

    Raises
    ------
    InvalidJob
        For a volume that is no claim or has no name, and a path that cannot be written to.
    """
    if prepare is None:
        return ()
    claim = _claim("spec.prepare", prepare.mount, writes=False)
    name = prepare.mount.get("name")
    if not isinstance(name, str) or _VOLUME.fullmatch(name) is None:
        raise InvalidJob(
            "spec.prepare.mount.name",
            "must be lower-case letters, digits and '-', at most 63: the files are copied into the folder of that name"
            " in spec.prepare.to",
        )
    # Read before the name hides what is wrong with it.
    _ = _made(JobPrepare, {"volume": claim, "path": prepare.to}, "spec.prepare.to")
    path = name if prepare.to == "." else posixpath.join(prepare.to, name)
    return (_made(JobPrepare, {"volume": claim, "path": path}, "spec.prepare.to"),)


def is_in_folder(prepare: Prepare | None) -> bool:
    """Whether files are copied to the folder in which the job starts."""
    return prepare is not None and not prepare.to.startswith("/")


def collected(results: Results | slurm.OutputResults | None) -> tuple[JobResults, ...]:
    """Translate what is copied after the job has succeeded.

    Raises
    ------
    InvalidJob
        For a volume that is no claim, and a path that cannot be read.
    """
    if results is None:
        return ()
    claim = _claim("spec.results", results.mount, writes=True)
    path = {} if results.source is None else {"path": results.source}
    wanted = {"volume": claim, **path, "when": "OnSuccess"}
    return (_made(JobResults, wanted, "spec.results.from"),)


def _made(model: type[_Model], body: Mapping[str, Any], field: str) -> _Model:
    try:
        return model.model_validate(body)
    except ValidationError as error:
        raise InvalidJob(field, error.errors()[0]["msg"].removeprefix("Value error, ")) from None


def _claim(field: str, mount: Mapping[str, Any], *, writes: bool) -> Mapping[str, Any]:
    """Read a volume of a pod."""
    unknown = sorted(mount.keys() - {"name", _SOURCE})
    if unknown:
        raise InvalidJob(f"{field}.mount.{unknown[0][:60]}", _INSTEAD)
    at = f"{field}.mount.{_SOURCE}"
    source = mount.get(_SOURCE)
    claim = source.get("claimName") if isinstance(source, Mapping) else None
    if not isinstance(source, Mapping) or not isinstance(claim, str) or not claim:
        raise InvalidJob(at, "must name a claim of this namespace in claimName")
    odd = sorted(source.keys() - {"claimName", "readOnly"})
    if odd:
        raise InvalidJob(f"{at}.{odd[0][:60]}", "is not a field of such a volume")
    if writes and source.get("readOnly"):
        raise InvalidJob(f"{at}.readOnly", "must not be true: results are written there")
    return {_SOURCE: {"claimName": claim}}
