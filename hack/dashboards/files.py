"""The dashboards as files of the chart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from hack.dashboards import of_slurm, of_the_operator

FOLDER: Final = Path(__file__).parents[2] / "helm" / "slurm-operator" / "files" / "dashboards"
ALL: Final = (*of_the_operator.DASHBOARDS, *of_slurm.DASHBOARDS)


def texts() -> dict[str, str]:
    """Each file's name and text."""
    return {f"{one.uid}.json": json.dumps(one.model(), indent=1) + "\n" for one in ALL}


def write() -> None:
    """Write the files, and remove those of dashboards that are no more."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = texts()
    for path in FOLDER.glob("*.json"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text)


def outdated() -> list[str]:
    """Names of files that are not as they are to be."""
    wanted = texts()
    there = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    return sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))
