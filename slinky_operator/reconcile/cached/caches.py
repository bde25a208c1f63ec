"""The caches of all controllers: each kind is watched once, with the indexes that any of them needs.

Their memory is bounded for each namespace (`kube.cache.budget`): what users write has one budget, what the operator
owns has another, so that long specs do not hide pods. All together have a total (`kube.cache.total`). Which passes wait
while something is missing, `gate` decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from slinky_operator.kube import errors
from slinky_operator.kube.cache.budget import LIMIT, Budget
from slinky_operator.kube.cache.informer import Informer, prune_managed_fields
from slinky_operator.kube.cache.interest import Interest
from slinky_operator.kube.cache.mirror import Mirror
from slinky_operator.kube.cache.store import Indexer, Store
from slinky_operator.kube.cache.total import Total
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource
from slinky_operator.reconcile.cached.bound_pods import BoundPods
from slinky_operator.reconcile.cached.ownership import CLAIMS

logger = logging.getLogger(__name__)

REFILL_S: Final = 30.0
"""Seconds between two looks for objects that did not fit into a budget and would now."""


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """What a controller reads of one kind."""

    resource: Resource
    indexers: Mapping[str, Indexer] = field(default_factory=dict)
    label_selector: str | None = None
    """Evaluated by the API server; None for all objects."""
    prune: Callable[[Object], None] = prune_managed_fields
    """Shortens an object in place before it is stored."""
    mirrored: bool = False
    """Whether users write the kind: then kopf watches it and feeds a mirror."""
    owners: frozenset[Resource] = frozenset()
    """Kinds to which its objects belong: in a namespace without any of these nothing is kept. None: all is kept."""
    is_of_users: bool = False
    """Whether users write its objects, although no mirror watches them: they count in the budget of users."""
    bound_to: Resource | None = None
    """Of pods, the cache of the Nodes whose pods are watched; None for those of all Nodes."""


class Caches:
    """The caches, by kind.

    Parameters
    ----------
    client
        Lists and watches.
    specs
        What controllers want; the same kind may come several times.
    namespaces
        Namespaces to watch; none means all.
    relist_every
        Seconds between two comparisons of a mirror with a list.
    budget
        Bytes that the objects of a namespace may take: those that users write, and those that the operator owns.
    total
        Bytes that those of all namespaces may take together; None for no limit.

    Raises
    ------
    ValueError
        Two controllers want different objects of one kind: it would be watched twice.
    """

    def __init__(
        self,
        client: KubeClient,
        specs: Iterable[CacheSpec],
        *,
        namespaces: Sequence[str],
        relist_every: float,
        budget: int = LIMIT,
        total: int | None = None,
    ) -> None:
        self.total = None if total is None else Total(total)
        """What all namespaces take together; None if nobody limits that."""
        self.of_users = Budget(budget, self.total)
        """What users write."""
        self.of_operator = Budget(budget, self.total)
        """What the operator owns, or seems to own by its labels."""
        self.interests: dict[frozenset[Resource], Interest] = {}
        """Which namespaces count, by the kinds of owners."""
        self.by_resource: dict[Resource, Mirror | Informer] = {}
        wanted = merged(specs)
        for spec in wanted:
            if spec.mirrored:
                self.by_resource[spec.resource] = Mirror(
                    client,
                    spec.resource,
                    namespaces=namespaces,
                    indexers=spec.indexers,
                    prune=spec.prune,
                    relist_every=relist_every,
                    budget=self.of_users,
                )
        for spec in wanted:
            if not spec.mirrored and spec.bound_to is None:
                self.by_resource[spec.resource] = Informer(
                    client,
                    spec.resource,
                    namespaces=namespaces if spec.resource.namespaced else (),
                    label_selector=spec.label_selector,
                    indexers=spec.indexers,
                    prune=spec.prune,
                    budget=self.of_users if spec.is_of_users else self.of_operator,
                    interest=self._interest(spec.owners),
                    claim=CLAIMS[spec.resource] if spec.owners else None,
                )
        for spec in wanted:
            nodes = self.by_resource[spec.bound_to] if spec.bound_to is not None else None
            if isinstance(nodes, Informer):
                # Users write these pods.
                self.by_resource[spec.resource] = BoundPods(
                    client,
                    spec.resource,
                    nodes,
                    indexers=spec.indexers,
                    prune=spec.prune,
                    budget=self.of_users,
                )

    @property
    def mirrors(self) -> Sequence[Mirror]:
        """The caches that kopf feeds."""
        return [one for one in self.by_resource.values() if isinstance(one, Mirror)]

    def _interest(self, kinds: frozenset[Resource]) -> Interest | None:
        found = [self.by_resource[kind] for kind in self.by_resource if kind in kinds]
        if not found:
            return None
        known = frozenset(one.resource for one in found)
        if known not in self.interests:
            self.interests[known] = Interest(found, self.of_operator)
        return self.interests[known]

    @property
    def all(self) -> Sequence[Mirror | Informer]:
        """Every cache, those of what users write first."""
        mirrors = self.mirrors
        return *mirrors, *(one for one in self.by_resource.values() if one not in mirrors)

    def store(self, resource: Resource) -> Store:
        """The store of a kind that some controller wants.

        Raises
        ------
        KeyError
            No controller has asked for it.
        """
        return self.by_resource[resource].store

    async def refill(self) -> None:
        """List what did not fit into a budget once it would, until cancelled."""
        while True:
            await asyncio.sleep(REFILL_S)
            for cache in self.all:
                for namespace in sorted(cache.store.has_room_for_more()):
                    try:
                        await cache.show(namespace)
                    except errors.KubeError as error:
                        logger.log(errors.level_of(error), "%s in %s: %s", cache.resource, namespace, error)


def merged(specs: Iterable[CacheSpec]) -> list[CacheSpec]:
    """One specification for each kind, with the indexes of all.

    Raises
    ------
    ValueError
        Two of one kind differ in more than their indexes, or give one index two meanings.
    """
    found: dict[Resource, CacheSpec] = {}
    for spec in specs:
        known = found.setdefault(spec.resource, spec)
        owners = known.owners | spec.owners if known.owners and spec.owners else frozenset[Resource]()
        if replace(known, indexers={}, owners=owners) != replace(spec, indexers={}, owners=owners):
            raise ValueError(f"two controllers want different {spec.resource.plural}")
        for name in known.indexers.keys() & spec.indexers.keys():
            if known.indexers[name] is not spec.indexers[name]:
                raise ValueError(f"index {name} of {spec.resource.plural} has two meanings")
        found[spec.resource] = replace(known, indexers={**known.indexers, **spec.indexers}, owners=owners)
    return list(found.values())
