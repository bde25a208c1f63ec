"""Submissions of several components, and allocations, from the wishes about single jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurm_client import errors
from slurm_client.encode.jobs import EXTERNAL, is_external, submission
from slurm_client.models.jobspec import JobSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

_FEWEST = 2


def components(specs: Sequence[JobSpec]) -> list[dict[str, Any]]:
    """
    Write the components of a heterogeneous job, which is a batch job, or all of whose components are external.

    Raises
    ------
    InvalidArgument
        For fewer than two, for a script that is missing in the first or given in another, for a script or an array of
        an external job, and for external components beside others.
    """
    if len(specs) < _FEWEST:
        raise _refused("specs", f"has {len(specs)} components, and a heterogeneous job needs two", "submit_het_job")
    external = [is_external(spec) for spec in specs]
    if any(external) and not all(external):
        index = external.index(False)
        raise _refused(f"specs[{index}].flags", f"has no {EXTERNAL}, which other components have", "submit_het_job")
    if external[0]:
        return [dict(submission(spec, "submit_het_job", f"specs[{n}].")["job"]) for n, spec in enumerate(specs)]
    for index, spec in enumerate(specs):
        if (spec.script is None) != bool(index):
            wrong = "has a script, which only the first component may" if index else "has no script"
            raise _refused(f"specs[{index}].script", wrong, "submit_het_job")
    written = [submission(spec) for spec in specs]
    first = {**written[0]["job"], "script": written[0]["script"]}
    return [first, *(dict(each["job"]) for each in written[1:])]


def allocation(spec: JobSpec | Sequence[JobSpec], *, immediate: bool) -> dict[str, Any]:
    """
    Write an allocation, of one job or of the components of a heterogeneous one.

    Raises
    ------
    InvalidArgument
        For what an allocation has not: a script, an array; and for a heterogeneous one that is to be immediate.
    """
    specs = [spec] if isinstance(spec, JobSpec) else list(spec)
    if not isinstance(spec, JobSpec):
        if len(specs) < _FEWEST:
            raise _refused("spec", f"has {len(specs)} components, and a heterogeneous job needs two", "allocate_job")
        if immediate:
            raise _refused("immediate", "is True, and a heterogeneous job never starts at once", "allocate_job")
    for index, each in enumerate(specs):
        where = f"spec[{index}]" if len(specs) > 1 else "spec"
        for field in ("script", "array"):
            if getattr(each, field) is not None:
                raise _refused(f"{where}.{field}", "is set, and an allocation has none", "allocate_job")
    written = [dict(submission(each)["job"]) for each in specs]
    if len(written) > 1:
        return {"hetjob": written}
    return {"job": {**written[0], **({"immediate": True} if immediate else {})}}


def _refused(field: str, wrong: str, call: str) -> errors.InvalidArgument:
    return errors.InvalidArgument(f"{call}: {field} {wrong}; nothing was sent", field=field)
