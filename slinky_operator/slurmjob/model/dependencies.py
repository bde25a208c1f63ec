"""Other SlurmJobs that one waits for: their numbers in Slurm's notation, and loops. Pure.

A job is submitted once all of those that it waits for are in Slurm: only then they have numbers. One that may fail and
be submitted again (`spec.backoffLimit`) gets another number then, so its end is waited for here, until its last
submission. What Slurm has forgotten by then counts by what its object says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from slinky_api.conditions import Reason, SlurmJobCondition
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import cut

MOST_LOOKED_AT: Final = 1000
"""SlurmJobs that are looked at in search of a loop."""

LONGEST_WAY: Final = 1000
"""Characters of the names in a loop that is named."""

_AT_END: Final = frozenset({"afterok", "afternotok", "afterany"})
_BY_EXIT_CODE: Final = frozenset({"afterok", "afternotok"})
"""Types that depend on how, or whether, a job ends."""

Find = Callable[[str], Object | None]
"""A SlurmJob of the same namespace by its name."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Why the job is not submitted yet."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Ready:
    """All that it waits for is known to Slurm."""

    text: str
    """For Slurm; empty if nothing is to be waited for any more."""


NOTHING: Final = Ready("")
"""Nothing is waited for."""


def resolve(obj: Object, find: Find, *, is_met: bool = False) -> Wait | Ready:
    """The dependency to submit, or why it is not known yet.

    Parameters
    ----------
    obj
        The SlurmJob, as it was read.
    find
        Finds others by name.
    is_met
        Whether a job of this SlurmJob has had nodes: all that it waited for has come about, and may be gone.
    """
    wanted = list(_wanted(obj))
    if not wanted:
        return Ready("")
    parts = []
    for kind, name in wanted:
        if kind == "singleton":
            parts.append("singleton")
            continue
        if is_met:
            continue
        part = _part(kind, name, find(name), obj)
        if isinstance(part, Wait):
            loop = _loop(obj, find)
            if not loop:
                return part
            way = cut(" -> ".join(loop), LONGEST_WAY)
            return Wait(Reason.DEPENDENCY_LOOP, f"spec.dependsOn: these SlurmJobs wait for each other: {way}")
        if part:
            parts.append(part)
    return Ready(",".join(parts))


def check(own: str | None, *, is_waiting: bool) -> None:
    """Refuse what cannot be joined.

    Raises
    ------
    InvalidJob
        The job names other jobs of which any will do, and SlurmJobs that must all be waited for.
    """
    if is_waiting and own and "?" in own:
        raise InvalidJob("spec.dependsOn", "cannot be joined with a dependency that has '?' in it; write one of both")


def joined(own: str | None, ready: str) -> str | None:
    """The dependency of the job itself and that on other SlurmJobs, as one."""
    return ",".join(one for one in (own, ready) if one) or None


def names(obj: Object) -> list[str]:
    """Names of the SlurmJobs that one waits for; an index of the cache, so any shape is read."""
    return [name for _, name in _wanted(obj) if name]


def _wanted(obj: Object) -> Iterator[tuple[str, str]]:
    spec = obj.get("spec")
    found = spec.get("dependsOn") if isinstance(spec, dict) else None
    for one in found if isinstance(found, list) else ():
        if isinstance(one, dict):
            name = one.get("name")
            yield str(one.get("type") or "afterok"), name if isinstance(name, str) else ""


def _part(kind: str, name: str, other: Object | None, own: Object) -> str | Wait:
    """One dependency in Slurm's notation; empty if it has been met."""
    if other is None:
        return Wait(Reason.DEPENDENCY_NOT_SUBMITTED, f"spec.dependsOn: SlurmJob {name} does not exist yet")
    status = other.get("status") or {}
    if _cluster(other) != _cluster(own):
        return Wait(
            Reason.DEPENDENCY_NOT_SUBMITTED,
            f"spec.dependsOn: SlurmJob {name} belongs to another Cluster, so Slurm cannot wait for it",
        )
    number = status.get("jobId")
    if not isinstance(number, int):
        return _without_number(kind, name, other)
    wait = _wait_of(kind, name, number, other)
    if wait is not None:
        return wait
    state = status.get("state")
    met = {"afterok": state == "Succeeded", "afternotok": state == "Failed"}
    if kind in {"afterany", "after"} and state in {"Succeeded", "Failed"}:
        return ""
    # slurmctld takes a job that it does not know for one that did not end as it was to.
    return "" if met.get(kind) else f"{kind}:{number}"


def _wait_of(kind: str, name: str, number: int, other: Object) -> Wait | None:
    """What Slurm cannot wait for itself: the last of several submissions, and the end of work that it does not see."""
    spec, status = other.get("spec") or {}, other.get("status") or {}
    if not has_ended(other):
        attempt, limit = _attempt(status), spec.get("backoffLimit") or 0
        if kind in _AT_END and attempt < limit:
            return Wait(
                Reason.DEPENDENCY_NOT_FINISHED,
                f"waits for the end of SlurmJob {name}: its job {number} is submission {attempt + 1} of {limit + 1}, "
                "and another one follows if it fails",
            )
        if kind in _BY_EXIT_CODE and isinstance(spec.get("external"), dict):
            words = f"waits for the end of SlurmJob {name}: it has no script, and Slurm does not know how its work ends"
            return Wait(Reason.DEPENDENCY_NOT_FINISHED, words)
    elif kind == "afternotok" and isinstance(spec.get("external"), dict) and status.get("state") == "Succeeded":
        # To slurmctld it was cancelled.
        words = f"spec.dependsOn: {kind} can never be satisfied: SlurmJob {name} has succeeded; delete this SlurmJob"
        return Wait(Reason.DEPENDENCY_NEVER_SATISFIED, words)
    return None


def _without_number(kind: str, name: str, other: Object) -> str | Wait:
    """The same of a SlurmJob that Slurm does not have: it has not been submitted yet, or never will be."""
    state = (other.get("status") or {}).get("state")
    if (other.get("spec") or {}).get("dryRun"):
        why = "is a dry run"
    elif not has_ended(other):
        return Wait(Reason.DEPENDENCY_NOT_SUBMITTED, f"waits for the submission of SlurmJob {name}")
    elif kind in {"after", "afterany"} or (kind == "afternotok" and state == "Failed"):
        return ""
    elif state == "Failed":
        why = "was cancelled before it was submitted"
    else:
        why = "was cancelled, and it is not known whether it ran"
    words = f"spec.dependsOn: {kind} can never be satisfied: SlurmJob {name} {why}; delete this SlurmJob"
    return Wait(Reason.DEPENDENCY_NEVER_SATISFIED, words)


def _cluster(obj: Object) -> tuple[Any, Any]:
    """Namespace and name of the Cluster that a SlurmJob is for."""
    spec = obj.get("spec") or {}
    return spec.get("clusterNamespace") or obj["metadata"].get("namespace"), spec.get("clusterName")


def has_ended(obj: Object) -> bool:
    """Whether the job of a SlurmJob has ended, and no other submission follows."""
    found = (obj.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == SlurmJobCondition.FINISHED and one.get("status") == "True" for one in found)


def _attempt(status: Mapping[str, Any]) -> int:
    """Which submission the number in the status is of, from 0 on."""
    found = (status.get("submission") or {}).get("attempt")
    return found if isinstance(found, int) else 0


def _loop(obj: Object, find: Find) -> list[str]:
    """A way from a SlurmJob back to itself; empty if there is none."""
    start = obj["metadata"]["name"]
    before = {start: start}
    left = [start]
    while left and len(before) <= MOST_LOOKED_AT:
        current = left.pop()
        found = obj if current == start else find(current)
        if found is None or isinstance((found.get("status") or {}).get("jobId"), int) or has_ended(found):
            # What has been submitted, or never will be, waits for nobody here.
            continue
        for name in names(found):
            if name == start:
                return [*reversed(list(_back(before, current))), start]
            if name not in before:
                before[name] = current
                left.append(name)
    return []


def _back(before: Mapping[str, str], name: str) -> Iterator[str]:
    yield name
    while before[name] != name:
        name = before[name]
        yield name
