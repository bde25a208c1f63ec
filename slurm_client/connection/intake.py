"""
Memory limits of answers: of a single one, of all concurrent ones, and of what is kept of them.

The server decides how long an answer is, and need not be Slurm. Clients of one process share an :class:`Intake`, and
each names its owner. When concurrent answers together take too much, the largest answer of the owner with the most
fails with :class:`~slurm_client.errors.TooLarge`, and all others continue.

What an answer means is left to :mod:`slurm_client.connection.answers`; this module only receives it.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from typing import TYPE_CHECKING, Self

from slurm_client import errors
from slurm_client.connection.body.pieces import PIECE, Pieces
from slurm_client.slices import Slices

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from types import TracebackType

    import httpx

__all__ = ["MIB", "Excess", "Hold", "Intake", "receive"]

MIB = 2**20

_PIECES = 4096
_SHORT = 64
"""Bytes that a piece has on average, where there are many: each costs as much as reading some hundred bytes."""

_ASTRAL = re.compile("[\U00010000-\U0010ffff]")


class Excess(Exception):
    """There is no more room; the text says for what. Becomes :class:`~slurm_client.errors.TooLarge`."""


class Intake:
    """
    Room for answers, shared by clients.

    Parameters
    ----------
    answer
        Bytes that one answer may have.
    at_once
        Bytes that all answers under way may have together.
    kept
        Bytes that may be kept for one owner of lists that are asked for again and again.
    """

    def __init__(self, answer: int = 128 * MIB, at_once: int | None = None, kept: int | None = None) -> None:
        self.answer = answer
        self.at_once = at_once if at_once is not None else answer + answer // 2
        self.kept = kept if kept is not None else 2 * answer
        self.taken = 0
        """Bytes of the answers under way."""
        self._holds: set[Hold] = set()
        self._kept: dict[tuple[str, Hashable], int] = {}

    def open(self, owner: str, give_up: Callable[[], None], limit: int | None = None) -> Hold:
        """
        Begin an answer on behalf of ``owner``.

        Parameters
        ----------
        give_up
            Called when it has to give way.
        limit
            Bytes that this answer may have, where that is fewer than for others.
        """
        hold = Hold(self, owner, give_up, self.answer if limit is None else min(limit, self.answer))
        self._holds.add(hold)
        return hold

    def keep(self, owner: str, what: Hashable, size: int) -> None:
        """
        Take note that something of that size is kept, in the place of what was kept under that name.

        Raises
        ------
        Excess
            If too much is kept for that owner; nothing is kept under that name then.
        """
        self._kept.pop((owner, what), None)
        others = sum(kept for (one, _), kept in self._kept.items() if one == owner)
        if others + size > self.kept:
            raise Excess(f"what is kept of the answers to {owner or 'this client'} takes more than {self.kept} bytes")
        self._kept[owner, what] = size

    def forget(self, owner: str, what: Hashable) -> None:
        """Take note that nothing is kept under that name any more."""
        self._kept.pop((owner, what), None)

    def _make_room(self, hold: Hold) -> None:
        """Let the largest answer of the largest owner give way; Excess if that is this one."""
        while self.taken > self.at_once:
            owners = Counter[str]()
            for one in self._holds:
                owners[one.owner] += one.size
            largest = max(owners, key=lambda owner: (owners[owner], owner == hold.owner))
            victim = max((one for one in self._holds if one.owner == largest), key=lambda one: (one.size, one is hold))
            if victim is hold:
                raise Excess(f"answers take more than {self.at_once} bytes together, and this one most")
            victim.end()


class Hold:
    """The room that one answer takes while it is received and read. Made by `Intake.open`."""

    def __init__(self, intake: Intake, owner: str, give_up: Callable[[], None], limit: int) -> None:
        self.intake = intake
        self.owner = owner
        self.limit = limit
        self.size = 0
        self.ended = False
        """Whether it had to give way."""
        self._give_up = give_up

    def grow(self, size: int) -> None:
        """
        Take more room.

        Raises
        ------
        Excess
            If there is none.
        """
        self.size += size
        self.intake.taken += size
        if self.size > self.limit:
            raise Excess(f"it has more than {self.limit} bytes")
        self.intake._make_room(self)  # noqa: SLF001 - an intake and its holds are one

    def end(self) -> None:
        """Give way to others."""
        self.ended = True
        self._release()
        self._give_up()

    def _release(self) -> None:
        self.intake.taken -= self.size
        self.size = 0
        self.intake._holds.discard(self)  # noqa: SLF001 - an intake and its holds are one

    def __enter__(self) -> Self:
        """Return the hold."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()


async def receive(response: httpx.Response, request: errors.Request, hold: Hold, seen: Callable[[int], None]) -> Pieces:
    """
    Return the text of an answer, received piece by piece.

    Nobody asks for compressed answers, so a compressed one is refused: a few kilobytes could become gigabytes in one
    step. An answer that says itself that it is too long is refused before its first byte is read. Short
    pieces are put together before they are decoded, with pauses for the event loop; an answer in thousands of pieces
    of a few bytes is refused, since each takes as much time as one of kilobytes.

    Parameters
    ----------
    seen
        Told the bytes of each piece.

    Raises
    ------
    Excess
        If there is no room for it.
    DecodeError
        If it is compressed.
    """
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in {"", "identity"}:
        raise errors.DecodeError("the answer is compressed, which was not asked for", request=request)
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > hold.limit:
        raise Excess(f"it has more than {hold.limit} bytes")
    text = _Text(hold)
    pending = bytearray()
    slices = Slices()
    received = count = 0
    async for piece in response.aiter_bytes():
        received, count = received + len(piece), count + 1
        if count > _PIECES and received < count * _SHORT:
            raise Excess(f"it comes in more than {_PIECES} pieces of less than {_SHORT} bytes")
        seen(len(piece))
        hold.grow(len(piece))
        pending += piece
        if len(pending) >= PIECE:
            text.add(pending)
            pending.clear()
        # There may be thousands of pieces in what has been received already.
        await slices.breathe()
    text.add(pending, final=True)
    return text.pieces()


class _Text:
    """
    What has been received, decoded.

    Characters beyond the first 65,536 become escapes, as JSON knows them: a single one would let the whole text take
    four times its room.
    """

    def __init__(self, hold: Hold) -> None:
        self._hold = hold
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._parts: list[str] = []
        self._wide = False

    def add(self, piece: bytes | bytearray, *, final: bool = False) -> None:
        """Decode a piece and take the room that it needs beyond its bytes, for which it is taken already."""
        text = self._decoder.decode(piece, final)
        if not text.isascii():
            text = _ASTRAL.sub(_escaped, text)
            if not self._wide:
                self._wide = True
                self._hold.grow(self._hold.size - len(piece))
        self._hold.grow(max(len(piece), len(text)) * (2 if self._wide else 1) - len(piece))
        self._parts.append(text)

    def pieces(self) -> Pieces:
        """Return all of it."""
        return Pieces(self._parts)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found.group()) - 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
