"""Write the generated files, or say how they differ: ``python -m slinky_api.crd write|check``."""

import argparse
import difflib
import sys
from pathlib import Path

from slinky_api.crd.definition import definition, to_yaml
from slinky_api.docs import api_reference
from slinky_api.resource import Resource
from slinky_api.sylabs import OLD_JOB_KINDS
from slinky_api.v1alpha1 import JOB_KINDS, KINDS, Kinds

__all__ = ["generated", "main"]

CRD_FOLDERS = ("config/crd", "helm/slurm-operator/crds")
"""Where the files of the kinds go; kustomize reads the first."""
JOB_CRD_FOLDERS = ("config/crd/jobs", "helm/slurm-jobs/crds")
"""Folders of their own: a site without jobs as objects installs none of these kinds."""
OLD_JOB_CRD_FOLDERS = ("config/crd/jobs/sylabs", "helm/slurm-sylabs-jobs/crds")

HEADER = "# Generated from api/slinky_api by 'python -m slinky_api.crd write'. Do not edit.\n"


def generated() -> dict[str, str]:
    """All generated files: content by path from the root of the repository."""
    files = {"docs/api-reference.md": api_reference((*KINDS, *JOB_KINDS, *OLD_JOB_KINDS))}
    rooms: tuple[tuple[Kinds, tuple[str, ...]], ...] = (
        (KINDS, CRD_FOLDERS),
        (JOB_KINDS, JOB_CRD_FOLDERS),
        (OLD_JOB_KINDS, OLD_JOB_CRD_FOLDERS),
    )
    for kinds, folders in rooms:
        for resource, model in kinds:
            text = HEADER + to_yaml(definition(resource, model))
            for folder in folders:
                files[f"{folder}/{_file(resource)}"] = text
        listed = sorted(_file(resource) for resource, _ in kinds)
        about = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": listed}
        files[f"{folders[0]}/kustomization.yaml"] = HEADER + to_yaml(about)
    return files


def _file(resource: Resource) -> str:
    return f"{resource.group}_{resource.plural}.yaml"


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
