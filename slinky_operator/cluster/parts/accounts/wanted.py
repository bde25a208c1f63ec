"""The tree as single objects of slurmdbd. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from slinky_api.v1alpha1.cluster.accounting_tree import Account, AccountTree, Qos, User, UserAssociation
from slinky_operator.cluster.parts.accounts import faults, limits
from slinky_operator.cluster.parts.accounts.faults import DEEPEST, entry, field_of
from slurm_client.models import AccountSpec, AssociationKey, AssociationSpec, QosSpec, UserSpec

S = TypeVar("S", QosSpec, AccountSpec, AssociationSpec, UserSpec)

_FLAGS: Final[Mapping[str, str]] = {
    "DenyOnLimit": "DENY_LIMIT",
    "EnforceUsageThreshold": "ENFORCE_USAGE_THRESHOLD",
    "NoDecay": "NO_DECAY",
    "NoReserve": "NO_RESERVE",
    "OverPartQOS": "OVERRIDE_PARTITION_QOS",
    "PartitionMaxNodes": "PARTITION_MAXIMUM_NODE",
    "PartitionMinNodes": "PARTITION_MINIMUM_NODE",
    "PartitionTimeLimit": "PARTITION_TIME_LIMIT",
    "Relative": "RELATIVE",
    "RequiresReservation": "REQUIRED_RESERVATION",
    "UsageFactorSafe": "USAGE_FACTOR_SAFE",
}
"""Flags as sacctmgr has them, and as slurmrestd has them."""


@dataclass(frozen=True, slots=True)
class Item(Generic[S]):
    """One object that is wanted."""

    spec: S
    path: str
    """Its field in the Cluster."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What slurmdbd is to have."""

    cluster: str
    """`ClusterName`, to which the associations belong."""

    qos: Mapping[str, Item[QosSpec]] = field(default_factory=dict)
    accounts: Mapping[str, Item[AccountSpec]] = field(default_factory=dict)
    """Each after the one above it."""

    users: Mapping[str, Item[UserSpec]] = field(default_factory=dict)
    """All who are named anywhere, without a default account: that is one of the associations."""

    associations: Mapping[AssociationKey, Item[AssociationSpec]] = field(default_factory=dict)
    """Those of accounts first, each after the one above it. The default one of a user is marked."""

    problems: tuple[str, ...] = ()
    """What is wrong with the tree as a whole, by field; nothing may be written then."""

    prune: bool = False
    prune_at_most: int | None = None
    """How many of a kind may be deleted together; None for the default."""

    unknown: frozenset[str] = frozenset()
    """Users of the tree whom the Cluster does not know: they are left out, and not deleted either."""


def wanted(tree: AccountTree, cluster: str, unknown: Collection[str] = ()) -> Wanted:
    """Read a tree.

    Parameters
    ----------
    cluster
        `ClusterName`.
    unknown
        Users whom the Cluster does not know.
    """
    problems = faults.found(tree)
    if problems:
        return Wanted(cluster, problems=problems)
    left_out = frozenset(unknown)
    ordered = _by_depth(tree.accounts)
    users = {one.name: one for one in tree.users}
    known = [name for name in faults.user_names(tree) if name not in left_out]
    return Wanted(
        cluster,
        qos={one.name: Item(_qos(one), field_of("qos", one.name)) for one in tree.qos},
        accounts={one.name: Item(_account(one, left_out), field_of("accounts", one.name)) for one in ordered},
        users={name: _user(name, users.get(name)) for name in known},
        associations=dict(_associations(tree, ordered, cluster, left_out)),
        prune=tree.prune,
        prune_at_most=tree.prune_at_most,
        unknown=left_out,
    )


# One object each


def _qos(one: Qos) -> QosSpec:
    return QosSpec(
        name=one.name,
        description=one.description,
        flags=None if one.flags is None else [_FLAGS[flag] for flag in one.flags],
        priority=one.priority,
        preempts=one.preempts,
        preempt_modes=None if one.preempt_mode is None else [one.preempt_mode.upper()],
        grace_time=one.grace_time,
        usage_factor=one.usage_factor,
        usage_threshold=one.usage_threshold,
        limits=limits.of_qos(one.limits),
    )


def _account(one: Account, left_out: Collection[str]) -> AccountSpec:
    coordinators = one.coordinators
    return AccountSpec(
        name=one.name,
        description=one.description,
        organization=one.organization,
        coordinators=None if coordinators is None else [name for name in coordinators if name not in left_out],
    )


def _user(name: str, one: User | None) -> Item[UserSpec]:
    level = None if one is None else one.admin_level
    return Item(UserSpec(name=name, administrator_level=level), field_of("users", name))


def _associations(
    tree: AccountTree, ordered: Iterable[Account], cluster: str, left_out: Collection[str]
) -> Iterator[tuple[AssociationKey, Item[AssociationSpec]]]:
    for one in ordered:
        spec = AssociationSpec(
            account=one.name,
            cluster=cluster,
            parent_account=one.parent,
            shares=one.fairshare,
            qos=one.qos,
            default_qos=one.default_qos,
            limits=limits.of_association(one.limits),
        )
        yield spec.key, Item(spec, field_of("accounts", one.name))
    defaults = {one.name: one.default_account for one in tree.users if one.default_account is not None}
    found = sorted(_of_users(tree, cluster, defaults), key=lambda item: not item.spec.is_default)
    yield from ((item.spec.key, item) for item in found if item.spec.user not in left_out)


def _of_users(tree: AccountTree, cluster: str, defaults: Mapping[str, str]) -> Iterator[Item[AssociationSpec]]:
    marked: set[str] = set()

    def default(user: str, account: str) -> bool | None:
        # One of an account's associations is marked, where there are several on partitions.
        if defaults.get(user) != account or user in marked:
            return None
        marked.add(user)
        return True

    for user in tree.users:
        for one in sorted(user.associations, key=lambda each: each.partition or ""):
            yield Item(
                _of_user(user.name, one, cluster, default(user.name, one.account)),
                f"{field_of('users', user.name)}.associations[{entry(one)}]",
            )
    for account in tree.accounts:
        for name in account.users:
            spec = AssociationSpec(
                account=account.name, cluster=cluster, user=name, is_default=default(name, account.name)
            )
            yield Item(spec, f"{field_of('accounts', account.name)}.users[{name}]")


def _of_user(user: str, one: UserAssociation, cluster: str, is_default: bool | None) -> AssociationSpec:
    return AssociationSpec(
        account=one.account,
        cluster=cluster,
        user=user,
        partition=one.partition or "",
        shares=one.fairshare,
        qos=one.qos,
        default_qos=one.default_qos,
        is_default=is_default,
        limits=limits.of_association(one.limits),
    )


def _by_depth(accounts: Iterable[Account]) -> list[Account]:
    """Each account after the one above it."""
    parents = {one.name: one.parent for one in accounts}

    def depth(name: str) -> int:
        steps = 0
        while name in parents and steps <= DEEPEST:
            name, steps = parents[name], steps + 1
        return steps

    return sorted(accounts, key=lambda one: depth(one.name))
