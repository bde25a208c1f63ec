"""Files that are copied before a job starts, and after it has ended.

Only claims are volumes here. Whoever may write a job need not be allowed to write pods: a path of a Node, a Secret or
an NFS server that the operator's pod mounts would give them what they cannot have otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from slinky_operator.jobs.faces.site import Site
from slinky_operator.jobs.refusal import InvalidJob

_SOURCE: Final = "persistentVolumeClaim"
_INSTEAD: Final = "write persistentVolumeClaim: a claim of this namespace is the only volume that is mounted"


@dataclass(frozen=True, slots=True)
class Transfer:
    """Files to copy.

    Parameters
    ----------
    claim
        Name of the PersistentVolumeClaim, in the namespace of the object.
    path
        Path on the nodes, relative to the job's folder or absolute; None for the job's standard output.
    """

    claim: str
    path: str | None


def transfer(field: str, mount: Mapping[str, Any], path: str | None, site: Site, *, writes: bool) -> Transfer:
    """Translate a volume and a path.

    Parameters
    ----------
    field
        Path of the field: ``spec.results``.
    mount
        The volume, as in a pod.
    path
        Path on the nodes.
    site
        Whether files are copied at all.
    writes
        Whether the volume is written to.

    Raises
    ------
    InvalidJob
        For a volume that is no claim, and where no files are copied.
    """
    if not site.copies_files:
        raise InvalidJob(field, "no files are copied here: let the script use a folder that its nodes and you can see")
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
        raise InvalidJob(f"{at}.{odd[0][:60]}", "is no field of such a volume")
    if writes and source.get("readOnly"):
        raise InvalidJob(f"{at}.readOnly", "must not be true: results are written there")
    return Transfer(claim, path)
