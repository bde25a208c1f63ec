"""Write what is made from the chart, or say how it differs: ``python -m hack.packaging write|check``."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from hack.packaging import chart_images, kustomize, slinky_table, values_schema, values_table
from hack.packaging.render import EXPORTER_CHART, OPERATOR_CHART, ROOT, SLURM_CHART

__all__ = ["before_rendering", "generated", "main"]


def generated() -> dict[str, str]:
    """All generated files: content by path from the root of the repository."""
    return {
        **kustomize.files(),
        **before_rendering(),
        "docs/helm-values.md": values_table.page((OPERATOR_CHART, SLURM_CHART, EXPORTER_CHART)),
        **slinky_table.files(),
        **values_table.readmes((OPERATOR_CHART, SLURM_CHART)),
    }


def before_rendering() -> dict[str, str]:
    """Those that helm reads."""
    return {**values_schema.files(), **chart_images.files()}


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Run the program.

    Returns
    -------
    int
        0, or 1 if ``check`` found a difference, which it prints.
    """
    parser = argparse.ArgumentParser(prog="python -m hack.packaging", description=__doc__)
    parser.add_argument("action", choices=("write", "check"))
    action = parser.parse_args(arguments).action

    if action == "write":
        # The charts are rendered for the other files, and their values are checked.
        for name, text in before_rendering().items():
            (ROOT / name).write_text(text, encoding="utf-8")
    differences = 0
    for name, wanted in generated().items():
        path = root / name
        if action == "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted, encoding="utf-8")
            continue
        found = path.read_text(encoding="utf-8") if path.exists() else ""
        difference = "".join(
            difflib.unified_diff(
                found.splitlines(keepends=True),
                wanted.splitlines(keepends=True),
                f"{name} (as it is)",
                f"{name} (generated)",
            )
        )
        sys.stdout.write(difference)
        differences += bool(difference)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
