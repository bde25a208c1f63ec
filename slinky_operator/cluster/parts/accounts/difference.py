"""What is to be done so that slurmdbd has what a tree wants. Pure.

Only what the tree names is compared. The order works whatever is there: QOS before what may use them, accounts after
the one above, accounts before their users, users before what they are to be (administrators, coordinators). What a QOS
preempts comes after all QOS, since it may name any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, TypeVar

from slinky_operator.cluster.parts.accounts import limits
from slinky_operator.cluster.parts.accounts.changes import Change, Create, Update
from slinky_operator.cluster.parts.accounts.present import Present
from slinky_operator.cluster.parts.accounts.wanted import Item, Wanted
from slinky_operator.reconcile.text import cut, named
from slurm_client.models import INFINITE, Account, AccountSpec, Association, AssociationSpec, Qos, QosSpec

PARENT_SHARES: Final = 2_147_483_647
"""What fair share reads as `parent`."""

LONGEST_WORD: Final = 40
"""Characters of a description in a message."""

_NO_MODE: Final = frozenset({"DISABLED"})
_NO_LEVEL: Final = "None"


def changes(wanted: Wanted, present: Present) -> list[Change]:
    """What is to be created and changed, in order; empty if slurmdbd has all of it."""
    return [
        *_of_qos(wanted, present),
        *_of_accounts(wanted, present),
        *_of_associations(wanted, present),
        *_of_users(wanted, present),
        *_of_coordinators(wanted, present),
    ]


def unmovable(wanted: Wanted, present: Present) -> list[str]:
    """Accounts that are below another one than the tree says, by field, and what to do."""
    found = []
    for key, item in wanted.associations.items():
        there = present.associations.get(key)
        parent = item.spec.parent_account
        if there is not None and parent is not None and there.parent_account not in {"", parent}:
            found.append(
                f"{item.path}.parent: account {key.account} is below {there.parent_account} in slurmdbd, and "
                f"slurmrestd cannot move it: run sacctmgr modify account {key.account} set parent={parent}"
            )
    return found


def _of_qos(wanted: Wanted, present: Present) -> Iterator[Change]:
    later: list[Change] = []
    for name, item in wanted.qos.items():
        there = present.qos.get(name)
        if there is None:
            yield Create(replace(item.spec, preempts=None), item.path)
            if item.spec.preempts is not None:
                preempts = QosSpec(name=name, preempts=item.spec.preempts)
                later.append(Update(preempts, item.path, f"preempts none -> {_listed(item.spec.preempts)}"))
            continue
        spec, words = _qos(item.spec, there)
        if words:
            later.append(Update(spec, item.path, ", ".join(words)))
    yield from later


def _of_accounts(wanted: Wanted, present: Present) -> Iterator[Change]:
    """Accounts, and their own associations right after each: the next one may be below it."""
    own = {key.account: item for key, item in wanted.associations.items() if not key.user}
    for name, item in wanted.accounts.items():
        there = present.accounts.get(name)
        # Coordinators must be users, who come later.
        described = replace(item.spec, coordinators=None)
        if there is None:
            yield Create(described, item.path)
        else:
            spec, words = _plain(described, there, ("description", "organization"))
            if words:
                yield Update(spec, item.path, ", ".join(words))
        yield from _of_association(own[name], present)


def _of_associations(wanted: Wanted, present: Present) -> Iterator[Change]:
    for key, item in wanted.associations.items():
        if key.user:
            yield from _of_association(item, present)


def _of_association(item: Item[AssociationSpec], present: Present) -> Iterator[Change]:
    there = present.associations.get(item.spec.key)
    if there is None:
        yield Create(item.spec, item.path)
        return
    spec, words = _association(item.spec, there)
    if words:
        yield Update(spec, item.path, ", ".join(words))


def _of_users(wanted: Wanted, present: Present) -> Iterator[Change]:
    with_association = {key.user for key in wanted.associations}
    for name, item in wanted.users.items():
        there = present.users.get(name)
        level = item.spec.administrator_level
        if there is None and name not in with_association:
            yield Create(item.spec, item.path)
            continue
        before = there.administrator_level if there is not None else _NO_LEVEL
        if level is not None and level != (before or _NO_LEVEL):
            yield Update(item.spec, item.path, f"adminLevel {before or _NO_LEVEL} -> {level}")


def _of_coordinators(wanted: Wanted, present: Present) -> Iterator[Change]:
    for name, item in wanted.accounts.items():
        coordinators = item.spec.coordinators
        if coordinators is None:
            continue
        there = present.accounts.get(name)
        before = {one.name for one in there.coordinators if one.direct} if there is not None else set()
        if before != set(coordinators):
            spec = AccountSpec(name=name, coordinators=coordinators)
            words = f"coordinators {_listed(sorted(before))} -> {_listed(sorted(coordinators))}"
            yield Update(spec, item.path, words)


# One object each: the fields that differ, and what they are and are to be


def _qos(wanted: QosSpec, there: Qos) -> tuple[QosSpec, list[str]]:
    spec, words = _plain(wanted, there, ("description", "priority", "grace_time", "usage_factor", "usage_threshold"))
    for name in ("flags", "preempts", "preempt_modes"):
        new, old = getattr(wanted, name), set(getattr(there, name)) - _NO_MODE
        if new is not None and set(new) != old:
            spec = replace(spec, **{name: new})
            words.append(f"{_camel(name)} {_listed(sorted(old))} -> {_listed(sorted(new))}")
    unlike, of_limits = limits.differing(wanted.limits, there.limits)
    return replace(spec, limits=unlike), [*words, *of_limits]


def _association(wanted: AssociationSpec, there: Association) -> tuple[AssociationSpec, list[str]]:
    spec = AssociationSpec(account=wanted.account, cluster=wanted.cluster, user=wanted.user, partition=wanted.partition)
    words = []
    if wanted.shares is not None and wanted.shares != there.shares:
        spec = replace(spec, shares=wanted.shares)
        words.append(f"fairshare {_shares(there.shares)} -> {_shares(wanted.shares)}")
    if wanted.qos is not None and set(wanted.qos) != set(there.qos):
        spec = replace(spec, qos=wanted.qos)
        words.append(f"qos {_listed(sorted(there.qos))} -> {_listed(sorted(wanted.qos))}")
    if wanted.default_qos is not None and wanted.default_qos != there.default_qos:
        spec = replace(spec, default_qos=wanted.default_qos)
        words.append(f"defaultQos {there.default_qos or 'none'} -> {wanted.default_qos}")
    if wanted.is_default and not there.is_default:
        spec = replace(spec, is_default=True)
        words.append("made the default account")
    unlike, of_limits = limits.differing(wanted.limits, there.limits)
    return replace(spec, limits=unlike), [*words, *of_limits]


P = TypeVar("P", QosSpec, AccountSpec)


def _plain(wanted: P, there: Qos | Account, names: Iterable[str]) -> tuple[P, list[str]]:
    """Compare fields that hold one value."""
    found: dict[str, Any] = {}
    words = []
    for name in names:
        new, old = getattr(wanted, name), getattr(there, name)
        if new is not None and new != old:
            found[name] = new
            words.append(f"{_camel(name)} {_said(old)} -> {_said(new)}")
    return type(wanted)(name=wanted.name, **found), words


def _said(value: object) -> str:
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    if isinstance(value, str):
        return repr(cut(value, LONGEST_WORD))
    return "none" if value is None or value is INFINITE else str(value)


def _shares(value: int | None) -> str:
    return "none" if value is None else "parent" if value == PARENT_SHARES else str(value)


def _listed(names: Sequence[str]) -> str:
    return named(names) or "none"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
