"""What all benches of a run have measured, in rows of one type: one table, how it grows, and JSON.

A bench notes its figures with the fixture `figures`; at the end of the run `tests/bench/conftest.py` prints them and
writes them down. What a figure means, and what its reference does, is the bench's to say.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One figure.

    Attributes
    ----------
    what
        What was done or looked at.
    of
        What its size counts: nodes, NodeSets, Clusters, SlurmJobs.
    size
        How many there were.
    figure, unit
        What was measured.
    reference, against
        What the reference took, in the same unit and the same run, and what it is; None where there is none.
    run
        When the run began, and the processes that waited for a core when this was noted.
    """

    what: str
    of: str
    size: int
    figure: float
    unit: str
    reference: float | None
    against: str
    run: str

    @property
    def ratio(self) -> float | None:
        """Figure to reference; None without one."""
        return self.figure / self.reference if self.reference else None


@dataclass(slots=True)
class Figures:
    """All rows of a run."""

    began: str = field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    rows: list[Row] = field(default_factory=list)

    def note(
        self,
        what: str,
        of: str,
        size: int,
        figure: float,
        unit: str,
        reference: float | None = None,
        against: str = "",
    ) -> None:
        """Note a figure; rows are listed as they were first noted."""
        run = f"{self.began} load {os.getloadavg()[0]:.0f}"
        self.rows.append(Row(what, of, size, figure, unit, reference, against, run))

    def table(self) -> str:
        """All rows, a line for each thing that was measured and a column for each size."""
        return "\n\n".join(_table(of, list(rows)) for of, rows in itertools.groupby(self._sorted(), lambda row: row.of))

    def write(self, path: Path) -> None:
        """Write all rows as JSON."""
        found = [{**asdict(row), "ratio": row.ratio} for row in self.rows]
        whole: dict[str, Any] = {"began": self.began, "cores": os.cpu_count(), "rows": found}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(whole, indent=1) + "\n")

    def _sorted(self) -> list[Row]:
        order = list(dict.fromkeys(row.of for row in self.rows))
        return sorted(self.rows, key=lambda row: order.index(row.of))


def growth(rows: Sequence[Row]) -> float | None:
    """By which factor a figure grows per tenfold size, from the smallest to the largest; None for one size."""
    first, last = min(rows, key=lambda row: row.size), max(rows, key=lambda row: row.size)
    if first.size == last.size or min(first.figure, last.figure, first.size) <= 0:
        return None
    return math.exp(math.log(last.figure / first.figure) / math.log10(last.size / first.size))


def number(value: float) -> str:
    """A figure with three digits that matter."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def _table(of: str, rows: Sequence[Row]) -> str:
    sizes = sorted({row.size for row in rows})
    lines = [[of, *(f"{size:,}" for size in sizes), "per tenfold", "reference"]]
    for (what, unit), found in _by_name(rows).items():
        at = {row.size: row for row in found}
        cells = [_cell(at[size]) if size in at else "" for size in sizes]
        grows = growth(found)
        against = next((row.against for row in found if row.against), "")
        lines.append([f"{what}, {unit}", *cells, "" if grows is None else f"x {number(grows)}", against])
    lines.insert(1, [":--", *("--:" for _ in sizes), "--:", ":--"])
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return "\n".join("| " + " | ".join(map(_padded, line, widths)) + " |" for line in lines)


def _by_name(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.what, row.unit), []).append(row)
    return found


def _cell(row: Row) -> str:
    ratio = row.ratio
    return number(row.figure) if ratio is None else f"{number(row.figure)} ({number(ratio)})"


def _padded(cell: str, width: int) -> str:
    if cell in {":--", "--:"}:
        return cell.replace("--", "-" * (width - 1))
    return cell.rjust(width) if cell[:1].isdigit() else cell.ljust(width)
