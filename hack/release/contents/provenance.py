"""Checksums of all files of a release, and a statement of what it was made from.

The statement is one of in-toto, with the provenance of SLSA 1.0 in it; `.github/workflows/release.yaml` signs it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from hack.release.parameters import ROOT, Parameters

CHECKSUMS: Final = "SHA256SUMS"
STATEMENT: Final = "provenance.intoto.json"

BUILD_TYPE: Final = "urn:slurm-operator:make-release:1"
LOCKS: Final = ("requirements/*.txt", "hack/localkube/programs/go.sum", "hack/images/pause/go.mod")
"""Files with the hashes of what is fetched for a build."""


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(parameters: Parameters, folder: Path, builder: str, root: Path = ROOT) -> list[Path]:
    """Write both files into the folder of a release.

    Parameters
    ----------
    builder
        URI of who makes the release: a workflow, or a machine by hand.
    """
    statement, checksums = folder / STATEMENT, folder / CHECKSUMS
    for path in (statement, checksums):
        path.unlink(missing_ok=True)
    subjects = {str(path.relative_to(folder)): digest(path) for path in _files(folder)}
    statement.write_text(json.dumps(_statement(parameters, subjects, builder, root), indent=1) + "\n", encoding="utf-8")
    sums = {**subjects, STATEMENT: digest(statement)}
    checksums.write_text(lines(sums), encoding="utf-8")
    return [statement, checksums]


def lines(sums: Mapping[str, str]) -> str:
    """Return checksums by name as ``sha256sum --check`` reads them."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _statement(parameters: Parameters, subjects: dict[str, str], builder: str, root: Path) -> dict[str, Any]:
    commit = {"digest": {"gitCommit": parameters.revision}} if parameters.revision else {}
    uri = f"git+{parameters.source}@{parameters.revision}" if parameters.source else "git+file:."
    locks = [path for pattern in LOCKS for path in sorted(root.glob(pattern))]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": one}} for name, one in sorted(subjects.items())],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "command": "make release",
                    "version": parameters.version,
                    "registry": parameters.registry,
                    "source": parameters.source,
                    "SOURCE_DATE_EPOCH": parameters.epoch,
                },
                "internalParameters": {"hasUncommittedChanges": parameters.is_dirty},
                "resolvedDependencies": [
                    {"uri": uri, **commit},
                    *({"uri": f"file:{path.relative_to(root)}", "digest": {"sha256": digest(path)}} for path in locks),
                ],
            },
            "runDetails": {"builder": {"id": builder}, "metadata": {"finishedOn": parameters.created}},
        },
    }
