"""Translations of SlurmJobs: each version of an object is translated once for each user, in a thread.

What a text costs is not seen by its length: ``a[1-65536]`` is short, and many names. So all are translated in threads,
and what was found is kept while there is room; what is too big for that is translated in each pass.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from slinky_api.v1alpha1.slurmjob.kind import SlurmJob
from slinky_operator.jobs import external
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.jobs.translation import Submission, translate
from slinky_operator.kube.ports import Getter
from slinky_operator.reconcile.cached import scripts
from slinky_operator.runtime import threads

ROOM: Final = 16 * 2**20
"""Bytes of all translations that are kept, roughly."""

LARGEST: Final = 2 * 2**20
"""Bytes of one that is kept, roughly, with its script."""

FRESH: Final = timedelta(seconds=10)
"""For so long one counts that names a time: ``now+1hour`` is counted from the submission."""

_VALUE: Final = 56
"""Bytes that a value takes besides its characters."""


@dataclass(frozen=True, slots=True)
class _Kept:
    generation: int
    user: str
    at: datetime
    found: Submission | InvalidJob
    weight: int

    def is_for(self, job: SlurmJob, user: str, now: datetime) -> bool:
        if (self.generation, self.user) != (job.metadata.generation, user):
            return False
        if isinstance(self.found, InvalidJob):
            return True
        names_time = self.found.job.begin_time is not None or self.found.job.deadline is not None
        return not names_time or now - self.at < FRESH


class Translations:
    """Translates specs of SlurmJobs.

    Parameters
    ----------
    kube
        Reads scripts that the cache has left out.
    room, largest
        Bytes that all, and one, may take to be kept.
    """

    def __init__(self, kube: Getter, *, room: int = ROOM, largest: int = LARGEST) -> None:
        self._kube = kube
        self._room = room
        self._largest = largest
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        """By uid, the one that was needed last at the end."""
        self._weight = 0

    async def of(self, job: SlurmJob, user: str, now: datetime) -> Submission | InvalidJob:
        """Return what a SlurmJob asks for, or why that is no job.

        Parameters
        ----------
        job
            The SlurmJob.
        user
            Whose job it would be; empty if that is not known.
        now
            The time that relative times count from.

        Raises
        ------
        KubeError
            A script that was left out of the cache cannot be read; `Conflict` if the SlurmJob has changed since.
        """
        kept = self._kept.get(job.uid)
        if kept is not None and kept.is_for(job, user, now):
            self._kept.move_to_end(job.uid)
            return kept.found
        self.forget(job.uid)
        job = await scripts.whole(self._kube, job)
        found, weight = await threads.JOBS.run((job.namespace, "translation", job.uid), _translated, job, user, now)
        if weight <= self._largest:
            self.forget(job.uid)
            self._kept[job.uid] = _Kept(job.metadata.generation or 0, user, now, found, weight)
            self._weight += weight
        while self._weight > self._room:
            self.forget(next(iter(self._kept)))
        return found

    def forget(self, uid: str) -> None:
        """Forget a SlurmJob that is gone."""
        known = self._kept.pop(uid, None)
        self._weight -= known.weight if known is not None else 0


def _translated(job: SlurmJob, user: str, now: datetime) -> tuple[Submission | InvalidJob, int]:
    try:
        found = _of_parts(job, user, now) or translate(
            job.spec, name=job.name, user=user, now=now, is_external=job.spec.external is not None
        )
    except InvalidJob as error:
        # The frames that an error holds hold all that was read so far.
        error.__traceback__ = error.__context__ = None
        return error, _weigh(str(error))
    return found, _weigh(found)


def _of_parts(job: SlurmJob, user: str, now: datetime) -> Submission | None:
    """The submission of a job with components; None for one that has none."""
    given = (job.spec.external.components if job.spec.external is not None else None) or ()
    found: list[Submission] = []
    for number, spec in enumerate(external.parts(job.spec, job.spec.external)):
        try:
            external.check_component(given[number])
            found.append(translate(spec, name=job.name, user=user, now=now, is_external=True))
        except InvalidJob as error:
            raise external.in_component(error, number, given[number]) from None
    if not found:
        return None
    idle = dict.fromkeys(words for one in found for words in one.without_effect)
    return replace(found[0], without_effect=tuple(idle), components=tuple(one.job for one in found))


def _weigh(value: Any) -> int:
    if isinstance(value, str):
        return _VALUE + len(value)
    if isinstance(value, Mapping):
        return _VALUE + sum(_weigh(key) + _weigh(each) for key, each in value.items())
    if isinstance(value, (tuple, list)):
        return _VALUE + sum(map(_weigh, value))
    if is_dataclass(value):
        return _VALUE + sum(_weigh(getattr(value, each.name)) for each in fields(value))
    return 0 if value is None else _VALUE
