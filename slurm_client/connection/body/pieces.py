"""
A text in pieces, as it was received: taken from the front, each piece once, and never put together.

One text of a hundred megabytes would be copied in one go, while the event loop stands still, and given back in another.
What is in the text is left to :mod:`slurm_client.connection.body.parsing`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["PIECE", "Pieces"]

PIECE = 64 * 1024
"""Characters that are taken at once, at most."""

_BEGINNING = 500


class Pieces:
    """
    A text in pieces.

    Parameters
    ----------
    pieces
        The text; longer ones than :data:`PIECE` are taken in parts.

    Attributes
    ----------
    beginning
        The first characters, a few hundred, also after they were taken.
    """

    def __init__(self, pieces: Iterable[str] = ()) -> None:
        self._pieces = deque(piece for piece in pieces if piece)
        self._offset = 0
        """Characters of the first piece that have been taken."""
        self.beginning = self._first(_BEGINNING)

    def __bool__(self) -> bool:
        """Whether anything is left."""
        return bool(self._pieces)

    def take(self) -> str:
        """Return what comes next; an empty text at the end."""
        if not self._pieces:
            return ""
        first, begin = self._pieces[0], self._offset
        if len(first) - begin > PIECE:
            self._offset = begin + PIECE
            return first[begin : self._offset]
        self._pieces.popleft()
        self._offset = 0
        return first[begin:] if begin else first

    def ahead(self) -> Iterator[tuple[str, int]]:
        """Give the pieces that are left, each with the position in it from which on it is left; nothing is taken."""
        begin = self._offset
        for piece in self._pieces:
            yield piece, begin
            begin = 0

    def _first(self, count: int) -> str:
        found = ""
        for piece in self._pieces:
            found += piece[: count - len(found)]
            if len(found) == count:
                break
        return found
