"""Alerts of the chart name metrics and conditions that there are, and each has its runbook.

When each fires is tested with promtool (`tests/integration/helm/test_alerts.py`).
"""

from __future__ import annotations

import re
from typing import Final

import pytest

from hack.packaging.render import ROOT
from slinky_api.conditions import ClusterCondition, NodeSetCondition
from tests.support.prometheus import EARLIER, rules
from tests.unit.dashboards.test_dashboards import METRIC, SUFFIX, documented

PAGE: Final = ROOT / "docs" / "alerts.md"
CONDITION: Final = re.compile(r'slurm_operator_condition\{kind="(\w+)", condition="(\w+)"\}')
CONDITIONS: Final = {"Cluster": ClusterCondition, "NodeSet": NodeSetCondition}


@pytest.mark.parametrize("alert", rules())
def test_an_alert_names_metrics_that_there_are(alert: str) -> None:
    known = documented()
    names = METRIC.findall(rules()[alert]["expr"])
    assert names
    assert [name for name in names if name not in known and SUFFIX.sub("", name) not in known] == []


def test_alerts_name_conditions_that_there_are() -> None:
    texts = [rule["expr"] for rule in rules().values()]
    named = [pair for text in texts for pair in CONDITION.findall(text)]
    assert len(named) == sum(text.count("slurm_operator_condition") for text in texts)
    for kind, condition in named:
        assert condition in {*CONDITIONS[kind]}, condition


@pytest.mark.parametrize("alert", sorted(rules().keys() - EARLIER))
def test_an_alert_has_its_runbook(alert: str) -> None:
    assert rules()[alert]["annotations"]["runbook"] == f"docs/alerts.md#{alert.lower()}"
    assert f"\n## {alert}\n" in PAGE.read_text()


def test_each_runbook_has_its_alert() -> None:
    assert {*re.findall(r"^## (Slurm\w+)$", PAGE.read_text(), re.MULTILINE)} == rules().keys() - EARLIER


@pytest.mark.parametrize(("earlier", "today"), EARLIER.items())
def test_an_earlier_name_is_the_same_alert(earlier: str, today: str) -> None:
    known = rules()
    assert {**known[earlier], "alert": today} == known[today]
    assert f"as {earlier} for one release" in PAGE.read_text()
