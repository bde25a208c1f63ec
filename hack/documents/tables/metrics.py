"""Write the tables of the exporter's metrics into the documentation: ``python -m hack.documents.tables.metrics``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from slurm_exporter.families.catalogue import documented, table
from slurm_exporter.other_names.catalogue import SETS

PAGE: Final = Path(__file__).parents[3] / "docs" / "metrics.md"
BEGIN: Final = "<!-- written by python -m hack.documents.tables.metrics -->\n"
END: Final = "\n<!-- end -->"


def with_tables(text: str) -> str:
    """The page with the tables as they are to be."""
    before, rest = text.split(BEGIN, 1)
    others = (
        f"### {one.title}\n\nWith `--names {name}`.\n\n{table(tuple(one.families()))}" for name, one in SETS.items()
    )
    tables = "\n\n".join((documented(), *others))
    return f"{before}{BEGIN}{tables}{END}{rest.split(END, 1)[1]}"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
