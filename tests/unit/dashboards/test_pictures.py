"""Dashboards drawn without a Grafana: what is asked, what a panel says, and which are empty."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from hack.dashboards.answers import Answers, Line, PrometheusFailed, filled
from hack.dashboards.files import ALL
from hack.dashboards.panels import Dashboard, Panel, Query, Variable
from hack.dashboards.pictures import draw, said

ONE_CLUSTER = Dashboard(
    "one",
    "One",
    "",
    (Variable("cluster", "up", several=False), Variable("clusters", "up")),
    (("Now", (Panel("Jobs", "", [Query("jobs")], kind="stat"), Panel("Nodes", "", [Query("nodes")], stacked=True))),),
)


@pytest.mark.parametrize("dashboard", ALL, ids=lambda one: one.uid)
def test_every_dashboard_can_be_drawn_from_what_prometheus_may_say(dashboard: Dashboard, tmp_path: Path) -> None:
    asked: list[Query] = []

    def ask(_: Dashboard, query: Query) -> Sequence[Line]:
        asked.append(query)
        return [Line(f"line {place}", [0.0, 15.0, 30.0], [place, math.nan, 2.0 * place]) for place in range(9)]

    assert draw(dashboard, ask, tmp_path / "folder" / "one.png") == []
    assert asked == [query for panel in dashboard.panels for query in panel.queries]
    head = (tmp_path / "folder" / "one.png").read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:])
    assert width == 1488
    assert height > 400


def test_panels_without_data_are_named(tmp_path: Path) -> None:
    def ask(_: Dashboard, query: Query) -> Sequence[Line]:
        return [Line("", [0.0], [math.nan])] if query.expression == "jobs" else [Line("", [0.0], [1.0])]

    assert draw(ONE_CLUSTER, ask, tmp_path / "one.png") == ["Jobs"]
    assert draw(ONE_CLUSTER, lambda *_: [], tmp_path / "one.png") == ["Jobs", "Nodes"]


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (0.0, "s", "0 s"),
        (0.0213, "s", "21.3 ms"),
        (5400.0, "s", "90 min"),
        (90000.0, "s", "25 h"),
        (0.256, "percentunit", "26 %"),
        (3 * 2**30, "bytes", "3 GiB"),
        (12_345.0, "short", "12.3 k"),
        (4.0, "reqps", "4 /s"),
        (7.0, "short", "7"),
        (math.nan, "short", "-"),
    ],
)
def test_values_have_units_that_a_person_reads(value: float, unit: str, words: str) -> None:
    assert said(value, unit) == words


def test_a_query_is_filled_with_what_was_chosen() -> None:
    assert filled("a[$__rate_interval]", ONE_CLUSTER, {}) == "a[1m]"
    expression = 'a{b="$cluster",c=~"$clusters"}'
    assert filled(expression, ONE_CLUSTER, {"cluster": "x"}) == 'a{b="x",c=~".*"}'
    with pytest.raises(PrometheusFailed, match="say which, cluster=VALUE"):
        filled(expression, ONE_CLUSTER, {})


def test_lines_have_the_names_of_the_legend(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "status": "success",
        "data": {
            "result": [
                {"metric": {"__name__": "jobs", "state": "b", "job": "x"}, "values": [[1, "2"], [2, "NaN"]]},
                {"metric": {"state": "a"}, "values": [[1, "3"]]},
            ]
        },
    }
    asked = _answers_with(monkeypatch, httpx.Response(200, json=answers))
    source = Answers("http://prometheus", 0, 480, {"cluster": "x"})

    lines = source.lines(ONE_CLUSTER, Query('jobs{c="$cluster"}', "{{state}}{{other}}"))

    assert [line.name for line in lines] == ["a", "b"]
    assert lines[0] == Line("a", [1.0], [3.0])
    assert math.isnan(lines[1].values[1])
    assert dict(asked[0].url.params) == {"query": 'jobs{c="x"}', "start": "0.000", "end": "480.000", "step": "2.000"}
    assert [line.name for line in source.lines(ONE_CLUSTER, Query("jobs"))] == ["state a", "state b"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(400, json={"status": "error", "error": "parse error"}), "jobs: parse error"),
        (httpx.Response(502, text="<html>"), "http://prometheus does not answer"),
        (httpx.ConnectError("refused"), "http://prometheus does not answer: refused"),
    ],
)
def test_an_error_of_prometheus_is_said(
    monkeypatch: pytest.MonkeyPatch, answer: httpx.Response | httpx.HTTPError, words: str
) -> None:
    _answers_with(monkeypatch, answer)
    with pytest.raises(PrometheusFailed, match=words):
        Answers("http://prometheus", 0, 1).lines(ONE_CLUSTER, Query("jobs"))


def _answers_with(monkeypatch: pytest.MonkeyPatch, answer: httpx.Response | httpx.HTTPError) -> list[httpx.Request]:
    asked: list[httpx.Request] = []

    def handle(_: object, request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if isinstance(answer, httpx.HTTPError):
            raise answer
        return answer

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", handle)
    return asked
