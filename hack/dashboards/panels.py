"""Panels, variables and dashboards, and the JSON that Grafana reads (its schema 39). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

SCHEMA: Final = 39
WIDTH: Final = 24
"""Columns of a dashboard."""

SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel.

    Attributes
    ----------
    expression
        In PromQL; it may name the dashboard's variables.
    legend
        Name of a line; labels in double braces.
    """

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    Attributes
    ----------
    title, about
        What it shows, and how to read it.
    queries
        At least one.
    unit
        As Grafana names units: ``short``, ``s``, ``bytes``, ``percentunit``, ``reqps``.
    kind
        ``timeseries``, ``stat`` or ``table``.
    width
        Columns, of 24.
    stacked
        Whether lines add up.
    """

    title: str
    about: str
    queries: Sequence[Query]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    stacked: bool = False

    def model(self, number: int, x: int, y: int, height: int) -> dict[str, Any]:
        """The panel at a place of the grid."""
        table = self.kind == "table"
        options: dict[str, Any] = {"legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull"]}}
        if self.kind == "stat":
            options = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "graphMode": "area"}
        custom = {"stacking": {"mode": "normal" if self.stacked else "none"}, "fillOpacity": 30 if self.stacked else 0}
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.about,
            "datasource": SOURCE,
            "gridPos": {"h": height, "w": self.width, "x": x, "y": y},
            "fieldConfig": {
                "defaults": {"unit": self.unit, **({"custom": custom} if self.kind == "timeseries" else {})},
                "overrides": [],
            },
            "options": {} if table else options,
            "targets": [
                {
                    "refId": chr(ord("A") + place),
                    "datasource": SOURCE,
                    "expr": query.expression,
                    "legendFormat": query.legend or "__auto",
                    "instant": table,
                    "format": "table" if table else "time_series",
                }
                for place, query in enumerate(self.queries)
            ],
            **({"transformations": [{"id": "merge", "options": {}}]} if table else {}),
        }


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, whose values are those of a label.

    Attributes
    ----------
    name
        Of the variable, and of the label unless `label` says another.
    metric
        The metric that has the label, with a selector if it depends on other variables.
    """

    name: str
    metric: str
    label: str = ""
    several: bool = True

    def model(self) -> dict[str, Any]:
        """The variable for Grafana."""
        query = f"label_values({self.metric}, {self.label or self.name})"
        return {
            "name": self.name,
            "type": "query",
            "datasource": SOURCE,
            "query": {"query": query, "refId": "values"},
            "refresh": 2,
            "sort": 1,
            "multi": self.several,
            "includeAll": self.several,
            **({"allValue": ".*", "current": {"text": "All", "value": "$__all"}} if self.several else {}),
        }


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A dashboard: rows of panels under a title each.

    Attributes
    ----------
    uid
        Its name in links, and of its file.
    """

    uid: str
    title: str
    about: str
    variables: Sequence[Variable]
    rows: Sequence[tuple[str, Sequence[Panel]]] = field(default_factory=tuple)

    @property
    def panels(self) -> list[Panel]:
        """All panels."""
        return [panel for _, panels in self.rows for panel in panels]

    def model(self) -> dict[str, Any]:
        """The dashboard for Grafana."""
        source = {"name": "datasource", "type": "datasource", "query": "prometheus", "current": {}}
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.about,
            "tags": ["slurm", "slurm-operator"],
            "schemaVersion": SCHEMA,
            "version": 1,
            "editable": True,
            "refresh": "30s",
            "time": {"from": "now-6h", "to": "now"},
            "timezone": "browser",
            "links": [
                {
                    "type": "dashboards",
                    "tags": ["slurm-operator"],
                    "title": "Slurm",
                    "asDropdown": True,
                    "keepTime": True,
                }
            ],
            "templating": {"list": [source, *(one.model() for one in self.variables)]},
            "annotations": {"list": []},
            "panels": list(self._grid()),
        }

    def _grid(self) -> Iterator[dict[str, Any]]:
        number = y = 0
        for title, panels in self.rows:
            number += 1
            place = {"h": 1, "w": WIDTH, "x": 0, "y": y}
            yield {"id": number, "type": "row", "title": title, "gridPos": place, "collapsed": False, "panels": []}
            y += 1
            x = tallest = 0
            for panel in panels:
                height = 4 if panel.kind == "stat" else 8
                if x + panel.width > WIDTH:
                    x, y, tallest = 0, y + tallest, 0
                number += 1
                yield panel.model(number, x, y, height)
                x, tallest = x + panel.width, max(tallest, height)
            y += tallest
