"""
JSON read piece by piece, with an eye on the time and on the memory that it takes.

The parser written in C is quick but reads a value to its end whatever that takes: the event loop stands still, and a
text of empty lists becomes twenty times its size. So it is given windows of a text. A value that does not end within
one is an object or a list whose members are read one by one.

What the values mean is left to :mod:`slurm_client.connection.answers`.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

__all__ = ["SLICE_SECONDS", "Malformed", "NoValue", "Overweight", "Parser"]

SLICE_SECONDS = 0.003
"""Longest time spent on reading an answer before the event loop has its turn."""

_WINDOWS = (8 * 1024, 64 * 1024)
"""Characters that the parser written in C is given at once: few first, since most values are short."""

_WINDOW = _WINDOWS[-1]
_LONGEST_TEXT = 2**20
_DEPTH = 64
_MOST_BLANKS = 10_000
_PER_VALUE = 64
"""Bytes that a small object takes, more or less."""

_BLANKS = re.compile(rf"[ \t\r\n]{{0,{_MOST_BLANKS}}}")
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


class Malformed(ValueError):
    """It is no JSON, or not what is wanted. The text quotes nothing of it."""


class Overweight(Exception):
    """What was read takes more memory than it may."""


class NoValue(Malformed):
    """A value is missing, and where. The parser says so by StopIteration, which cannot leave a coroutine."""

    def __init__(self, position: int) -> None:
        super().__init__(f"no value at character {position}")
        self.pos = position


class Parser:
    """
    Reads one text.

    Parameters
    ----------
    source
        The text.
    room
        Bytes that may be taken for what is read, more or less.
    """

    def __init__(self, source: str, room: int) -> None:
        self.source = source
        self.room = room
        self.weight = 0
        """Bytes taken so far."""
        self._since = time.perf_counter()

    async def breathe(self) -> None:
        """Let others have their turn if this has taken long enough."""
        if time.perf_counter() - self._since > SLICE_SECONDS:
            await asyncio.sleep(0)
            self._since = time.perf_counter()

    def take(self, size: int) -> None:
        """Take room, or raise Overweight."""
        self.weight += size
        if self.weight > self.room:
            raise Overweight(f"what is in it takes more than {self.room} bytes")

    def skip(self, position: int) -> int:
        """Return the position of the next character that is not blank, or the end."""
        found = _BLANKS.match(self.source, position)
        end = found.end() if found is not None else position
        if end - position == _MOST_BLANKS:
            raise Malformed(f"more than {_MOST_BLANKS} blanks at character {position}")
        return end

    def key(self, position: int) -> tuple[str, int]:
        """Read a key and its colon; return it with the position of its value."""
        if self.source[position] != '"':
            raise Malformed(f"a key is missing at character {position}")
        key, end = self._text(position)
        end = self.skip(end)
        if self.source[end] != ":":
            raise Malformed(f"a colon is missing at character {end}")
        return key, self.skip(end + 1)

    def next(self, position: int, closing: str) -> int:
        """Go over what separates two members; return the position of the next one, or of the closing bracket."""
        position = self.skip(position)
        if self.source[position] == ",":
            return self.skip(position + 1)
        if self.source[position] != closing:
            raise Malformed(f"a comma is missing at character {position}")
        return position

    async def value(self, position: int) -> tuple[Any, int]:
        """Read one value and return it with the position behind it; takes no room for a small one."""
        found = self._small(position)
        return found if found is not None else await self._large(position, 0)

    def measure(self, begin: int, end: int) -> int:
        """Return about how many bytes the values written there take."""
        count = self.source.count
        return end - begin + _PER_VALUE * sum(count(each, begin, end) for each in ",[{")

    def _small(self, position: int) -> tuple[Any, int] | None:
        """Read a value that ends within the window; ``None`` if it does not."""
        source = self.source
        if len(source) - position <= _WINDOW:
            try:
                found: tuple[Any, int] = _scan(source, position)
            except StopIteration as error:
                raise NoValue(error.value) from None
            return found
        for window in _WINDOWS:
            try:
                value, length = _scan(source[position : position + window], 0)
            except (StopIteration, ValueError):
                # The window ends inside the value, or the value is malformed: a longer window tells, and beyond the
                # longest `_large` reads the members one by one and raises at the one that cannot be read.
                continue
            # A number may go on behind the window.
            if length < window:
                return value, position + length
        return None

    async def _large(self, position: int, depth: int) -> tuple[Any, int]:
        """Read an object, a list or a text that is longer than the window."""
        if depth > _DEPTH:
            raise RecursionError
        opening = self.source[position]
        if opening == '"':
            return self._text(position)
        if opening == "[":
            return await self._large_list(position, depth)
        if opening == "{":
            return await self._large_object(position, depth)
        raise NoValue(position)

    async def _large_list(self, position: int, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        position = self.skip(position + 1)
        while self.source[position] != "]":
            value, position = await self._member(position, depth)
            found.append(value)
            position = self.next(position, "]")
        return found, position + 1

    async def _large_object(self, position: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        position = self.skip(position + 1)
        while self.source[position] != "}":
            key, position = self.key(position)
            self.take(len(key) + _PER_VALUE)
            found[key], position = await self._member(position, depth)
            position = self.next(position, "}")
        return found, position + 1

    async def _member(self, position: int, depth: int) -> tuple[Any, int]:
        await self.breathe()
        small = self._small(position)
        if small is None:
            return await self._large(position, depth + 1)
        self.take(_PER_VALUE + self.measure(position, small[1]))
        return small

    def _text(self, position: int) -> tuple[str, int]:
        """Read a text; of a very long one not more than it may have."""
        begin = position + 1
        for window in (*_WINDOWS, _LONGEST_TEXT):
            if len(self.source) - begin <= window:
                found, end = scanstring(self.source, begin, True)  # noqa: FBT003 - signature of the C function
                return found, end
            try:
                found, length = scanstring(self.source[begin : begin + window], 0, True)  # noqa: FBT003
            except ValueError:
                # The window ends inside the text, or the text is malformed: behind the last window both are an error.
                continue
            return found, begin + length
        raise Malformed(f"a text of more than {_LONGEST_TEXT} characters at character {position}, or none")
