"""Results that are kept for short texts only: what is kept outlives the answer that the text was in."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, TypeVar

from slurm_client.models.values import State
from slurm_exporter.samples import words

T = TypeVar("T")
K = TypeVar("K")
S = TypeVar("S", bound=State)

SHORT: Final = 256
"""Most characters of a text whose result is kept."""


def shared(most: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Keep what a reader made of so many short texts."""
    return lambda make: _keeping(make, lambda text: len(text) <= SHORT, most)


def shared_states(most: int) -> Callable[[Callable[[S], T]], Callable[[S], T]]:
    """Keep what a reader made of so many states in Slurm's own words."""
    return lambda make: _keeping(make, words.is_known, most)


def _keeping(make: Callable[[K], T], is_kept: Callable[[K], bool], most: int) -> Callable[[K], T]:
    known = lru_cache(maxsize=most)(make)

    @wraps(make)
    def read(found: K) -> T:
        return known(found) if is_kept(found) else make(found)

    return read
