"""Write the generated files, or say how they differ: ``python -m slinky_api.crd write|check``."""

import argparse
import difflib
import sys
from pathlib import Path

from slinky_api.crd.definition import definition, to_yaml
from slinky_api.docs import api_reference
from slinky_api.v1alpha1 import CLUSTER, LOGINSET, NODESET, TOKEN, Cluster, LoginSet, NodeSet, Token

__all__ = ["generated", "main"]

KINDS = ((CLUSTER, Cluster), (NODESET, NodeSet), (LOGINSET, LoginSet), (TOKEN, Token))
CRD_FOLDERS = ("config/crd", "helm/slurm-operator/crds")
HEADER = "# Generated from api/slinky_api by 'python -m slinky_api.crd write'. Do not edit.\n"


def generated() -> dict[str, str]:
    """All generated files: content by path from the root of the repository."""
    files = {"docs/api-reference.md": api_reference(KINDS)}
    for resource, model in KINDS:
        text = HEADER + to_yaml(definition(resource, model))
        for folder in CRD_FOLDERS:
            files[f"{folder}/{resource.group}_{resource.plural}.yaml"] = text
    return files


def main(arguments: list[str] | None = None) -> int:
    """Run the program.

    Returns
    -------
    int
        0, or 1 if ``check`` found a difference, which it prints.
    """
    parser = argparse.ArgumentParser(prog="python -m slinky_api.crd", description=__doc__)
    parser.add_argument("action", choices=("write", "check"))
    parser.add_argument("--root", type=Path, default=Path(), help="root of the repository (default: where you are)")
    options = parser.parse_args(arguments)
    root: Path = options.root

    differences = 0
    for name, wanted in generated().items():
        path = root / name
        if options.action == "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted, encoding="utf-8")
            continue
        found = path.read_text(encoding="utf-8") if path.exists() else ""
        difference = difflib.unified_diff(
            found.splitlines(keepends=True),
            wanted.splitlines(keepends=True),
            f"{name} (as it is)",
            f"{name} (generated)",
        )
        text = "".join(difference)
        sys.stdout.write(text)
        differences += bool(text)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
