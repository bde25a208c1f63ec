"""How much memory the cached objects of a namespace may take, and what is left out.

Anybody who may create objects in a namespace decides how many there are and how long they are. So each object is
measured when it is stored, and a namespace whose objects take more than its budget gets no further ones: they are
counted here, and kept as stubs (`stubs`) or not at all. All namespaces together have a `total.Total`, which says who
gives way once it is used up.

Who must be informed, and which rules must not run while objects are missing, is left to `reconcile.cached.caches`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from sys import getsizeof
from typing import Any, Final

from slinky_operator.kube.cache.total import Total

MIB: Final = 2**20

LIMIT: Final = 128 * MIB
"""Bytes of a namespace by default, for the objects that users write and for those that the operator owns, each."""

FOR_STUBS: Final = 1.5
"""How often the limit all objects of a namespace may take, stubs included. Beyond that not even a stub is kept."""

SHARED_KEY: Final = 64
"""Characters of a key up to which its text is taken for shared between objects: the decoder keeps one of each."""


def footprint(document: Any) -> int:
    """Bytes of memory that a document of mappings, lists and scalars takes, roughly.

    Measured, not computed from the length of its JSON: one character beyond Latin-1 doubles or quadruples a text.
    """
    total = 0
    waiting = [document]
    while waiting:
        one = waiting.pop()
        total += getsizeof(one)
        if isinstance(one, dict):
            total += sum(getsizeof(key) for key in one if len(key) > SHARED_KEY)
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return total


class OverBudgetError(Exception):
    """A namespace has more objects than its budget: rules that need all of them must not run.

    Attributes
    ----------
    retry_after
        Seconds until the next attempt, at least.
    expected
        Never: somebody must act.
    """

    retry_after: float | None = 30.0
    expected = False


@dataclass(slots=True)
class Account:
    """What a namespace has in the caches."""

    taken: int = 0
    """Bytes of what is kept."""

    objects: int = 0
    """Objects that were left out, or kept as stubs."""

    left_out: int = 0
    """Bytes that these would take."""


class Budget:
    """The accounts of all namespaces; several stores share one.

    Parameters
    ----------
    limit
        Bytes of a namespace. Cluster-scoped objects have no limit: only administrators write them.
    total
        What all namespaces may take, with those of other budgets; None for no limit.
    """

    def __init__(self, limit: int = LIMIT, total: Total | None = None) -> None:
        self.limit = limit
        self.total = total
        self._accounts: dict[str, Account] = {}

    def fits(self, namespace: str, more: int, *, stub: bool = False) -> bool:
        """Whether a namespace may take so many bytes more."""
        if not namespace or more <= 0:
            return True
        limit = self.limit * (FOR_STUBS if stub else 1.0)
        within = self.account(namespace).taken + more <= limit
        return within and (self.total is None or self.total.fits(namespace, more, stub=stub))

    def take(self, namespace: str, more: int) -> None:
        """Count bytes that a namespace takes from now on; negative for those that it gives back."""
        account = self._accounts.setdefault(namespace, Account())
        account.taken += more
        self._tidy(namespace, account)
        if self.total is not None and namespace:
            self.total.take(namespace, more)

    def leave_out(self, namespace: str, objects: int, size: int) -> None:
        """Count objects that were left out, with the bytes they would take; negative for those that are no longer."""
        account = self._accounts.setdefault(namespace, Account())
        account.objects += objects
        account.left_out += size
        self._tidy(namespace, account)

    def account(self, namespace: str) -> Account:
        """What a namespace has; not to be changed."""
        return self._accounts.get(namespace) or Account()

    def is_short(self, namespace: str) -> bool:
        """Whether a namespace would have room for what was left out, if others took less."""
        one = self.account(namespace)
        return self.total is not None and bool(one.objects) and one.taken + one.left_out / one.objects <= self.limit

    def over(self) -> Iterator[tuple[str, Account]]:
        """Namespaces with objects that were left out."""
        yield from ((namespace, one) for namespace, one in self.accounts.items() if one.objects)

    @property
    def accounts(self) -> Mapping[str, Account]:
        """All namespaces with objects, as they are now: metrics are written in a thread."""
        return dict(self._accounts)

    def has(self, namespace: str) -> bool:
        """Whether anything of a namespace is kept, or left out."""
        return namespace in self._accounts

    def _tidy(self, namespace: str, account: Account) -> None:
        if account == Account():
            del self._accounts[namespace]
