"""How blocks are printed: with colours and tables on a terminal, as plain columns elsewhere, or as JSON.

Everything that a command prints goes through here, and here texts lose whatever a terminal would obey: names of jobs,
reasons, messages and logs are written by anybody.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final, TextIO

from kubectl_slurm.screen.blocks import Line, Mood, Screen, Table
from slurm_client.cli.text import safe
from slurm_client.cli.text import table as plain_table

LONGEST_LINE: Final = 2000
"""Characters of a line of a log, a file or an error."""

_STYLES: Final = {Mood.PLAIN: "", Mood.GOOD: "green", Mood.WARNING: "yellow", Mood.BAD: "red", Mood.QUIET: "dim"}


class Printer:
    """Prints to one stream.

    Parameters
    ----------
    stream
        Where to.
    colours
        Whether it is a terminal that has colours.
    """

    def __init__(self, stream: TextIO, *, colours: bool) -> None:
        self._stream, self._colours = stream, colours

    def show(self, screen: Screen) -> None:
        """Print blocks."""
        draw: Callable[[Screen], None] = self._rich if self._colours else self._plain
        draw(screen)

    def json(self, value: Any) -> None:
        """Print a value as JSON: ASCII alone, so that no text in it is obeyed by a terminal."""
        self._stream.write(json.dumps(plain(value), indent=2) + "\n")

    def lines(self, lines: Iterable[str]) -> None:
        """Print lines of a log or of a file."""
        for line in lines:
            self._stream.write(cleaned(line) + "\n")

    def _plain(self, screen: Screen) -> None:
        for index, section in enumerate(screen):
            if index:
                self._stream.write("\n")
            self._stream.write(safe(section.title) + "\n")
            for part in section.parts:
                if isinstance(part, Line):
                    self._stream.write(f"  {cleaned(part.text)}\n")
                    continue
                rows = [row.cells for row in part.rows]
                for line in plain_table(part.head, rows, right=part.numbers):
                    self._stream.write(f"  {line}\n")
                if part.more:
                    self._stream.write(f"  {safe(part.more)}\n")

    def _rich(self, screen: Screen) -> None:
        from rich.console import Console
        from rich.padding import Padding

        console = Console(file=self._stream, highlight=False, markup=False, emoji=False, soft_wrap=False)
        for index, section in enumerate(screen):
            if index:
                console.print()
            console.print(safe(section.title), style=f"bold {_STYLES[section.mood]}".strip())
            for part in section.parts:
                if isinstance(part, Line):
                    console.print(f"  {cleaned(part.text)}", style=_STYLES[part.mood] or None)
                    continue
                console.print(Padding(_drawn(part), (0, 0, 0, 2)))
                if part.more:
                    console.print(f"  {safe(part.more)}", style="dim")


def _drawn(part: Table) -> Any:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", show_edge=False, padding=(0, 2, 0, 0))
    for name in part.head:
        drawn.add_column(name, justify="right" if name in part.numbers else "left", overflow="fold")
    for row in part.rows:
        drawn.add_row(*(Text(safe(cell) or "-") for cell in row.cells), style=_STYLES[row.mood])
    return drawn


def cleaned(line: str) -> str:
    """A line that a terminal only shows."""
    return safe(line.rstrip("\r\n").expandtabs(8)[:LONGEST_LINE])


def has_colours(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether a stream is a terminal that wants colours."""
    return stream.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def stdout(environment: Mapping[str, str]) -> Printer:
    """A printer to standard output."""
    return Printer(sys.stdout, colours=has_colours(sys.stdout, environment))


def plain(value: Any) -> Any:
    """Objects as JSON has them: fields in camelCase, times in ISO 8601, lengths of time in seconds."""
    match value:
        case Enum():
            found: Any = value.value
        case datetime():
            found = value.isoformat()
        case timedelta():
            found = value.total_seconds()
        case Mapping():
            found = {str(key): plain(held) for key, held in value.items()}
        case frozenset() | set():
            found = sorted(plain(each) for each in value)
        case list() | tuple():
            found = [plain(each) for each in value]
        case None | str() | int() | float():
            found = value
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            shown = [one.name for one in dataclasses.fields(value) if not one.name.startswith("_")]
            found = {_camel(name): plain(getattr(value, name)) for name in shown}
        case _:
            found = str(value)
    return found


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


__all__ = ["LONGEST_LINE", "Printer", "cleaned", "has_colours", "plain", "stdout"]
