"""Write what is made from the chart, or say how it differs: ``python -m hack.packaging write|check``."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from hack.packaging import kustomize, slinky_table, values_schema, values_table
from hack.packaging.render import EXPORTER_CHART, OPERATOR_CHART, ROOT, SLURM_CHART

__all__ = ["generated", "main"]


def generated() -> dict[str, str]:
    """All generated files: content by path from the root of the repository."""
    return {
        **kustomize.files(),
        **values_schema.files(),
        "docs/helm-values.md": values_table.page((OPERATOR_CHART, SLURM_CHART, EXPORTER_CHART)),
        **slinky_table.files(),
        **values_table.readmes((OPERATOR_CHART, SLURM_CHART)),
    }


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
        for name, schema in values_schema.files().items():
            (ROOT / name).write_text(schema, encoding="utf-8")
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
