"""Nothing that others write is obeyed by a terminal, and what is not a terminal gets neither colours nor frames."""

from __future__ import annotations

import io
import json
import re

import pytest
from typing_extensions import override

from kubectl_slurm.screen.blocks import Line, Row, Section, table
from kubectl_slurm.screen.printing import LONGEST_LINE, Printer, has_colours
from kubectl_slurm.screen.words import nodes
from tests.unit.kubectl_slurm.samples import OVERVIEW
from tests.unit.kubectl_slurm.screens import PAGE, screens, text, with_screens

HOSTILE = "a\x1b[2Jb\x07c\rd\u202ee\x9bf[bold]g"
SGR = re.compile(r"\x1b\[[0-9;]*m")
"""What sets colours."""


def drawn(*, colours: bool) -> str:
    screen = (Section(HOSTILE, (Line(HOSTILE), table(("A", "B"), [Row((HOSTILE, HOSTILE))], HOSTILE, most=0))),)
    rows = (Section("t", (table(("A",), [Row((HOSTILE,))], "rows"),)),)
    stream = io.StringIO()
    printer = Printer(stream, colours=colours)
    printer.show((*screen, *rows))
    printer.lines([HOSTILE])
    return stream.getvalue()


@pytest.mark.parametrize("colours", [False, True])
def test_no_character_of_others_reaches_the_terminal_as_it_is(colours: bool) -> None:
    shown = SGR.sub("", drawn(colours=colours))
    assert {each for each in shown if not each.isprintable()} == {"\n"}
    assert "[bold]" in shown


def test_json_is_ascii_and_complete() -> None:
    stream = io.StringIO()
    Printer(stream, colours=False).json({"text": HOSTILE, "seen": OVERVIEW})
    shown = stream.getvalue()
    assert shown.isascii()
    assert "\x1b" not in shown
    read = json.loads(shown)
    assert read["text"] == HOSTILE
    assert read["seen"]["slurm"]["nodes"][2]["reasonSetBy"] == "root"
    assert read["seen"]["cluster"]["slurmVersion"] == "26.05.1"


def test_a_long_line_is_cut() -> None:
    stream = io.StringIO()
    Printer(stream, colours=False).lines(["x" * 10 * LONGEST_LINE])
    assert len(stream.getvalue()) == LONGEST_LINE + 1


class Terminal(io.StringIO):
    @override
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "wanted"),
    [
        (Terminal(), {"TERM": "xterm"}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (io.StringIO(), {"TERM": "xterm"}, False),
    ],
)
def test_colours_are_for_terminals_that_have_them(
    stream: io.StringIO, environment: dict[str, str], wanted: bool
) -> None:
    assert has_colours(stream, environment) is wanted


def test_the_page_shows_the_screens_as_they_are() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_screens(page) == page
    assert all(text(screen) in page for screen in screens().values())


def test_nodes_are_in_the_order_of_their_numbers() -> None:
    assert nodes(["cpu-10", "cpu-1", "gpu-0", "cpu-0", "cpu-9"]) == "cpu-[0-1,9-10],gpu-0"
