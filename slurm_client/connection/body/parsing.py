"""
JSON read piece by piece, with an eye on the time and on the memory that it takes.

The parser written in C is quick but reads a value to its end whatever that takes: the event loop stands still, and a
text of empty lists becomes twenty times its size. So it is given windows of a text. A value that does not end within
one is an object or a list whose members are read one by one.

What the values mean is left to :mod:`slurm_client.connection.answers`.
"""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any

from slurm_client.connection.body.pieces import PIECE
from slurm_client.slices import Slices

if TYPE_CHECKING:
    from slurm_client.connection.body.pieces import Pieces

__all__ = ["Cut", "Malformed", "Overweight", "Parser"]

_WINDOW = PIECE
"""Characters that a value must have at least before its members are read one by one."""

_LONGEST_WINDOW = 4 * PIECE
"""Characters that the parser written in C is given at most."""

_LONGEST_TEXT = 2**20
_DEPTH = 64
_MOST_BLANKS = 10_000
_PER_VALUE = 64
"""Bytes that a small object takes, more or less."""

_BLANKS = re.compile(rf"[ \t\r\n]{{0,{_MOST_BLANKS}}}")
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


class Malformed(ValueError):
    """It is no JSON, or not what is wanted. The message quotes nothing of it."""


class Cut(Malformed):
    """It ends before it is complete."""


class Overweight(Exception):
    """What was read takes more memory than it may."""


class _Longer(Exception):
    """A value does not end within the window."""


class Parser:
    """
    Reads one text from its beginning to its end.

    Parameters
    ----------
    text
        The text; its pieces are taken as they are read.
    room
        Bytes that may be taken for what is read, more or less.
    """

    def __init__(self, text: Pieces, room: int) -> None:
        self._text = text
        self._buffer = ""
        """What has been taken of the text and not yet been passed."""
        self._at = 0
        self._passed = 0
        """Characters before the buffer."""
        self._noted: list[str] | None = None
        """What was passed since `note` and is no longer in the buffer."""
        self._noted_from = 0
        self.room = room
        self.weight = 0
        """Bytes taken so far."""
        self.slices = Slices()
        """Which others have their turns between."""

    # room

    def take(self, size: int) -> None:
        """Take room, or raise Overweight."""
        self.weight += size
        if self.weight > self.room:
            raise Overweight(f"what is in it takes more than {self.room} bytes")

    # where it is

    @property
    def position(self) -> int:
        """Characters before the next one."""
        return self._passed + self._at

    def here(self) -> str:
        """Return the next character; Cut at the end."""
        if self._at == len(self._buffer) and not self._fill(1):
            raise Cut("it ends too early")
        return self._buffer[self._at]

    def note(self) -> None:
        """Note what is passed from here on, until it is asked for by `noted`."""
        self._noted, self._noted_from = [], self._at

    def noted(self) -> str:
        """Return what was passed since `note`."""
        parts, self._noted = self._noted or [], None
        last = self._buffer[self._noted_from : self._at]
        return "".join((*parts, last)) if parts else last

    def _fill(self, count: int) -> bool:
        """Let that many characters be ahead, if there are; whether there are."""
        if len(self._buffer) - self._at >= count:
            return True
        if not self._text:
            return False
        if self._noted is not None:
            self._noted.append(self._buffer[self._noted_from : self._at])
            self._noted_from = 0
        parts = [self._buffer[self._at :]]
        ahead = len(parts[0])
        while ahead < count and self._text:
            parts.append(self._text.take())
            ahead += len(parts[-1])
        self._passed += self._at
        self._buffer, self._at = "".join(parts), 0
        return ahead >= count

    # what is known already

    def follows(self, text: str) -> bool:
        """Whether the text goes on so, character for character."""
        self._fill(_WINDOW)
        ahead = len(self._buffer) - self._at
        if len(text) <= ahead:
            return self._buffer.startswith(text, self._at)
        if not text.startswith(self._buffer[self._at :]):
            return False
        for piece, begin in self._text.ahead():
            left = len(text) - ahead
            here = len(piece) - begin
            if left <= here:
                return piece.startswith(text[ahead:], begin)
            if not text.startswith(piece[begin:], ahead):
                return False
            ahead += here
        return False

    def go(self, count: int) -> None:
        """Pass that many characters, which `follows` has seen."""
        while len(self._buffer) - self._at < count and self._text:
            count -= len(self._buffer) - self._at
            self._passed += len(self._buffer)
            self._buffer, self._at = self._text.take(), 0
        self._at += count

    # what is written

    def skip(self) -> None:
        """Pass blanks."""
        begun = self.position
        while (found := _BLANKS.match(self._buffer, self._at)) is not None:
            self._at = found.end()
            if self.position - begun >= _MOST_BLANKS:
                raise Malformed(f"more than {_MOST_BLANKS} blanks at character {begun}")
            if self._at < len(self._buffer) or not self._fill(1):
                return

    def open(self) -> None:
        """Go into an object or a list."""
        self._at += 1
        self.skip()

    def close(self) -> None:
        """Go out of it."""
        self._at += 1

    def key(self) -> str:
        """Read a key and its colon, and go to its value."""
        if self.here() != '"':
            raise Malformed(f"a key is missing at character {self.position}")
        key = self._string()
        self.skip()
        if self.here() != ":":
            raise Malformed(f"a colon is missing at character {self.position}")
        self._at += 1
        self.skip()
        return key

    def next(self, closing: str) -> None:
        """Go over what separates two members, to the next one or to the closing bracket."""
        self.skip()
        found = self.here()
        if found == ",":
            self._at += 1
            self.skip()
        elif found != closing:
            raise Malformed(f"a comma is missing at character {self.position}")

    async def value(self, *, weigh: bool = False) -> Any:
        """
        Read one value.

        Parameters
        ----------
        weigh
            Whether to take room also for a small value. For the members of a long one it is taken in any case.
        """
        return await self._value(0, weigh=weigh)

    async def _value(self, depth: int, *, weigh: bool) -> Any:
        try:
            return self._small(weigh=weigh)
        except _Longer:
            if depth > _DEPTH:
                raise RecursionError from None
        opening = self.here()
        if opening == '"':
            return self._string()
        if opening == "[":
            return await self._long_list(depth)
        if opening == "{":
            return await self._long_object(depth)
        raise Malformed(f"no value at character {self.position}")

    def _small(self, *, weigh: bool) -> Any:
        """Read a value that ends within the window."""
        self._fill(_WINDOW)
        buffer, begin, is_rest = self._buffer, self._at, not self._text
        if len(buffer) - begin > _LONGEST_WINDOW:
            buffer, begin, is_rest = buffer[begin : begin + _LONGEST_WINDOW], 0, False
        try:
            value, end = _scan(buffer, begin)
        except StopIteration as error:
            if is_rest:
                raise self._wrong("no value", error.value) from None
            raise _Longer from None
        except ValueError as error:
            # The window ends inside the value, or the value is malformed: reading the members one by one tells.
            if not is_rest:
                raise _Longer from None
            if isinstance(error, json.JSONDecodeError):
                raise self._wrong(error.msg, error.pos) from None
            raise
        # A number may go on behind the window.
        if end == len(buffer) and not is_rest:
            raise _Longer
        self._at += end - begin
        if weigh:
            self.take(end - begin + _PER_VALUE * sum(buffer.count(each, begin, end) for each in ",[{"))
        return value

    def _wrong(self, what: str, position: int) -> Malformed:
        """Return the error at a position of the buffer, which is the rest of the text."""
        is_cut = position >= len(self._buffer.rstrip()) or what.startswith("Unterminated string")
        return (Cut if is_cut else Malformed)(f"{what} at character {self._passed + position}")

    async def _long_list(self, depth: int) -> list[Any]:
        found: list[Any] = []
        self.open()
        while self.here() != "]":
            found.append(await self._member(depth))
            self.next("]")
        self.close()
        return found

    async def _long_object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.open()
        while self.here() != "}":
            key = self.key()
            self.take(len(key) + _PER_VALUE)
            found[key] = await self._member(depth)
            self.next("}")
        self.close()
        return found

    async def _member(self, depth: int) -> Any:
        await self.slices.breathe()
        self.take(_PER_VALUE)
        return await self._value(depth + 1, weigh=True)

    def _string(self) -> str:
        """Read a text; of a very long one not more than it may have."""
        for window in (_WINDOW, _LONGEST_TEXT):
            self._fill(window + 2)
            try:
                found, end = scanstring(self._buffer, self._at + 1, True)  # noqa: FBT003 - signature of the C function
            except json.JSONDecodeError as error:
                if not self._text:
                    raise self._wrong(error.msg, error.pos) from None
                # The buffer ends inside the text, or the text is malformed: behind the longest both are an error.
                continue
            if end - self._at - 2 > _LONGEST_TEXT:
                break
            self._at = end
            return str(found)
        raise Malformed(f"a text of more than {_LONGEST_TEXT} characters at character {self.position}, or none")
