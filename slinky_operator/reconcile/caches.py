"""The caches of all controllers: each kind is watched once, with the indexes that any of them needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from slinky_operator.kube.cache.informer import Informer, prune_managed_fields
from slinky_operator.kube.cache.mirror import Mirror
from slinky_operator.kube.cache.store import Indexer, Store
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource


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

    Raises
    ------
    ValueError
        Two controllers want different objects of one kind: it would be watched twice.
    """

    def __init__(
        self, client: KubeClient, specs: Iterable[CacheSpec], *, namespaces: Sequence[str], relist_every: float
    ) -> None:
        self.mirrors: tuple[Mirror, ...] = ()
        """The caches that kopf feeds."""
        self.by_resource: dict[Resource, Mirror | Informer] = {}
        for spec in merged(specs):
            resource = spec.resource
            if spec.mirrored:
                mirror = Mirror(
                    client,
                    resource,
                    namespaces=namespaces,
                    indexers=spec.indexers,
                    prune=spec.prune,
                    relist_every=relist_every,
                )
                self.mirrors = (*self.mirrors, mirror)
                self.by_resource[resource] = mirror
            else:
                self.by_resource[resource] = Informer(
                    client,
                    resource,
                    namespaces=namespaces if resource.namespaced else (),
                    label_selector=spec.label_selector,
                    indexers=spec.indexers,
                    prune=spec.prune,
                )

    @property
    def all(self) -> Sequence[Mirror | Informer]:
        """Every cache, those of what users write first."""
        return *self.mirrors, *(one for one in self.by_resource.values() if one not in self.mirrors)

    def store(self, resource: Resource) -> Store:
        """The store of a kind that some controller wants.

        Raises
        ------
        KeyError
            No controller has asked for it.
        """
        return self.by_resource[resource].store


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
        if replace(known, indexers={}) != replace(spec, indexers={}):
            raise ValueError(f"two controllers want different {spec.resource.plural}")
        for name in known.indexers.keys() & spec.indexers.keys():
            if known.indexers[name] is not spec.indexers[name]:
                raise ValueError(f"index {name} of {spec.resource.plural} has two meanings")
        found[spec.resource] = replace(known, indexers={**known.indexers, **spec.indexers})
    return list(found.values())
