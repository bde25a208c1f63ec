"""The table printed at the end: a line for each figure, a column for each size."""

from __future__ import annotations

from dataclasses import dataclass, field

from typing_extensions import override


@dataclass(slots=True)
class Table:
    """Figures of several sizes."""

    title: str
    columns: dict[int, dict[str, str]] = field(default_factory=dict)

    def note(self, size: int, figure: str, value: str) -> None:
        """Note a figure of a size; figures are listed as they were first noted."""
        self.columns.setdefault(size, {})[figure] = value

    @override
    def __str__(self) -> str:
        sizes = list(self.columns)
        figures = list(dict.fromkeys(figure for column in self.columns.values() for figure in column))
        lines = [[self.title, *(f"{size:,}" for size in sizes)]]
        lines += [[figure, *(self.columns[size].get(figure, "") for size in sizes)] for figure in figures]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        told = [
            f"{first:<{widths[0]}}  "
            + "  ".join(f"{cell:>{width}}" for cell, width in zip(rest, widths[1:], strict=True))
            for first, *rest in lines
        ]
        return "\n".join([told[0], "-" * len(told[0]), *told[1:]])
