"""Texts that cost a careless reader much, and what reading them costs.

Costs are lines of Python and bytes, which are the same on every machine; the time that a thread itself has run bounds
what C code does, by a limit that is a hundred times what the slowest rule needs.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from types import FrameType, MappingProxyType
from typing import Any, Final

PIECES: Final[Mapping[str, str]] = {
    "letters": "a",
    "blanks": " ",
    "digits": "9",
    "words": "a{}=1 ",
    "names": "a{},",
    "arrays": "0-999999999:2,",
    "tasks": "0-4000000:2,",
    "hosts": "n[0-65535],",
    "brackets": "[0-9]",
    "open": "[(",
    "times": "1:",
    "resources": "gpu:a{}:1(IDX:0-65535),",
    "directives": "\n#SBATCH --array=0-999999999:2 -w a[0-65535]",
    "percents": "%A_%a%%",
    "quotes": "'\"\\",
    "unicode": "İ\u2028é\u200b",
}
"""What a text repeats; braces are filled with the number of the repetition."""

LONG_NAME: Final = "[0-65535]"
"""End of a text whose beginning would be repeated for each of these."""


SHORT: Final[Mapping[str, str]] = {
    "one array": "0-4000000",
    "one array with a step": "0-4000000:2",
    "one host list": "n[0-65535]",
    "one product": "a[0-9][0-9999][0-9999]",
}
"""Texts that are short, and stand for much."""


@lru_cache(maxsize=64)
def repeated(piece: str, longest: int) -> str:
    """A piece as often as a text of that many characters has room for; braces are filled with the number of each."""
    count = longest // len(piece.format(0)) + 1
    # To fill hundreds of thousands of pieces, over and over again, takes longer than to read them.
    whole = "".join(piece.format(number) for number in range(count)) if "{" in piece else piece * count
    return whole[:longest]


@lru_cache(maxsize=8)
def texts(longest: int) -> Mapping[str, str]:
    """Hostile texts of that many characters at most."""
    made = {name: repeated(piece, longest) for name, piece in PIECES.items()}
    made["script"] = ("#!/bin/sh" + PIECES["directives"] * (longest // len(PIECES["directives"]) + 1))[:longest]
    made |= SHORT
    made["long name"] = "a" * max(0, longest - len(LONG_NAME)) + LONG_NAME[: max(0, longest)]
    return MappingProxyType({name: text[:longest] for name, text in made.items()})


@dataclass(frozen=True, slots=True)
class Cost:
    """What something has cost the thread that it ran in."""

    lines: int
    """Lines of Python."""
    peak: int
    """Most bytes that were allocated at the same time."""
    seconds: float
    """Time that the thread has run, tracing included."""


@contextmanager
def measured(*, traced: bool = True) -> Iterator[Callable[[], Cost]]:
    """Measure a block, or the time of its thread alone; what is given says its cost, once it has ended."""
    count = 0
    found: list[Cost] = []

    def line(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return line

    before, collects = sys.gettrace(), gc.isenabled()
    # What others have left would be cleaned up here, line by line.
    gc.disable()
    if traced:
        tracemalloc.start()
    began = time.thread_time()
    if traced:
        sys.settrace(line)
    try:
        yield lambda: found[0]
    finally:
        sys.settrace(before)
        seconds = time.thread_time() - began
        found.append(Cost(count, tracemalloc.get_traced_memory()[1] if traced else 0, seconds))
        tracemalloc.stop()
        if collects:
            gc.enable()
