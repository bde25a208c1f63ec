"""From pending jobs to what is placed, in order of priority; what is not placed is noted with its reason."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from slinky_operator.autoscaling.rules import needs
from slinky_operator.autoscaling.rules.effort import Effort
from slinky_operator.autoscaling.rules.features import Constraints
from slinky_operator.autoscaling.rules.needs import Ask, Need
from slinky_operator.autoscaling.rules.view import NodeDemand, View
from slurm_client.models import Job

MOST_JOBS: Final = 60_000
"""Pending records that could use nodes and that one count looks at, those with the highest priority."""

MOST_OF_A_USER: Final = 20_000
"""Those of one user."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What is placed as a whole: a job, a task of an array as often as there are tasks, or a heterogeneous job."""

    name: str
    user: str
    needs: tuple[Need, ...]
    tasks: int = 1


class Reading:
    """From jobs to what is placed."""

    def __init__(self, view: View, found: Mapping[str, NodeDemand], constraints: Constraints, effort: Effort) -> None:
        self._jobs = view.jobs
        self._found = found
        self._effort = effort
        self._served: dict[str, set[str]] = defaultdict(set)
        """NodeSets by the partitions that they are in."""
        for one in view.sets:
            for partition in one.partitions & view.most_nodes.keys():
                self._served[partition].add(one.name)
        self._owners: dict[tuple[str, ...], frozenset[str]] = {}
        self._looked_at = 0
        self._of_users: Counter[str] = Counter()
        self._broken: set[int] = set()
        """Heterogeneous jobs that are not counted, since a component of theirs is not."""
        self._reader = needs.Reader(
            view.now,
            constraints,
            effort,
            started=needs.arrays_started(view.jobs),
            nodes=(node.node.name for node in view.nodes),
        )

    def units(self) -> list[Unit]:
        """What is to be placed, in order; what is not counted is noted."""
        pending = self._pending()
        self._effort.share(len({_user(job) for job in pending}))
        self._effort.keep_half()
        single: list[Unit] = []
        components: dict[int, list[Ask]] = defaultdict(list)
        broken = self._broken
        for job in pending:
            owners = self._of(self._reader.partitions(job))
            user = _user(job)
            limit = self._limit(user)
            if limit:
                broken.add(job.het_job_id or 0)
                for owner in owners:
                    self._found[owner].overlook(job.alone, limit)
                continue
            asked = self._reader.read(job)
            if isinstance(asked, needs.LeftOut):
                broken.add(job.het_job_id or 0)
                for owner in owners:
                    self._found[owner].leave_out(asked.why)
            elif job.het_job_id:
                components[job.het_job_id].append(asked)
            else:
                single.append(Unit(asked.name, user, (asked.need,), asked.tasks))
        self._effort.release()
        for number, asks in components.items():
            if number not in broken:
                single.append(Unit(str(number), _user(asks[0].job), tuple(ask.need for ask in asks)))
        return single

    def _limit(self, user: str) -> str:
        """Which limit forbids to look at one more job of a user; empty if none does."""
        if self._looked_at >= MOST_JOBS:
            return f"at most {MOST_JOBS} are considered"
        if self._of_users[user] >= MOST_OF_A_USER:
            return f"at most {MOST_OF_A_USER} of user {user} are considered"
        if not self._effort.begin(user):
            return self._effort.limit
        self._looked_at += 1
        self._of_users[user] += 1
        return ""

    def _pending(self) -> list[Job]:
        """Jobs that more nodes may help, by priority; the others are noted."""
        found = []
        for job in self._jobs:
            owners = self._of(self._reader.partitions(job)) if job.is_pending else frozenset()
            if not owners:
                continue
            why = self._reader.excuse(job)
            if not why:
                found.append(job)
                continue
            self._broken.add(job.het_job_id or 0)
            for owner in owners:
                self._found[owner].leave_out(why)
        # Numbers are compared much faster than pairs of them.
        found.sort(key=lambda job: job.id)
        found.sort(key=lambda job: -job.priority if isinstance(job.priority, int) else 0)
        return found

    def owners(self, of: Sequence[Need]) -> frozenset[str]:
        """NodeSets that are in the partitions of these needs."""
        return self._of(of[0].partitions) if len(of) == 1 else frozenset().union(*(self._of(n.partitions) for n in of))

    def _of(self, partitions: tuple[str, ...]) -> frozenset[str]:
        known = self._owners.get(partitions)
        if known is None:
            served = (self._served.get(name, ()) for name in partitions)
            known = self._owners[partitions] = frozenset().union(*served)
        return known


def _user(job: Job) -> str:
    return job.user or ("(unknown)" if job.user_id is None else str(job.user_id))
