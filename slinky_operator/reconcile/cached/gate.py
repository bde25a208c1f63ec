"""Which passes wait because a cache does not have all that their rules read.

What is missing from a cache must not be taken for absent: a pod that is not seen may run jobs, a ConfigMap that is not
seen may be the configuration. So there is no pass over an object whose namespace has yet to be listed, and none while
objects of its namespace are left out of a cache that its controller reads. Its conditions say so. Nor is there a pass
in a namespace that another release serves: that one writes the conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final, Protocol

from slinky_operator.kube.cache.budget import MIB, Budget, OverBudgetError
from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.cache.stubs import is_stub, may_be_told
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource
from slinky_operator.reconcile.cached.caches import Caches
from slinky_operator.reconcile.reconciler import Postponed
from slinky_operator.runtime.controller import Result

NOT_SHOWN_S: Final = 0.1
"""Seconds until the next look for a namespace that is being listed."""

ELSEWHERE_S: Final = 10.0
"""The same for a namespace that another release of this operator serves."""

GIVES_WAY_S: Final = 1.0
"""The same for a namespace whose objects are about to be left out."""

ABSENT_S: Final = 30.0
"""The same for an object that is left out itself, or gone: nobody knows."""


class Passes(Protocol):
    """What is used of a `reconciler.Reconciler`."""

    async def reconcile(self, key: Key) -> Result:
        """Run one pass."""
        ...


class Gate:
    """Passes of a controller, where nothing is missing.

    Parameters
    ----------
    passes
        The controller's.
    resource
        The kind that it reconciles.
    reads
        The kinds that it reads.
    caches
        All caches.
    elsewhere
        Gives the namespaces that another release of this operator serves.
    """

    def __init__(
        self,
        passes: Passes,
        resource: Resource,
        reads: Collection[Resource],
        caches: Caches,
        elsewhere: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._passes = passes
        self._resource = resource
        self._reads = frozenset({resource, *reads})
        self._caches = caches
        self._elsewhere = elsewhere

    async def reconcile(self, key: Key) -> Result:
        """Run one pass, unless something is missing.

        Raises
        ------
        OverBudgetError
            Objects of the namespace are left out.
        """
        if key[0] in self._elsewhere():
            return Postponed(ELSEWHERE_S)
        own = self._caches.by_resource.get(self._resource)
        obj = own.store.get(*key) if own is not None else None
        if obj is not None and is_stub(obj):
            if not may_be_told(obj):
                return Postponed(ABSENT_S)
            raise OverBudgetError(_left_out(key[0], self._caches.of_users, "this object"))
        namespaces = tuple(_namespaces(key, obj))
        for namespace in namespaces:
            if not self._is_shown(namespace):
                return Postponed(NOT_SHOWN_S)
            for budget in self._lacking(namespace):
                if obj is None:
                    return Postponed(ABSENT_S)
                raise OverBudgetError(_left_out(namespace, budget, "what is left out"))
        return await self._run(key, namespaces)

    async def _run(self, key: Key, namespaces: Collection[str]) -> Result:
        """Run one pass, during which nothing of these namespaces gives way."""
        total = self._caches.total
        if total is None:
            return await self._passes.reconcile(key)
        if any(map(total.must_give_way, namespaces)):
            # Objects of the namespace are about to be left out, once no pass reads them.
            return Postponed(GIVES_WAY_S)
        with total.used(namespaces):
            return await self._passes.reconcile(key)

    def _is_shown(self, namespace: str) -> bool:
        found = (self._caches.by_resource.get(one) for one in self._reads)
        return all(one.is_shown(namespace) for one in found if isinstance(one, Informer))

    def _lacking(self, namespace: str) -> Iterator[Budget]:
        """Budgets of caches from which objects of the namespace are missing."""
        for one in self._reads:
            cache = self._caches.by_resource.get(one)
            if cache is not None and cache.store.missing(namespace) and cache.store.budget is not None:
                yield cache.store.budget


def _namespaces(key: Key, obj: Object | None) -> Iterator[str]:
    """Namespaces that rules about an object read: its own, and that of the Cluster that it names."""
    yield key[0]
    spec = (obj or {}).get("spec")
    other = spec.get("clusterNamespace") if isinstance(spec, dict) else None
    if isinstance(other, str) and other != key[0]:
        yield other


def _left_out(namespace: str, budget: Budget, what: str) -> str:
    account = budget.account(namespace)
    missing = f"{what} was not read, {account.objects} objects and {account.left_out / MIB:.0f} MiB in all"
    consequence = (
        "Until they fit, the operator starts, drains and deletes nothing for this object. Delete large or superfluous "
        "objects that have the operator's labels or are of its kinds, or raise"
    )
    if budget.total is not None and budget.is_short(namespace):
        return (
            f"the operator's memory budget of {budget.total.limit / MIB:.0f} MiB for all namespaces is used up, and "
            f"namespace {namespace} has more than its share of {budget.total.share(namespace) / MIB:.0f} MiB: "
            f"{missing}. {consequence} the memory limit of the operator"
        )
    return (
        f"namespace {namespace} is over the operator's memory budget of {budget.limit / MIB:.0f} MiB for a namespace: "
        f"{missing}. {consequence} namespaceBudget of the chart"
    )
