"""Dashboards fit Grafana's grid, name metrics that there are, and are up to date in the chart."""

from __future__ import annotations

import re

import pytest

from hack.dashboards import of_slurm
from hack.dashboards.files import ALL, outdated
from hack.dashboards.panels import WIDTH, Dashboard
from hack.documents.tables.metrics import PAGE as OF_SLURM
from hack.documents.tables.operator_metrics import rows

METRIC = re.compile(r"\b(?:slurm_operator|slurm_cluster|slurm_exporter)_\w+")
SUFFIX = re.compile(r"_(?:bucket|sum|count)$")


def documented() -> set[str]:
    page = OF_SLURM.read_text()
    return {name for name, *_ in rows()} | set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))


def test_the_files_are_up_to_date() -> None:
    assert outdated() == [], "python -m hack.dashboards write"


@pytest.mark.parametrize("dashboard", ALL, ids=lambda one: one.uid)
def test_queries_and_variables_name_metrics_that_there_are(dashboard: Dashboard) -> None:
    known = documented()
    texts = [query.expression for panel in dashboard.panels for query in panel.queries]
    texts += [variable.metric for variable in dashboard.variables]
    for text in texts:
        names = METRIC.findall(text)
        assert names or "process_" in text, text
        for name in names:
            assert name in known or SUFFIX.sub("", name) in known, name
    given = {variable.name for variable in dashboard.variables} | {"__rate_interval"}
    assert {name for text in texts for name in re.findall(r"\$(\w+)", text)} <= given


@pytest.mark.parametrize("dashboard", ALL, ids=lambda one: one.uid)
def test_panels_lie_beside_each_other(dashboard: Dashboard) -> None:
    model = dashboard.model()
    taken: set[tuple[int, int]] = set()
    for panel in model["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= WIDTH
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in model["panels"]}) == len(model["panels"])
    assert all(panel.about.endswith(".") for panel in dashboard.panels)


def test_the_names_of_clusters_are_asked_for_first() -> None:
    for dashboard in of_slurm.DASHBOARDS:
        assert [variable.name for variable in dashboard.variables][:2] == ["namespace", "cluster"]
