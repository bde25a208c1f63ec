"""Accounts, users, associations and WCKeys as slurmdbd keeps them, and what is to be created or changed of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from slurm_client.models.database.limits import AssociationLimits
from slurm_client.models.entry import Entry
from slurm_client.models.values import Infinite

__all__ = [
    "Account",
    "AccountSpec",
    "Association",
    "AssociationKey",
    "AssociationSpec",
    "Coordinator",
    "User",
    "UserSpec",
    "WCKey",
]


@dataclass(frozen=True, slots=True)
class Coordinator:
    """
    A user who manages an account; in a :class:`User`, the account that is managed.

    Parameters
    ----------
    name
        Of the user, or of the account.
    direct
        Whether of this very account, and not of one above it.
    """

    name: str
    direct: bool = True


@dataclass(frozen=True, slots=True)
class AssociationKey:
    """What an association is known by: an account on a cluster, of a user on a partition where these are not empty."""

    account: str
    cluster: str = ""
    user: str = ""
    partition: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account(Entry):
    """
    An account.

    Parameters
    ----------
    coordinators, associations
        Empty unless they were asked for.
    """

    name: str
    description: str = ""
    organization: str = ""
    coordinators: tuple[Coordinator, ...] = ()
    associations: tuple[AssociationKey, ...] = ()
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class User(Entry):
    """
    A user that slurmdbd knows.

    Parameters
    ----------
    administrator_level
        ``None``, ``Operator`` or ``Administrator``, as Slurm writes it.
    default_account
        Empty unless associations were asked for, as are associations.
    coordinates, wckeys
        Accounts that this user manages, and WCKeys; empty unless they were asked for.
    """

    name: str
    administrator_level: str = ""
    default_account: str = ""
    default_wckey: str = ""
    coordinates: tuple[Coordinator, ...] = ()
    associations: tuple[AssociationKey, ...] = ()
    wckeys: tuple[WCKey, ...] = ()
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Association(Entry):
    """
    What a user, or an account as such, may use on a cluster.

    Parameters
    ----------
    account, cluster, user, partition
        What it is known by; without a user it is the account's own, without a partition it holds for all of them.
    id
        Its number in the database; ``None`` with v0.0.41 and v0.0.42, which do not write it.
    parent_account, lineage
        The account above, empty for those of users; the path from the root.
    is_default
        Whether it is what the user's jobs use that name no account.
    qos, default_qos
        QOS that may be used, inherited ones included.
    shares
        Shares in fair share, beside its siblings; 2147483647 for those of its account.
    priority
        Added to that of its jobs.
    limits
        Its own, and those that it inherits.
    """

    account: str
    cluster: str = ""
    user: str = ""
    partition: str = ""
    id: int | None = None
    parent_account: str = ""
    lineage: str = ""
    is_default: bool = False
    comment: str = ""
    qos: tuple[str, ...] = ()
    default_qos: str = ""
    shares: int | None = None
    priority: int | Infinite | None = None
    limits: AssociationLimits = field(default_factory=AssociationLimits)
    flags: frozenset[str] = frozenset()

    @property
    def key(self) -> AssociationKey:
        """What it is known by."""
        return AssociationKey(self.account, self.cluster, self.user, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class WCKey(Entry):
    """A workload characterization key of a user on a cluster; the default one of a user begins with ``*``."""

    name: str
    cluster: str = ""
    user: str = ""
    id: int | None = None
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSpec:
    """
    What an account is to be; ``None`` leaves a thing as it is.

    Parameters
    ----------
    description, organization
        Of a new account both are its name where nothing else is said, as with ``sacctmgr``.
    coordinators
        Users who manage it, all of them: others cease to.
    """

    name: str
    description: str | None = None
    organization: str | None = None
    coordinators: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSpec:
    """
    What a user is to be; ``None`` leaves a thing as it is.

    Parameters
    ----------
    administrator_level
        ``None``, ``Operator`` or ``Administrator``, in quotes.
    default_account
        An account of which the user has an association.
    """

    name: str
    administrator_level: str | None = None
    default_account: str | None = None
    default_wckey: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssociationSpec:
    """
    What an association is to be; ``None`` leaves a thing as it is.

    Parameters
    ----------
    account, cluster, user, partition
        What it is known by; without a user it is the account's own.
    parent_account
        Of an account's own: the account above it; ``root`` where a new one names none. Fixed once it exists.
    shares, priority, qos, default_qos
        As in :class:`Association`. slurmrestd can take neither all QOS away nor the comment of one that exists.
    comment
        Of a new one.
    is_default
        True makes it the one that the user's jobs use; another one is made so to end that.
    limits
        Those to set; INFINITE, or a list without resources, takes one away.
    """

    account: str
    cluster: str
    user: str = ""
    partition: str = ""
    parent_account: str | None = None
    shares: int | None = None
    priority: int | Infinite | None = None
    qos: Sequence[str] | None = None
    default_qos: str | None = None
    comment: str | None = None
    is_default: bool | None = None
    limits: AssociationLimits | None = None

    @property
    def key(self) -> AssociationKey:
        """What it is known by."""
        return AssociationKey(self.account, self.cluster, self.user, self.partition)
