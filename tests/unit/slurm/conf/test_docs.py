"""The table of keys in the documentation is that of the program."""

from __future__ import annotations

import re
from pathlib import Path

from slinky_operator.slurm.conf.keys.daemons import LISTENING, RESTART_KEYS
from slinky_operator.slurm.conf.keys.merge import LIST_KEYS
from slinky_operator.slurm.conf.keys.rules import Kind, keys_of
from slinky_operator.slurm.conf.sources.gather import LARGEST
from slinky_operator.slurm.conf.sources.scripts import KINDS

TEXT = (Path(__file__).parents[4] / "docs" / "configuration.md").read_text()


def words(heading: str, column: int) -> set[str]:
    """Words in one column of the table after a heading, in lower case."""
    table = TEXT.split(heading, 1)[1].split("\n| ", 1)[1].split("\n\n", 1)[0]
    cells = [row.split(" | ")[column] for row in table.split("\n")[2:]]
    return {word.lower() for cell in cells for word in re.findall(r"`([^`]+)`", cell)}


def test_every_refused_key_is_documented_and_no_other() -> None:
    assert words("## slurm.conf", 0) == keys_of(Kind.OWN, Kind.LINE, Kind.FIXED)


def test_every_key_that_needs_a_restart_is_documented() -> None:
    assert words("### What needs a restart", 0) == {key.name.lower() for key in RESTART_KEYS} | LISTENING


def test_lists_fields_and_limits_are_documented() -> None:
    assert all(f"`{key}`" in TEXT.lower() for key in LIST_KEYS)
    assert all(f"`{kind.field}`" in TEXT and f"`{kind.refs}`" in TEXT for kind in KINDS)
    assert f"{LARGEST:,} bytes" in TEXT
