"""What Prometheus answers to the queries of a dashboard, over its HTTP API (``/api/v1/query_range``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from hack.dashboards.panels import Dashboard, Query

TIMEOUT: Final = 30.0
RATE_INTERVAL: Final = "1m"
POINTS: Final = 240
"""Of each line."""


class PrometheusFailed(Exception):
    """Prometheus did not answer, or refused a query; the text has its words."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a panel.

    Attributes
    ----------
    name
        As the panel's legend says.
    times, values
        Seconds since the epoch, and what was there then, in the unit of the panel.
    """

    name: str
    times: list[float]
    values: list[float]


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of one Prometheus for one span of time.

    Attributes
    ----------
    url
        Of Prometheus, without a path.
    start, end
        Seconds since the epoch.
    chosen
        Values of the dashboards' variables; one that is not named matches everything.
    """

    url: str
    start: float
    end: float
    chosen: Mapping[str, str] = field(default_factory=dict)

    def lines(self, dashboard: Dashboard, query: Query) -> list[Line]:
        """Return the lines of a query, in the order of their names.

        Raises
        ------
        PrometheusFailed
            There is no answer, or an error.
        """
        parameters = {
            "query": filled(query.expression, dashboard, self.chosen),
            "start": f"{self.start:.3f}",
            "end": f"{self.end:.3f}",
            "step": f"{max((self.end - self.start) / POINTS, 1):.3f}",
        }
        try:
            with httpx.Client(trust_env=False, timeout=TIMEOUT) as http:
                answer = http.get(f"{self.url}/api/v1/query_range", params=parameters).json()
        except (httpx.HTTPError, ValueError) as error:
            raise PrometheusFailed(f"{self.url} does not answer: {error}") from error
        if answer.get("status") != "success":
            raise PrometheusFailed(f"{parameters['query']}: {answer.get('error')}")
        return sorted((_line(query, series) for series in answer["data"]["result"]), key=lambda line: line.name)


def filled(expression: str, dashboard: Dashboard, chosen: Mapping[str, str]) -> str:
    """Return a query as Grafana sends it, with the values of the dashboard's variables in it.

    Raises
    ------
    PrometheusFailed
        It names a variable that needs one value, and none is chosen.
    """
    expression = expression.replace("$__rate_interval", RATE_INTERVAL)
    for variable in sorted(dashboard.variables, key=lambda one: -len(one.name)):
        if f"${variable.name}" not in expression:
            continue
        if not variable.several and variable.name not in chosen:
            raise PrometheusFailed(f"{dashboard.title} shows one {variable.name}: say which, {variable.name}=VALUE")
        expression = expression.replace(f"${variable.name}", chosen.get(variable.name, ".*"))
    return expression


def _line(query: Query, series: Mapping[str, Any]) -> Line:
    labels = series["metric"]
    shown = {key: value for key, value in labels.items() if key not in {"__name__", "instance", "job"}}
    name = re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), query.legend)
    name = name or ", ".join(f"{key} {value}" for key, value in sorted(shown.items()))
    times, values = zip(*series["values"], strict=True)
    return Line(name, [float(time) for time in times], [float(value) for value in values])
