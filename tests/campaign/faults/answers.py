"""Faults of the API server as the operator alone sees it: slow, refusing, without answers, with watches that end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.campaign.faults.kind import Doing, Fault, MetNothing, Place, soon
from tests.support.api_proxy import NONE, Treatment, Trouble

SHARES: Final = (0.2, 0.5, 1.0)
"""Of the requests that meet it."""

MEETS: Final = 120.0
"""Seconds in which a request must meet it, beyond those that were drawn: both operators may just begin again."""


def _begin(trouble: Trouble) -> Doing:
    def begin(place: Place, values: Mapping[str, Any]) -> str:
        place.proxy.begin(_drawn(trouble, values))
        return f"for {values['share']:.0%} of the operator's requests"

    return begin


def _drawn(trouble: Trouble, values: Mapping[str, Any]) -> Trouble:
    return Trouble(trouble.code, values.get("delay", trouble.delay), trouble.unanswered, trouble.drops, values["share"])


def _end(place: Place, values: Mapping[str, Any]) -> None:
    place.proxy.begin(NONE)


def _met(place: Place) -> str:
    """How many requests have met it."""

    def met() -> dict[str, int]:
        return {name: count for name, count in place.proxy.counts.items() if name != Treatment.PASS.value}

    found = soon(met, MEETS)
    if not found:
        raise MetNothing("no request met it")
    return ", ".join(f"{count} {name}" for name, count in found.items())


def _of(trouble: Trouble, lasts: tuple[float, float] = (4, 20), **choices: tuple[Any, ...]) -> Fault:
    return Fault(_begin(trouble), _end, lasts, choices={"share": SHARES, **choices}, met=_met)


ANSWERS: Final[Mapping[str, Fault]] = {
    "API server slow": _of(Trouble(), delay=(0.3, 1.5, 6.0)),
    "API server says 409": _of(Trouble(code=409)),
    "API server says 429": _of(Trouble(code=429)),
    "API server says 500": _of(Trouble(code=500)),
    "writes without an answer": _of(Trouble(unanswered=True)),
    "watches dropped": _of(Trouble(drops=True), (1, 15)),
}


def mend(place: Place) -> None:
    """Let the proxy pass everything on."""
    place.proxy.begin(NONE)
