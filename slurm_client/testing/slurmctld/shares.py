"""
The fair-share tree, worked out from what jobs used, by the rules of ``priority/multifactor`` with fair tree.

Usage does not decay here, and is there at once; slurmctld adds it up every ``PriorityCalcPeriod``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from slurm_client.testing.answers.encode import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from slurm_client.models import Job

__all__ = ["Owner", "ShareTree", "Shareholder"]

Owner: TypeAlias = tuple[str, str]
"""Account and user."""


@dataclass(frozen=True, slots=True)
class Shareholder:
    """
    An account, or a user in an account.

    Parameters
    ----------
    id
        Of the association.
    parent
        The account above it; of a user, the account.
    user
        Whether it is a user.
    shares
        Raw shares among its siblings.
    """

    id: int
    name: str
    parent: str = "root"
    user: bool = False
    shares: int = 1


@dataclass(frozen=True, slots=True)
class _Standing:
    """One row of the tree."""

    holder: Shareholder
    usage: int
    normalized: float
    effective: float

    @property
    def level(self) -> float | None:
        """What it has for what it used; ``None`` is more than anything."""
        return self.normalized / self.effective if self.effective else None


def used(job: Job, now: datetime) -> int:
    """Return the CPU seconds of a job so far."""
    if job.start_time is None or not job.nodes:
        return 0
    end = job.end_time if job.is_finished and job.end_time is not None else now
    return int((end - job.start_time).total_seconds()) * (job.cpus or 1)


class ShareTree:
    """
    Accounts and users with their shares; without any there is no tree.

    Attributes
    ----------
    holders
        All of them but the root, each below one that stands before it.
    """

    def __init__(self) -> None:
        self.holders: list[Shareholder] = []
        self._past: Counter[Owner] = Counter()

    def add(self, name: str, account: str = "root", *, user: bool = False, shares: int = 1) -> Shareholder:
        """
        Add an account below another one, or a user to an account.

        Parameters
        ----------
        account
            The account it is below or in.
        shares
            Raw shares among those of the same account.
        """
        accounts = {"root", *(each.name for each in self.holders if not each.user)}
        if account not in accounts:
            raise ValueError(f"there is no account {account}: add it first")
        known = {(each.name, each.parent) for each in self.holders if each.user}
        if (name, account) in known if user else name in accounts:
            raise ValueError(f"there is {name} in the fair-share tree already")
        self.holders.append(Shareholder(len(self.holders) + 2, name, account, user, shares))
        return self.holders[-1]

    def remember(self, job: Job, now: datetime) -> None:
        """Keep what a job used that is forgotten."""
        self._past[job.account, job.user] += used(job, now)

    def listed(self, jobs: Iterable[Job], now: datetime) -> list[dict[str, Any]]:
        """Write the rows of the tree, each account before what is below it."""
        usage = self._past.copy()
        for job in jobs:
            usage[job.account, job.user] += used(job, now)
        root = Shareholder(1, "root", "")
        total = _usage(root, self.holders, usage)
        rows = [_Standing(root, total, 1.0, 1.0), *_below("root", total, self.holders, usage)]
        ranked = [each.holder.id for each in _ranked("root", rows)]
        return [_written(each, total, ranked) for each in rows]


def _usage(holder: Shareholder, holders: Sequence[Shareholder], usage: Mapping[Owner, int]) -> int:
    if holder.user:
        return usage.get((holder.parent, holder.name), 0)
    return sum(_usage(each, holders, usage) for each in holders if each.parent == holder.name)


def _below(
    account: str,
    above: int,
    holders: Sequence[Shareholder],
    usage: Mapping[Owner, int],
) -> list[_Standing]:
    """Return everything below an account, depth first."""
    siblings = [each for each in holders if each.parent == account]
    shares = sum(each.shares for each in siblings)
    found = []
    for each in siblings:
        own = _usage(each, holders, usage)
        found.append(_Standing(each, own, each.shares / shares if shares else 0.0, own / above if above else 0.0))
        if not each.user:
            found += _below(each.name, own, holders, usage)
    return found


def _ranked(account: str, rows: Sequence[_Standing]) -> list[_Standing]:
    """Return the users below an account, the one whose jobs go first before all others."""
    siblings = [each for each in rows if each.holder.parent == account]
    siblings.sort(key=lambda each: (each.level is not None, -(each.level or 0.0)))
    found = []
    for each in siblings:
        found += [each] if each.holder.user else _ranked(each.holder.name, rows)
    return found


def _written(row: _Standing, total: int, ranked: Sequence[int]) -> dict[str, Any]:
    holder = row.holder
    factor = (len(ranked) - ranked.index(holder.id)) / len(ranked) if holder.id in ranked else None
    return {
        "id": holder.id,
        "cluster": "fake",
        "name": holder.name,
        "parent": holder.parent,
        "partition": "",
        "type": ["USER"] if holder.user else ["ASSOCIATION"],
        "shares": number(holder.shares),
        "shares_normalized": number(row.normalized),
        "usage": row.usage,
        "usage_normalized": number(row.usage / total if total else 0.0),
        "effective_usage": number(row.effective),
        "fairshare": {
            "factor": number(factor),
            "level": number(row.level) if row.level is not None else {"set": False, "infinite": True, "number": 0},
        },
        "tres": {
            "run_seconds": [],
            "group_minutes": [],
            "usage": [{"name": "cpu", "value": float(row.usage)}],
        },
    }
