"""Each attack of the list has a test that exists."""

from __future__ import annotations

import re

import pytest

from hack.packaging.render import ROOT

PAGE = ROOT / "docs/development/attacks.md"
ROWS = [
    line
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| attack", "| ---"))
]
NAMED = sorted({name for row in ROWS for name in re.findall(r"`([\w/]+\.py::\w+)`", row)})


def test_the_list_is_long_and_each_row_names_a_test() -> None:
    assert len(ROWS) >= 40
    assert [row for row in ROWS if not re.search(r"`[\w/]+\.py::\w+`", row)] == []


def test_the_worst_case_of_each_chart_is_told() -> None:
    page = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    told = page.partition("## What the operator's own account could do")[2].partition("\n## ")[0]
    assert [chart.name for chart in (ROOT / "helm").iterdir() if f"`{chart.name}`" not in told] == []


@pytest.mark.parametrize("name", NAMED)
def test_a_named_test_exists(name: str) -> None:
    file, _, function = name.partition("::")
    path = ROOT / "tests" / re.sub(r"^security/", "integration/security/", file)
    assert re.search(rf"^(async )?def {function}\(", path.read_text(encoding="utf-8"), re.MULTILINE)
