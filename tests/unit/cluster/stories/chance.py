"""Choices by a seed, the same on every machine and with every release of Python."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Chance:
    """Choices, one after the other."""

    def __init__(self, seed: str) -> None:
        self._seed, self._count = seed, 0

    def below(self, most: int) -> int:
        """A number from 0 to less than `most`."""
        self._count += 1
        digest = hashlib.sha256(f"{self._seed} {self._count}".encode()).digest()
        return int.from_bytes(digest[:8]) % most

    def one_of(self, choices: Sequence[T]) -> T:
        """One of several."""
        return choices[self.below(len(choices))]
