"""What is wrong with a tree as a whole: what no rule of the schema can find. Pure.

Nothing is written while a tree has a fault: half of it could mean something else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

from slinky_api.v1alpha1.cluster.accounting_tree import (
    Account,
    AccountTree,
    AssociationLimits,
    QosLimits,
    User,
    UserAssociation,
)

TREE: Final = "spec.accounting.tree"

ROOT: Final = "root"
"""The account above all others, and the user who administers."""

NORMAL: Final = "normal"
"""The QOS that slurmdbd begins with."""

MOST_FAULTS: Final = 5
"""Faults that are looked for."""

DEEPEST: Final = 64
"""Accounts above one another."""


def found(tree: AccountTree) -> tuple[str, ...]:
    """The first faults of a tree, each with its field and what to do."""
    rules = (_accounts, _circles, _qos, _memberships, _users, _coordinators, _resources)
    return tuple(islice(chain.from_iterable(rule(tree) for rule in rules), MOST_FAULTS))


def user_names(tree: AccountTree) -> list[str]:
    """All users that a tree names as such, in its order: coordinators must be among them."""
    names = dict.fromkeys(one.name for one in tree.users)
    names |= dict.fromkeys(name for account in tree.accounts for name in account.users)
    return list(names)


def field_of(kind: str, name: str) -> str:
    """Field of an entry of one of the tree's lists."""
    return f"{TREE}.{kind}[{name}]"


def entry(one: UserAssociation) -> str:
    """What an association of a user is known by."""
    return f"{one.account}, {one.partition}" if one.partition else one.account


def _field(user: User, one: UserAssociation) -> str:
    return f"{field_of('users', user.name)}.associations[{entry(one)}]"


def _entries(tree: AccountTree) -> Iterator[tuple[str, Account | UserAssociation]]:
    """Whatever becomes an association with settings of its own, with its field."""
    yield from ((field_of("accounts", one.name), one) for one in tree.accounts)
    yield from ((_field(user, one), one) for user in tree.users for one in user.associations)


def _accounts(tree: AccountTree) -> Iterator[str]:
    names = {one.name for one in tree.accounts}
    for one in tree.accounts:
        if one.name == ROOT:
            yield f"{field_of('accounts', ROOT)}: root is Slurm's own account, above all others; remove it"
        elif one.parent not in names and one.parent != ROOT:
            yield f"{field_of('accounts', one.name)}.parent: there is no account {one.parent} in the tree; list it too"
    for user in tree.users:
        for each in user.associations:
            if each.account not in names:
                yield f"{_field(user, each)}.account: there is no account {each.account} in the tree; list it too"


def _circles(tree: AccountTree) -> Iterator[str]:
    parents = {one.name: one.parent for one in tree.accounts}
    depths = {ROOT: 0}
    for start in parents:
        seen: dict[str, None] = {}
        name = start
        while name in parents and name not in depths and name not in seen:
            seen[name] = None
            name = parents[name]
        if name in seen:
            around = list(seen)[list(seen).index(name) :]
            yield (
                f"{field_of('accounts', name)}.parent: {' is below '.join([*around[:10], name])}: "
                "an account cannot be below itself; give one of them another parent"
            )
        base = depths.get(name, 0)
        depths |= {each: base + steps for steps, each in enumerate(reversed(seen), start=1)}
        if depths[start] > DEEPEST:
            yield f"{field_of('accounts', start)}.parent: more than {DEEPEST} accounts above one another"


def _qos(tree: AccountTree) -> Iterator[str]:
    known = {NORMAL, *(one.name for one in tree.qos)}
    for path, names in _named_qos(tree):
        for name in names:
            if name not in known:
                yield f"{path}: there is no QOS {name} in the tree; list it under qos, with its name alone if it exists"
    for qos in tree.qos:
        if qos.name in (qos.preempts or ()):
            yield f"{field_of('qos', qos.name)}.preempts: a QOS cannot preempt itself; remove {qos.name} out"
    for path, one in _entries(tree):
        if one.default_qos is not None and one.qos is not None and one.default_qos not in one.qos:
            yield f"{path}.defaultQos: {one.default_qos} is not among the QOS in {path}.qos; add it there"


def _named_qos(tree: AccountTree) -> Iterator[tuple[str, Iterable[str]]]:
    yield from ((f"{field_of('qos', one.name)}.preempts", one.preempts or ()) for one in tree.qos)
    for path, one in _entries(tree):
        yield f"{path}.qos", one.qos or ()
        yield f"{path}.defaultQos", (one.default_qos,) if one.default_qos is not None else ()


def _memberships(tree: AccountTree) -> Iterator[str]:
    counted = Counter((user.name, one.account, one.partition or "") for user in tree.users for one in user.associations)
    counted.update((name, account.name, "") for account in tree.accounts for name in account.users)
    for (name, account_name, _), times in counted.items():
        if times > 1:
            yield (
                f"{field_of('users', name)}: there are {times} entries for account {account_name}, in the user's "
                "associations or the account's users; leave one"
            )


def _users(tree: AccountTree) -> Iterator[str]:
    members = {(name, account.name) for account in tree.accounts for name in account.users}
    members |= {(user.name, one.account) for user in tree.users for one in user.associations}
    for user in tree.users:
        if user.default_account is not None and (user.name, user.default_account) not in members:
            yield (
                f"{field_of('users', user.name)}.defaultAccount: {user.name} is not in account "
                f"{user.default_account}; add it to the user's associations or to the account's users"
            )


def _coordinators(tree: AccountTree) -> Iterator[str]:
    names = {*user_names(tree), ROOT}
    for account in tree.accounts:
        for name in account.coordinators or ():
            if name not in names:
                path = f"{field_of('accounts', account.name)}.coordinators"
                yield f"{path}: there is no user {name} in the tree; list the user under users or in an account"


def _resources(tree: AccountTree) -> Iterator[str]:
    every: list[tuple[str, AssociationLimits | QosLimits]] = [
        (field_of("qos", one.name), one.limits) for one in tree.qos
    ]
    every += [(path, one.limits) for path, one in _entries(tree)]
    for path, limits in every:
        for name, value in vars(limits).items():
            if not isinstance(value, str) or "=" not in value:
                continue
            twice = [
                key for key, times in Counter(word.partition("=")[0] for word in value.split(",")).items() if times > 1
            ]
            if twice:
                alias = type(limits).model_fields[name].alias
                yield f"{path}.limits.{alias}: {twice[0]} is there twice; leave one"
