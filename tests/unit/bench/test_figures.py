"""The collector of the benches: ratios, growth, one table, JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench.figures import Figures, growth, number


@pytest.fixture
def figures() -> Figures:
    made = Figures("2026-11-28T18:00:00Z")
    made.note("out", "nodes", 100, 2.0, "s", 1.0, "a bare loop")
    made.note("all submitted", "SlurmJobs", 100, 5.0, "s")
    made.note("out", "nodes", 10_000, 8.0, "s", 2.0, "a bare loop")
    made.note("at rest", "nodes", 100, 0.0, "kB")
    return made


def test_a_figure_is_a_ratio_to_its_reference(figures: Figures) -> None:
    assert [row.ratio for row in figures.rows] == [2.0, None, 4.0, None]


def test_growth_is_told_for_a_tenfold_size(figures: Figures) -> None:
    out = [row for row in figures.rows if row.what == "out"]
    assert growth(out) == pytest.approx(2.0)
    assert growth(out[:1]) is None
    assert growth([row for row in figures.rows if row.what == "at rest"]) is None


def test_the_table_has_a_line_for_each_thing_and_a_column_for_each_size(figures: Figures) -> None:
    nodes, jobs = figures.table().split("\n\n")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in nodes.splitlines()]
    assert cells[0] == ["nodes", "100", "10,000", "per tenfold", "reference"]
    assert cells[2] == ["out, s", "2.00 (2.00)", "8.00 (4.00)", "x 2.00", "a bare loop"]
    assert cells[3] == ["at rest, kB", "0", "", "", ""]
    assert jobs.splitlines()[-1].strip("|").split() == ["all", "submitted,", "s", "|", "5.00", "|", "|"]


def test_all_rows_are_written(figures: Figures, tmp_path: Path) -> None:
    out = tmp_path / "build" / "bench.json"
    figures.write(out)
    written = json.loads(out.read_text())
    first = written["rows"][0]
    run = first.pop("run")
    assert run.startswith("2026-11-28T18:00:00Z load ")
    assert first == {
        "what": "out",
        "of": "nodes",
        "size": 100,
        "figure": 2.0,
        "unit": "s",
        "reference": 1.0,
        "against": "a bare loop",
        "ratio": 2.0,
    }
    assert len(written["rows"]) == 4


@pytest.mark.parametrize(("value", "told"), [(0, "0"), (1234.5, "1,234"), (12.34, "12.3"), (0.1234, "0.123")])
def test_three_digits_matter(value: float, told: str) -> None:
    assert number(value) == told
