"""Write the table of the operator's metrics into its page: ``python -m hack.documents.tables.operator_metrics``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.metrics.budgets import Budgets
from slinky_operator.metrics.contacts import Contacts, Watches
from slinky_operator.metrics.objects import Objects
from slinky_operator.metrics.process import Metrics
from slinky_operator.slurm.connection.clients import ClientMap

PAGE: Final = Path(__file__).parents[3] / "docs" / "operator-metrics.md"
BEGIN: Final = "<!-- written by python -m hack.documents.tables.operator_metrics -->\n"
END: Final = "\n<!-- end -->"
OF_OTHERS: Final = ("process_", "python_")
"""Metrics of the Python client library, documented there."""


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Name as in a query, type, labels and description of each metric."""
    metrics = Metrics()
    for collector in (Objects({}, leads=lambda: True), Watches({}), Budgets({}), Contacts(ClientMap(OpenFence()))):
        metrics.registry.register(collector)
    # The registry has no public list of its collectors.
    collectors: list[Any] = list(metrics.registry._collector_to_names)  # noqa: SLF001
    for collector in collectors:
        for family in getattr(collector, "describe", tuple)():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels: Any = getattr(collector, "_labelnames", None) or getattr(family, "_labelnames", ())
            if not name.startswith(OF_OTHERS):
                yield name, family.type, ", ".join(labels), family.documentation


def with_table(text: str) -> str:
    """The page with the table as it is to be."""
    before, rest = text.split(BEGIN, 1)
    lines = ["| name | type | labels | what |", "| --- | --- | --- | --- |"]
    lines += [f"| `{name}` | {kind} | {labels} | {what} |" for name, kind, labels, what in sorted(rows())]
    return f"{before}{BEGIN}" + "\n".join(lines) + f"{END}{rest.split(END, 1)[1]}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
