"""The one version of the project: it is that of pyproject.toml, and all other places repeat it.

``python -m hack.release version 0.3.0`` writes them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

NUMBER: Final = r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?"
"""A version as charts, images and Python packages all have it."""

_SOURCE: Final = ("pyproject.toml", rf'(?m)^version = "({NUMBER})"')

_PATTERNS: Final = (
    _SOURCE,
    ("README.md", rf"(?m)^\| status \| ({NUMBER}):"),
    ("slinky_operator/settings.py", rf'"slinky/slurm-operator:({NUMBER})"'),
    ("slurm_client/version.py", rf'(?m)^__version__ = "({NUMBER})"'),
    ("kubectl_slurm/version.py", rf'(?m)^__version__ = "({NUMBER})"'),
    ("helm/*/Chart.yaml", rf"(?m)^version: ({NUMBER})$"),
    # That of the chart `slurm` is Slurm's.
    ("helm/slurm?*/Chart.yaml", rf'(?m)^appVersion: "({NUMBER})"$'),
)
"""Files, and where in them."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place that has the version.

    Attributes
    ----------
    path
        From the root of the repository.
    version
        What is there.
    """

    path: str
    version: str


class NoVersion(Exception):
    """A file has no version where one belongs."""


def places(root: Path = ROOT) -> Iterator[Place]:
    """Yield all places.

    Raises
    ------
    NoVersion
        A file that should have the version has none.
    """
    for pattern, expression in _PATTERNS:
        for file in sorted(root.glob(pattern)):
            name = str(file.relative_to(root))
            found = re.search(expression, file.read_text(encoding="utf-8"))
            if found is None:
                raise NoVersion(f"{name} has nothing like {expression}")
            yield Place(name, found[1])


def current(root: Path = ROOT) -> str:
    """Return the version of the project."""
    return next(place.version for place in places(root) if place.path == _SOURCE[0])


def others(root: Path = ROOT) -> list[Place]:
    """Return the places that have another version than the project."""
    version = current(root)
    return [place for place in places(root) if place.version != version]


def write(version: str, root: Path = ROOT) -> list[str]:
    """Write a version to all places; returns the files that were changed.

    Raises
    ------
    NoVersion
        It is no version, or a file has no place for it.
    """
    if not re.fullmatch(NUMBER, version):
        raise NoVersion(
            f"{version!r} is no version: three numbers with dots, and a pre-release after a hyphen if it is one"
        )
    changed = []
    for pattern, expression in _PATTERNS:
        for file in sorted(root.glob(pattern)):
            text = file.read_text(encoding="utf-8")
            found = re.search(expression, text)
            if found is None or found[1] == version:
                continue
            file.write_text(text[: found.start(1)] + version + text[found.end(1) :], encoding="utf-8")
            changed.append(str(file.relative_to(root)))
    return changed
