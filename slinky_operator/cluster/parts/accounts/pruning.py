"""What is deleted because the tree has not got it, and what stays because it is used. Pure.

A tree covers what can be used on its Cluster. Accounts and users that another cluster of the same slurmdbd has
associations for lose those on this one only; QOS belong to all clusters, so they stay as long as there is another one.
The account and the user root stay, and so does the QOS normal.

Slurm deletes nothing that a job uses; it is left out here all the same, so that the condition says what is waited for
and nothing is tried in vain. Users go before their accounts, accounts before the one above, and QOS last.

A tree that has lost most of its entries looks like one that wants most of slurmdbd deleted. So nothing is deleted where
it would be many at once, until the administrator has said that as many are meant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from slinky_operator.cluster.parts.accounts.changes import (
    Change,
    Delete,
    DeleteAssociation,
    Kind,
    Update,
    named,
    subject,
)
from slinky_operator.cluster.parts.accounts.faults import NORMAL, ROOT, TREE
from slinky_operator.cluster.parts.accounts.present import Present
from slinky_operator.cluster.parts.accounts.wanted import Wanted
from slinky_operator.reconcile import text
from slurm_client.models import AssociationKey, AssociationSpec


@dataclass(frozen=True, slots=True)
class Usage:
    """What jobs that have not ended, and partitions, use."""

    associations: Mapping[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    """Jobs by account and user."""

    qos: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Jobs by QOS."""

    partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Partitions by QOS."""

    others: bool = False
    """Whether slurmdbd has other clusters."""


FEW: Final = 10
"""Deletions of a kind that are never too many."""

SHARE: Final = 4
"""One of so many of a kind may be deleted together."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What is deleted, and what is not."""

    changes: tuple[Change, ...] = ()
    held: tuple[str, ...] = ()
    """What stays because it is used, each with why."""

    too_many: str = ""
    """Why nothing is deleted: it would be too many at once. Empty if it is not."""


def unmanaged(wanted: Wanted, present: Present) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Accounts, users and QOS that are there and not in the tree.

    Of accounts and users those with associations on this cluster only: others are no matter of the tree.
    """
    here = present.of_cluster(wanted.cluster)
    accounts = {key.account for key in here} - wanted.accounts.keys() - {ROOT}
    users = {key.user for key in here} - wanted.users.keys() - wanted.unknown - {ROOT, ""}
    return frozenset(accounts), frozenset(users), frozenset(present.qos.keys() - wanted.qos.keys() - {NORMAL})


def is_needed(wanted: Wanted, present: Present) -> bool:
    """Whether there is anything to delete, so that jobs must be asked for."""
    return wanted.prune and (any(unmanaged(wanted, present)) or any(_associations(wanted, present)))


def prune(wanted: Wanted, present: Present, usage: Usage) -> Pruned:
    """Choose what is deleted."""
    if not wanted.prune:
        return Pruned()
    accounts, users, qos = unmanaged(wanted, present)
    single = set(_associations(wanted, present))
    here = present.of_cluster(wanted.cluster)
    kinds = (
        ("accounts", len(accounts), len({key.account for key in here} - {ROOT})),
        ("users", len(users), len({key.user for key in here} - {ROOT, ""})),
        ("associations", len(single), sum(key.user not in {ROOT, ""} for key in here)),
        ("QOS", len(qos), len(present.qos.keys() - {NORMAL})),
    )
    too_many = _too_many(kinds, wanted.prune_at_most)
    if too_many:
        return Pruned(too_many=too_many)
    draft = _Draft(wanted, present, usage)
    for user in sorted(users):
        single |= draft.user(user)
    defaults = tuple(_new_defaults(wanted, present, single))
    # A user's default goes last: Slurm deletes none while there are others.
    for key in sorted(single, key=lambda one: (one.user, present.associations[one].is_default, one.account)):
        draft.association(key)
    for account in _from_below(accounts, present, wanted.cluster):
        draft.account(account)
    for name in sorted(qos):
        draft.qos(name)
    return Pruned((*defaults, *draft.made), tuple(draft.held))


def _too_many(kinds: Iterable[tuple[str, int, int]], at_most: int | None) -> str:
    """Why so many must not be deleted at once, and what to do; empty if they may.

    Parameters
    ----------
    kinds
        For each kind its name, how many would be deleted, and how many there are.
    at_most
        What the administrator has said.
    """
    excess = [
        (kind, going, there)
        for kind, going, there in kinds
        if going > (max(FEW, there // SHARE) if at_most is None else at_most)
    ]
    if not excess:
        return ""
    listed = ", ".join(f"{going} of {there} {kind}" for kind, going, there in excess)
    most = max(going for _, going, _ in excess)
    rule = "more than a quarter at once" if at_most is None else f"more than pruneAtMost, which is {at_most}"
    return (
        f"{TREE}.prune would delete {listed}, {rule}: nothing is deleted. If the tree is as it is meant to be, set "
        f"{TREE}.pruneAtMost to {most}; else put back what it has lost"
    )


class _Draft:
    """What is chosen so far."""

    def __init__(self, wanted: Wanted, present: Present, usage: Usage) -> None:
        self._wanted, self._present, self._usage = wanted, present, usage
        self._here = present.of_cluster(wanted.cluster)
        others = [key for key in present.associations if key.cluster != wanted.cluster]
        self._users_elsewhere = {key.user for key in others}
        self._accounts_elsewhere = {key.account for key in others}
        self._kept_accounts: set[str] = set()
        self.made: list[Change] = []
        self.held: list[str] = []

    def user(self, name: str) -> set[AssociationKey]:
        """Choose a user; returns the associations that go one by one."""
        own = {key for key in self._here if key.user == name}
        jobs = [job for (_, user), found in self._usage.associations.items() if user == name for job in found]
        if jobs:
            self._hold(f"user {name}", _jobs(jobs), *(key.account for key in own))
        elif name in self._users_elsewhere:
            return own
        else:
            self.made.append(Delete(Kind.USER, name))
        return set()

    def association(self, key: AssociationKey) -> None:
        """Choose an association of a user."""
        jobs = self._usage.associations.get((key.account, key.user), ())
        if jobs:
            self._hold(named(key), _jobs(jobs), key.account)
        else:
            self.made.append(DeleteAssociation(key))

    def account(self, name: str) -> None:
        """Choose an account; those below it come before."""
        jobs = [job for (account, _), found in self._usage.associations.items() if account == name for job in found]
        if jobs or name in self._kept_accounts:
            parent = _parent(self._present, name, self._wanted.cluster)
            self._hold(f"account {name}", _jobs(jobs) if jobs else "what is below it is kept", parent)
        elif name in self._accounts_elsewhere:
            self.made.append(DeleteAssociation(AssociationKey(name, self._wanted.cluster)))
        else:
            self.made.append(Delete(Kind.ACCOUNT, name))

    def qos(self, name: str) -> None:
        """Choose a QOS; all else comes before."""
        why = self._use_of(name)
        if why:
            self._hold(f"QOS {name}", why)
        else:
            self.made.append(Delete(Kind.QOS, name))

    def _hold(self, what: str, why: str, *accounts: str) -> None:
        self.held.append(f"{what}: {why}")
        self._kept_accounts |= set(accounts)

    def _use_of(self, qos: str) -> str:
        """Why a QOS stays; empty if nothing uses it."""
        usage = self._usage
        if usage.others:
            return "slurmdbd has other clusters, which may use it"
        if usage.qos.get(qos):
            return _jobs(usage.qos[qos])
        if usage.partitions.get(qos):
            return f"partition {text.named(sorted(usage.partitions[qos]))} has it"
        users = [named(key) for key, one in self._here.items() if qos in {*one.qos, one.default_qos}]
        users = [one for one in users if one not in self._loses(qos)]
        if users:
            return f"{text.named(sorted(users))} may use it"
        kept = {name for name, item in self._wanted.qos.items() if item.spec.preempts is None}
        above = [other for other, one in self._present.qos.items() if qos in one.preempts and other in kept]
        return f"QOS {text.named(sorted(above))} preempts it" if above else ""

    def _loses(self, qos: str) -> set[str]:
        """Associations that go, or that the tree gives other QOS before."""
        gone = {subject(one) for one in self.made}
        found = set()
        for key in self._here:
            item = self._wanted.associations.get(key)
            goes = {f"account {key.account}", named(key), *((f"user {key.user}",) if key.user else ())} & gone
            if goes or (item is not None and item.spec.qos is not None and qos not in item.spec.qos):
                found.add(named(key))
        return found


def _associations(wanted: Wanted, present: Present) -> Iterator[AssociationKey]:
    """Associations of users of the tree that it has not got."""
    return (
        key
        for key in present.of_cluster(wanted.cluster)
        if key.user in wanted.users and key not in wanted.associations and key.user != ROOT
    )


def _new_defaults(wanted: Wanted, present: Present, going: Collection[AssociationKey]) -> Iterator[Change]:
    """Give users another default account before theirs goes: Slurm deletes none that is the default."""
    chosen = {key.user for key, item in wanted.associations.items() if item.spec.is_default}
    for key in sorted(going, key=lambda one: (one.user, one.account, one.partition)):
        if not present.associations[key].is_default or key.user in chosen:
            continue
        first = next((one for one in wanted.associations if one.user == key.user), None)
        if first is not None:
            chosen.add(key.user)
            spec = AssociationSpec(
                account=first.account,
                cluster=first.cluster,
                user=first.user,
                partition=first.partition,
                is_default=True,
            )
            yield Update(spec, wanted.associations[first].path, f"made the default account instead of {key.account}")


def _from_below(accounts: Iterable[str], present: Present, cluster: str) -> list[str]:
    """Each account before the one above it."""
    left = set(accounts)
    ordered: list[str] = []
    while left:
        above = {_parent(present, name, cluster) for name in left}
        lowest = sorted(left - above) or sorted(left)
        ordered += lowest
        left -= set(lowest)
    return ordered


def _parent(present: Present, account: str, cluster: str) -> str:
    own = present.associations.get(AssociationKey(account, cluster))
    return own.parent_account if own is not None else ""


def _jobs(jobs: Collection[int]) -> str:
    return f"job {text.named([str(job) for job in sorted(set(jobs))])} uses it"
