"""What a seed must have: each lane's kinds are dealt to ten seeds like cards, so that none is forgotten. Pure.

Weights alone leave rare kinds out for dozens of seeds. Seeds 10 to 19 share one shuffled deck of each lane, seeds 20 to
29 the next one; whatever twenty seeds are played in a row have at least one whole deck among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

SEATS: Final = 10
"""Seeds that share a deck."""


@dataclass(frozen=True, slots=True)
class Card:
    """A kind that is drawn once in each deck.

    Attributes
    ----------
    name
        In the table of its lane.
    values
        What is not left to the draw: a kind with several of these has several cards.
    """

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)


def hand(seed: int, lane: str, cards: Sequence[Card]) -> list[Card]:
    """Return the cards that a seed gets of a lane."""
    block, seat = divmod(seed, SEATS)
    random = Random(f"{block}/{lane}")  # noqa: S311 to be dealt again is what it is for
    # Seats without a card are at random, too.
    deck: list[Card | None] = [*cards, *[None] * (SEATS - len(cards))]
    random.shuffle(deck)
    return [one for one in deck[seat::SEATS] if one is not None]
