"""Write the table of keys of slurm.conf into the documentation: ``python -m hack.documents.tables.key_rules``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from slinky_operator.slurm.conf.keys.rules import documented

PAGE: Final = Path(__file__).parents[3] / "docs" / "configuration.md"
BEGIN: Final = "<!-- written by python -m hack.documents.tables.key_rules -->\n"
END: Final = "\n<!-- end -->"


def with_table(text: str) -> str:
    """The page with the table as it is to be."""
    before, rest = text.split(BEGIN, 1)
    return f"{before}{BEGIN}{documented()}{END}{rest.split(END, 1)[1]}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
