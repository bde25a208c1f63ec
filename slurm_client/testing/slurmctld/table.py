"""
The table of jobs of the pretended slurmctld: by number, by array, by node, and those that the scheduler looks at.

Thousands of jobs are held in some tests; a look at all of them at each submission would be most of what such a test
does. The indexes follow from single changes alone: other ways to change a dictionary raise.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NoReturn

from typing_extensions import override

from slurm_client.models import Job


class JobTable(dict[int, Job]):
    """Jobs by number, in the order in which they came."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: set[int] = set()
        self._by_node: defaultdict[str, set[int]] = defaultdict(set)
        self._together: defaultdict[int, set[int]] = defaultdict(set)

    def waiting(self) -> list[int]:
        """Return the numbers of the pending jobs that the scheduler has to look at, the lowest first."""
        return sorted(self._waiting)

    def naming(self, node: str) -> list[Job]:
        """Return the jobs that name a node as theirs, the lowest number first; they may have ended."""
        return [self[number] for number in sorted(self._by_node.get(node, ()))]

    def together(self, number: int) -> list[Job]:
        """Return the job of a number, the tasks of its array and the components of its heterogeneous job."""
        return [self[one] for one in sorted(self._together.get(number, ()))]

    def restore(self, kept: dict[int, Job]) -> None:
        """Put back what there was before something that has come to nothing; nobody is told."""
        for number in self.keys() - kept.keys():
            del self[number]
        for number, job in kept.items():
            if self.get(number) is not job:
                self._put(number, job)

    @override
    def __setitem__(self, number: int, job: Job) -> None:
        self._put(number, job)

    @override
    def __delitem__(self, number: int) -> None:
        self._forget(self[number], number)
        super().__delitem__(number)

    @override
    def pop(self, number: int, *default: Any) -> Any:
        if number not in self:
            return super().pop(number, *default)
        job = self[number]
        del self[number]
        return job

    @override
    def update(self, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError("change one job at a time")

    @override
    def setdefault(self, *_: Any) -> NoReturn:
        raise NotImplementedError("change one job at a time")

    @override
    def popitem(self) -> NoReturn:
        raise NotImplementedError("change one job at a time")

    @override
    def __ior__(self, _: Any) -> NoReturn:
        raise NotImplementedError("change one job at a time")

    @override
    def clear(self) -> None:
        super().clear()
        self._waiting.clear()
        self._by_node.clear()
        self._together.clear()

    def _put(self, number: int, job: Job) -> None:
        if (old := self.get(number)) is not None:
            self._forget(old, number)
        super().__setitem__(number, job)
        if job.is_pending and (job.dependency or not job.hold):
            self._waiting.add(number)
        for name in job.nodes:
            self._by_node[name].add(number)
        for one in _numbers(job):
            self._together[one].add(number)

    def _forget(self, job: Job, number: int) -> None:
        self._waiting.discard(number)
        for name in job.nodes:
            _drop(self._by_node, name, number)
        for one in _numbers(job):
            _drop(self._together, one, number)


def _drop(index: dict[Any, set[int]], key: Any, number: int) -> None:
    index[key].discard(number)
    if not index[key]:
        del index[key]


def _numbers(job: Job) -> set[int]:
    return {one for one in (job.id, job.array_job_id, job.het_job_id) if one is not None}
