"""Changes of slurmdbd: one write each, which may be repeated. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from slinky_operator.cluster.parts.accounts.faults import TREE
from slurm_client.models import AccountSpec, AssociationKey, AssociationSpec, QosSpec, UserSpec

Spec: TypeAlias = QosSpec | AccountSpec | AssociationSpec | UserSpec


class Kind(StrEnum):
    """What a deletion is about."""

    QOS = "QOS"
    ACCOUNT = "account"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Create:
    """Make an object; one that exists by now is changed instead."""

    spec: Spec
    path: str
    """Field of the Cluster that asks for it."""


@dataclass(frozen=True, slots=True)
class Update:
    """Change an object: what its spec names."""

    spec: Spec
    path: str
    words: str
    """What is changed, from what to what."""


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object with all that belongs to it."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class DeleteAssociation:
    """Delete a single association."""

    key: AssociationKey


Change: TypeAlias = Create | Update | Delete | DeleteAssociation


def place(change: Change) -> str:
    """The field that a change is for."""
    return change.path if isinstance(change, Create | Update) else f"{TREE}.prune"


def subject(change: Change) -> str:
    """What a change is about, for people."""
    if isinstance(change, Delete):
        return f"{change.kind} {change.name}"
    if isinstance(change, DeleteAssociation):
        return named(change.key)
    spec = change.spec
    if isinstance(spec, AssociationSpec):
        return named(spec.key)
    kind = {QosSpec: Kind.QOS, AccountSpec: Kind.ACCOUNT, UserSpec: Kind.USER}[type(spec)]
    return f"{kind} {spec.name}"


def told(change: Change) -> str:
    """A change in one line, for people."""
    if isinstance(change, Create):
        return f"{subject(change)} created"
    if isinstance(change, Update):
        return f"{subject(change)}: {change.words}"
    return f"{subject(change)} deleted"


def named(key: AssociationKey) -> str:
    """An association, for people."""
    if not key.user:
        return f"association of account {key.account}"
    where = f" on partition {key.partition}" if key.partition else ""
    return f"user {key.user} in account {key.account}{where}"
