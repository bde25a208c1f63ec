"""What a fault is: how it begins and ends, how long it lasts, what shows that it has met something, and where."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, TypeVar

from hack.localkube.cluster import Cluster
from tests.campaign.site.disks import Disks
from tests.support.api_proxy import ApiProxy


class MetNothing(Exception):
    """A fault that broke nothing: what was to be broken is not there, or goes on as before."""


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
"""Breaks something; returns what it did, in words, and raises `MetNothing` where it broke nothing."""

Ending = Callable[[Place, Mapping[str, Any]], None]
"""Mends it."""

Meeting = Callable[[Place], str]
"""What has met a fault that waits for something; raises `MetNothing`, too."""

T = TypeVar("T")


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
    met
        What it has met meanwhile, where that is not known when it begins.
    """

    begin: Doing
    end: Ending | None = None
    lasts: tuple[float, float] = (0, 0)
    weight: int = 2
    choices: Mapping[str, tuple[Any, ...]] | None = None
    met: Meeting | None = None

    def draw(self, random: Random) -> dict[str, Any]:
        values: dict[str, Any] = {"which": random.randrange(6)}
        if self.end is not None:
            values["lasts"] = round(random.uniform(*self.lasts), 1)
        return {**values, **{name: random.choice(choices) for name, choices in (self.choices or {}).items()}}

    def play(self, place: Place, values: Mapping[str, Any], wait: Callable[[float], None] = time.sleep) -> str:
        """Break it, and mend it whatever happens; returns what was done and met.

        Parameters
        ----------
        wait
            Lets seconds go by.

        Raises
        ------
        MetNothing
            It broke nothing.
        """
        try:
            said = self.begin(place, values)
            wait(float(values.get("lasts", 0)))
            return f"{said}, {self.met(place)}" if self.met else said
        finally:
            if self.end is not None:
                self.end(place, values)


def soon(look: Callable[[], T], patience: float) -> T:
    """What a look finds as soon as it finds something, or in the end."""
    deadline = time.monotonic() + patience
    while not (found := look()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found
