"""What a fault is: how it begins, how it ends, how long it lasts, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from hack.localkube.cluster import Cluster
from tests.campaign.site.disks import Disks
from tests.support.api_proxy import ApiProxy


class Place(Protocol):
    """Where faults happen: the parts of a site that break."""

    @property
    def cluster(self) -> Cluster: ...

    @property
    def disks(self) -> Disks: ...

    @property
    def proxy(self) -> ApiProxy:
        """The way of the operator to the API server."""
        ...


Doing = Callable[[Place, Mapping[str, Any]], str]
"""Breaks something; returns what it did, in words."""

Ending = Callable[[Place, Mapping[str, Any]], None]
"""Mends it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault.

    Attributes
    ----------
    begin
        Breaks it; the values are those that were drawn.
    end
        Mends it, where it does not mend itself.
    lasts
        Seconds between both, least and most; 0 for what happens at once.
    weight
        How often, compared with others.
    choices
        Further values to draw from, by name.
    """

    begin: Doing
    end: Ending | None = None
    lasts: tuple[float, float] = (0, 0)
    weight: int = 2
    choices: Mapping[str, tuple[Any, ...]] | None = None

    def draw(self, random: Random) -> dict[str, Any]:
        values: dict[str, Any] = {"which": random.randrange(6)}
        if self.end is not None:
            values["lasts"] = round(random.uniform(*self.lasts), 1)
        return {**values, **{name: random.choice(choices) for name, choices in (self.choices or {}).items()}}

    @contextmanager
    def during(self, place: Place, values: Mapping[str, Any]) -> Iterator[str]:
        """Break it, and mend it whatever happens."""
        try:
            yield self.begin(place, values)
        finally:
            if self.end is not None:
                self.end(place, values)
