"""Write the dashboards into the chart, check that they are up to date, or draw them from a Prometheus.

``python -m hack.dashboards write|check``, and
``python -m hack.dashboards draw URL FOLDER MINUTES [namespace=… cluster=… …]``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from hack.dashboards.files import ALL, outdated, write

USAGE = "python -m hack.dashboards write|check|draw URL FOLDER MINUTES [VARIABLE=VALUE ...]"


def draw(url: str, folder: Path, minutes: float, chosen: dict[str, str]) -> None:
    """Draw each dashboard, and say which panels had no data."""
    # Matplotlib is not needed to write them.
    from hack.dashboards.answers import Answers  # noqa: PLC0415
    from hack.dashboards.pictures import draw as picture  # noqa: PLC0415

    end = time.time()
    answers = Answers(url, end - minutes * 60, end, chosen)
    for dashboard in ALL:
        path = folder / f"{dashboard.uid}.png"
        empty = picture(dashboard, answers.lines, path)
        print(f"{path}: {len(dashboard.panels)} panels" + (f", no data: {', '.join(empty)}" if empty else ""))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write"]:
            write()
        case ["check"]:
            if names := outdated():
                sys.exit(f"not up to date: {', '.join(names)}; run python -m hack.dashboards write")
        case ["draw", url, folder, minutes, *chosen] if all("=" in one for one in chosen):
            draw(url, Path(folder), float(minutes), dict(one.split("=", 1) for one in chosen))
        case _:
            sys.exit(USAGE)
