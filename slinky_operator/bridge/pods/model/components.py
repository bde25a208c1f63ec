"""The pods of a group as the components of its job: those that ask for the same are one. Pure.

Most groups are one component, and their job is plain. A group with several is one heterogeneous job, whose components
Slurm starts together. Tasks are counted through all of them: those of the first component, then those of the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from slinky_api.v1alpha1.slurmjob.kind import MAX_COMPONENTS
from slinky_operator.bridge.pods.model.snapshot import Away, GroupJob, Member
from slinky_operator.bridge.pods.model.translation.request import Request
from slinky_operator.jobs.annotated_fields import PARAMETERS
from slinky_operator.jobs.external import OF_ALL

_OF_JOB: Final = ("account", "qos", "time")
"""Fields that a job has as a whole."""

_OF_PART: Final = ("tasks", "cpusPerTask", "nodes", "features")
"""Fields that a component has for itself, also if all components ask for the same."""


@dataclass(frozen=True, slots=True)
class Component:
    """Pods that ask for the same, by rank and name."""

    request: Request
    pods: tuple[Member, ...]


def grouped(pods: Sequence[Member]) -> tuple[Component, ...] | Away:
    """The components of the job of these pods, in the order of their first pods; why there can be no job."""
    found: dict[Request, list[Member]] = {}
    for pod in pods:
        if isinstance(pod.request, Request):
            found.setdefault(pod.request, []).append(pod)
    made = tuple(Component(request, tuple(members)) for request, members in found.items())
    if len(made) > MAX_COMPONENTS:
        words = f"the pods of the group ask for {len(made)} different things, and a job has {MAX_COMPONENTS} components"
        return Away("Refused", f"{words} at most")
    return next(_differences(made), None) or made


def _differences(made: Sequence[Component]) -> Iterator[Away]:
    """What pods of one group ask for differently although a job has it as a whole."""
    first = made[0]
    own = first.request.spec(1)
    for other in made[1:]:
        wanted = other.request.spec(1)
        names = [name for name in _OF_JOB if own.get(name) != wanted.get(name)]
        names += [name for name in OF_ALL if own[PARAMETERS].get(name) != wanted[PARAMETERS].get(name)]
        if first.request.user != other.request.user:
            names.append("user")
        if names:
            words = f"pods {first.pods[0].name} and {other.pods[0].name} of one group ask for another {names[0]}"
            yield Away("Refused", f"{words}, and their job has one: write the same for both")


def spec_of(made: Sequence[Component]) -> dict[str, Any]:
    """The spec of the job of these components, but for its Cluster and user."""
    specs = [one.request.spec(len(one.pods)) for one in made]
    if len(specs) == 1:
        return specs[0]
    shared = [name for name in specs[0] if name not in {*_OF_PART, PARAMETERS, "external"} and _is_shared(specs, name)]
    given = [one[PARAMETERS] for one in specs]
    common = [name for name in given[0] if _is_shared(given, name)]
    parts = [
        {
            **{name: value for name, value in one.items() if name not in {*shared, PARAMETERS, "external"}},
            PARAMETERS: {name: value for name, value in one[PARAMETERS].items() if name not in common},
        }
        for one in specs
    ]
    return {
        **{name: specs[0][name] for name in shared},
        PARAMETERS: {name: given[0][name] for name in common},
        "external": {"components": parts},
    }


def _is_shared(found: Sequence[Mapping[str, Any]], name: str) -> bool:
    return all(one.get(name) == found[0][name] for one in found)


def fitting(request: Request, job: GroupJob) -> tuple[int, ...]:
    """Into tasks of which components of a job a pod fits."""
    parts = job.parts
    found = [number for number, part in enumerate(parts) if request.fits(part)]
    if len(parts) == 1:
        return tuple(found)
    wanted = request.spec(1)
    names = ("features", "partition")
    return tuple(one for one in found if all(parts[one].get(name) == wanted.get(name) for name in names))
