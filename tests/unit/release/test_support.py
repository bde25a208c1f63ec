"""The table of supported versions is the one of the charts, of the images, and of the workflow that runs in kind."""

from __future__ import annotations

from hack.images.names import SLURM_SUITES
from hack.release import support


def test_the_page_has_the_table_as_it_is() -> None:
    page = support.PAGE.read_text(encoding="utf-8")
    assert support.BEGIN in page
    assert page == support.written(page), "run make manifests"


def test_every_version_that_the_chart_accepts_is_tried_somewhere() -> None:
    assert support.oldest() == support.OF_KUBERNETES.start
    lines = support.table().splitlines()[2:]
    assert len(lines) == len(support.OF_KUBERNETES)
    assert sum("tests" in line for line in lines) == 1
    assert not any("not run" in line for line in lines)
    assert set(support.workflow()["strategy"]["matrix"]["slurm"]) == set(SLURM_SUITES)
