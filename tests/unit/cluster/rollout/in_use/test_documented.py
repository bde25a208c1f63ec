"""The documented matrix of references is the one that real daemons are tried with."""

from __future__ import annotations

from hack.localkube.paths import PROJECT
from tests.support.references import documented


def test_the_documented_table_is_the_one_that_is_tried() -> None:
    assert documented() in (PROJECT / "docs" / "development" / "reliability-journal.md").read_text()
