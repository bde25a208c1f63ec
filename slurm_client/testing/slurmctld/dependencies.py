"""
Dependencies of jobs as slurmctld reads, shows and resolves them.

A submission says ``afterok:7,afterany:8_3`` or ``afterok:7?afterok:8``; shown is what is not fulfilled yet, with a mark
for each: ``afterok:7(unfulfilled)``, ``afterok:39_*(failed)`` (measured with 24.11 and 26.05). Here are ``after``,
``afterany``, ``afterok``, ``afternotok`` and ``singleton``; others are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from slurm_client.testing.refusals import DEPENDENCY, Refusal
from slurm_client.testing.slurmctld import arrays

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurm_client.models import Job

Fate: TypeAlias = Literal["unfulfilled", "failed", "fulfilled"]

_ELEMENT = re.compile(
    r"(after|afterany|afterok|afternotok)((?::[0-9]+(?:_(?:[0-9]+|\*))?(?:\((?:unfulfilled|failed)\))?)+)"
)
_JOB = re.compile(r"([0-9]+)(?:_([0-9]+|\*))?")
_SINGLETON = re.compile(r"singleton(?:\((?:unfulfilled|failed)\))?")


@dataclass(frozen=True, slots=True)
class Element:
    """
    One condition.

    Parameters
    ----------
    kind
        ``afterok`` and the like.
    job
        Number of the job or array; 0 for ``singleton``.
    task
        Task of the array, ``*`` for all of them; empty for a job that is none.
    """

    kind: str
    job: int = 0
    task: str = ""

    def written(self, fate: Fate) -> str:
        """Write it as slurmctld shows it."""
        target = f":{self.job}" if self.job else ""
        return f"{self.kind}{target}{f'_{self.task}' if self.task else ''}({fate})"


@dataclass(frozen=True, slots=True)
class Dependency:
    """
    All conditions of one job.

    Parameters
    ----------
    any_of
        Whether one of them is enough.
    """

    elements: tuple[Element, ...]
    any_of: bool = False

    def written(self, fates: Iterable[Fate]) -> str:
        """Write what is not fulfilled."""
        shown = [
            element.written(fate) for element, fate in zip(self.elements, fates, strict=True) if fate != "fulfilled"
        ]
        return ("?" if self.any_of else ",").join(shown)


def parse(text: str) -> Dependency:
    """Read conditions as they are given or shown; Refusal for what slurmctld, or the fake, does not take."""
    any_of = "?" in text
    elements: list[Element] = []
    for word in text.split("?" if any_of else ","):
        if _SINGLETON.fullmatch(word):
            elements.append(Element("singleton"))
            continue
        match = _ELEMENT.fullmatch(word)
        if match is None:
            raise Refusal(DEPENDENCY, "Batch job submission failed")
        elements += [Element(match[1], int(number), task) for number, task in _JOB.findall(match[2])]
    return Dependency(tuple(elements), any_of)


def wished(text: str, jobs: Iterable[Job]) -> str:
    """Return the conditions of a submission as they are shown; Refusal for a success of a job that is not known."""
    known = list(jobs)
    numbers = {job.array_job_id for job in known if job.array_job_id}
    found = parse(text)
    elements = []
    for element in found.elements:
        if element.kind in {"afterok", "afternotok"} and not _targets(element, known):
            raise Refusal(DEPENDENCY, "Batch job submission failed")
        elements.append(replace(element, task="*") if element.job in numbers and not element.task else element)
    shown = Dependency(tuple(elements), found.any_of)
    return shown.written("unfulfilled" for _ in elements)


def resolved(job: Job, jobs: Iterable[Job]) -> tuple[str, str]:
    """
    Look at the conditions of a job again.

    Returns
    -------
    tuple
        What is shown of them from now on, empty when the job may run; and why it is pending.
    """
    known = list(jobs)
    found = parse(job.dependency)
    fates = [_fate(element, job, known) for element in found.elements]
    if "fulfilled" in fates if found.any_of else set(fates) == {"fulfilled"}:
        return "", "None"
    lost = set(fates) == {"failed"} if found.any_of else "failed" in fates
    return found.written(fates), "DependencyNeverSatisfied" if lost else "Dependency"


def _targets(element: Element, jobs: Iterable[Job]) -> list[Job]:
    """Return the records that a condition is about."""
    if element.task and element.task != "*":
        wanted = element.job, int(element.task)
        return [job for job in jobs if (job.array_job_id, job.array_task_id) == wanted or _waits(job, *wanted)]
    return [job for job in jobs if element.job in {job.id, job.array_job_id}]


def _waits(job: Job, array: int, index: int) -> bool:
    return job.array_job_id == array and index in (arrays.waiting(job) or ())


def _fate(element: Element, job: Job, jobs: list[Job]) -> Fate:
    if element.kind == "singleton":
        others = [
            other
            for other in jobs
            if other.id != job.id
            and (other.name, other.user) == (job.name, job.user)
            and not other.is_finished
            and (not other.is_pending or other.id < job.id)
        ]
        return "unfulfilled" if others else "fulfilled"
    targets = _targets(element, jobs)
    if element.kind == "after":
        return "unfulfilled" if any(target.is_pending for target in targets) else "fulfilled"
    if any(not target.is_finished for target in targets):
        return "unfulfilled"
    good = bool(targets) and all(target.state.base == "COMPLETED" for target in targets)
    if element.kind == "afterany" or good == (element.kind == "afterok"):
        return "fulfilled"
    return "failed"
