"""JSON of the API server, however deeply it is nested.

Fields that a schema leaves open may be nested to 10,000 levels, and the API server stores such an object. No decoder
here reads more than a few hundred levels, and one object that cannot be read would stop the list that it is in, for
everybody. So what is deeper than `DEEPEST` is left out of the text, and the rest is read.

That such an object is refused, and where its user sees it, is left to `kube.cache.weight`: it takes fewer levels.
"""

from __future__ import annotations

import re
from typing import Any, Final

from pydantic_core import from_json

DEEPEST: Final = 100
"""Levels of a text that are read. Templates of pods have 20."""

_TOO_DEEP: Final = "recursion limit"
"""In the error of the decoder, which has no class of its own."""

_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{\[]|[}\]]', re.DOTALL)


def decoded(text: bytes | bytearray) -> Any:
    """Return what a text says, as far as it is not nested too deeply; ValueError if it is no JSON."""
    try:
        # Half the time of the standard library's decoder, and a third less memory for what it makes.
        return from_json(text)
    except ValueError as error:
        if _TOO_DEEP not in str(error):
            raise
        return from_json(shallow(bytes(text)))


def readable(text: bytes) -> bytes:
    """Return a text that any decoder reads, or finds no JSON: itself, unless it is nested too deeply."""
    try:
        from_json(text)
    except ValueError as error:
        return shallow(text) if _TOO_DEEP in str(error) else text
    return text


def shallow(text: bytes) -> bytes:
    """Return a text with ``null`` in place of what is nested too deeply; the text itself if nothing is."""
    if text.count(b"{") + text.count(b"[") <= DEEPEST:
        return text
    kept: list[bytes] = []
    level = begun = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first in b"{[":
            level += 1
            if level == DEEPEST + 1:
                kept += (text[begun : token.start()], b"null")
        elif first in b"}]":
            if level == DEEPEST + 1:
                begun = token.end()
            level -= 1
    if not kept:
        return text
    return b"".join([*kept, text[begun:]]) if level <= DEEPEST else text
