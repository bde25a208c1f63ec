"""What can go wrong while packaging."""

from __future__ import annotations

from pathlib import Path


class PackagingError(Exception):
    """Base of the errors here."""


class RenderFailed(PackagingError):
    """Helm refused; `words` says why.

    Attributes
    ----------
    chart
        Folder of the chart.
    words
        What helm printed.
    """

    def __init__(self, chart: Path, words: str) -> None:
        super().__init__(f"chart {chart.name}: {words.strip()}")
        self.chart = chart
        self.words = words


class UndocumentedValue(PackagingError):
    """A value of the chart has no comment.

    Attributes
    ----------
    path
        The value, with dots.
    """

    def __init__(self, path: str) -> None:
        super().__init__(f"value {path} has no comment above it")
        self.path = path
