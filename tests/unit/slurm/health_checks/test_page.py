"""The page of health checks has every check that comes with the operator, with every parameter."""

from __future__ import annotations

import re
from pathlib import Path

from slinky_api.v1alpha1.nodeset.checks import PARAMETERS

PAGE = Path(__file__).parents[4] / "docs" / "health-checks.md"


def test_each_check_has_a_row_with_its_parameters() -> None:
    _, _, section = PAGE.read_text().partition("## Checks that come with the operator")
    _, *rows = [line.split("|") for line in section.partition("\n## ")[0].splitlines() if line.startswith("| `")]

    found = {row[1].strip(" `"): set(re.findall(r"`([A-Z][A-Z_]+)`", row[4])) for row in rows}

    assert found == {str(use): set(names) for use, names in PARAMETERS.items()}
