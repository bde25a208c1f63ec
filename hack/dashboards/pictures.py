"""A dashboard as a picture: each panel drawn from the answers to its queries, without a Grafana.

It shows what a panel says and whether it says anything; how Grafana draws it is Grafana's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeAlias

from matplotlib.axes import Axes
from matplotlib.dates import DateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from hack.dashboards.answers import Line
from hack.dashboards.panels import WIDTH, Dashboard, Panel, Query

PAPER, CARD, INK, PALE = "#f4f5f7", "#ffffff", "#22252b", "#6b7280"
COLOURS: Final = ("#3b78c3", "#e0803a", "#4c9f70", "#c0453f", "#8164b5", "#8f6b56", "#d073b0", "#6f7782", "#b3b13c")
INCHES: Final = 0.62
"""Width of a column, and half as much the height of a row of the grid."""
LEGENDS: Final = 7
"""Lines that a legend names."""
LONGEST: Final = 32
"""Letters of a name in a legend."""
LETTERS: Final = 88
"""Letters in a legend's line of a panel of eight columns."""
NO_DATA: Final = "no data"

Ask: TypeAlias = Callable[[Dashboard, Query], Sequence[Line]]


def draw(dashboard: Dashboard, ask: Ask, path: Path) -> list[str]:
    """Draw a dashboard into a PNG file.

    Parameters
    ----------
    ask
        Returns the lines of a query.

    Returns
    -------
    list of str
        Titles of the panels that had no data.
    """
    places = dashboard.model()["panels"]
    rows = max(one["gridPos"]["y"] + one["gridPos"]["h"] for one in places)
    figure = Figure(figsize=(WIDTH * INCHES, (rows + 2) * INCHES / 2), dpi=100, facecolor=PAPER)
    figure.text(0.012, 1 - 0.9 / (rows + 2), dashboard.title, fontsize=15, fontweight="bold", color=INK, va="center")
    panels, empty = iter(dashboard.panels), []
    for place in places:
        grid = place["gridPos"]
        left, top = grid["x"] / WIDTH, 1 - (grid["y"] + 2) / (rows + 2)
        height = grid["h"] / (rows + 2)
        if place["type"] == "row":
            figure.text(0.012, top - height / 2, place["title"], fontsize=11, color=PALE, va="center")
            continue
        panel = next(panels)
        axes = _card(figure, panel, left, top, height)
        lines = _worth_a_line([line for query in panel.queries for line in ask(dashboard, query)])
        if not any(math.isfinite(value) for line in lines for value in line.values):
            empty.append(panel.title)
            axes.set_axis_off()
            axes.text(0.5, 0.5, NO_DATA, ha="center", va="center", color=PALE, transform=axes.transAxes)
        else:
            _DRAWN[panel.kind](axes, panel, lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return empty


def _worth_a_line(lines: Sequence[Line]) -> Sequence[Line]:
    """Without the lines that are zero all the time, if there are more than a legend names."""
    if len(lines) <= LEGENDS:
        return lines
    return [line for line in lines if any(value and math.isfinite(value) for value in line.values)] or lines


def said(value: float, unit: str) -> str:
    """Return a value with its unit (one of Grafana's names), as a person reads it."""
    if not math.isfinite(value):
        return "-"
    if unit == "percentunit":
        return f"{value * 100:.0f} %"
    if unit == "s":
        for size, name in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
            if abs(value) >= 2 * size:
                return f"{value / size:.3g} {name}"
        return f"{value * 1000:.3g} ms" if 0 < abs(value) < 1 else f"{value:.3g} s"
    step = 1024.0 if unit == "bytes" else 1000.0
    prefixes = ("", "Ki", "Mi", "Gi", "Ti") if unit == "bytes" else ("", "k", "M", "G", "T")
    power = 0
    while abs(value) >= step and power < len(prefixes) - 1:
        value, power = value / step, power + 1
    ending = {"bytes": "B", "reqps": "/s"}.get(unit, "")
    return f"{value:.3g} {prefixes[power]}{ending}".strip()


def _card(figure: Figure, panel: Panel, left: float, top: float, height: float) -> Axes:
    """The frame of a panel with its title, and where it is drawn."""
    width, gap = panel.width / WIDTH, 0.004
    card = figure.add_axes((left + gap, top - height + gap / 2, width - 2 * gap, height - gap), facecolor=CARD)
    card.set_xticks([])
    card.set_yticks([])
    for spine in card.spines.values():
        spine.set_color("#d9dce1")
    inch = 1 / (figure.get_size_inches()[1])
    card.set_title(panel.title, loc="left", fontsize=9, color=INK, y=1 - 0.3 * inch / height, x=0.02, pad=0)
    room = 0.75 * inch if panel.kind != "stat" else 0.1 * inch
    return figure.add_axes(
        (left + 0.04, top - height + room, width - 0.05, height - room - 0.38 * inch), facecolor=CARD
    )


def _stat(axes: Axes, panel: Panel, lines: Sequence[Line]) -> None:
    axes.set_axis_off()
    last = sum(line.values[-1] for line in lines if math.isfinite(line.values[-1]))
    axes.text(0.46, 0.5, said(last, panel.unit), fontsize=20, ha="center", va="center", color=COLOURS[0])
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)


def _series(axes: Axes, panel: Panel, lines: Sequence[Line]) -> None:
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.grid(axis="y", color="#e6e8ec", linewidth=0.7)
    axes.tick_params(labelsize=7, colors=PALE, length=0)
    stacks: dict[float, float] = {}
    for place, line in enumerate(lines):
        colour = COLOURS[place % len(COLOURS)]
        times = [datetime.fromtimestamp(one, UTC) for one in line.times]
        # What Matplotlib takes as a date is not in its types.
        points: list[float] = times  # type: ignore[assignment]
        if panel.stacked:
            under = [stacks.get(time, 0.0) for time in line.times]
            over = [low + (value if math.isfinite(value) else 0) for low, value in zip(under, line.values, strict=True)]
            stacks.update(zip(line.times, over, strict=True))
            axes.fill_between(points, under, over, color=colour, alpha=0.55, linewidth=0.6, label=line.name)
        else:
            axes.plot(points, line.values, color=colour, linewidth=1.2, label=line.name)
    axes.set_ylim(bottom=min(0.0, *(value for line in lines for value in line.values if math.isfinite(value)), 0.0))
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M"))  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: said(value, panel.unit)))
    named = [_short(line.name) for line in lines[:LEGENDS]]
    if any(named):
        more = f" and {len(lines) - LEGENDS} more" if len(lines) > LEGENDS else ""
        axes.legend(
            axes.get_legend_handles_labels()[0][:LEGENDS],
            [*named[:-1], named[-1] + more],
            loc="upper left",
            bbox_to_anchor=(-0.06, -0.12),
            ncols=max(1, min(4, panel.width * LETTERS // (8 * (max(map(len, named)) + 4)))),
            fontsize=6.5,
            frameon=False,
            labelcolor=INK,
            handlelength=1.0,
            columnspacing=0.9,
        )


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


_DRAWN: Final[dict[str, Callable[[Axes, Panel, Sequence[Line]], None]]] = {"stat": _stat, "timeseries": _series}
