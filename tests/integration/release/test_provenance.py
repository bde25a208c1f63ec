"""Checksums and provenance name every file of a release, and nothing that is not there."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from hack.release import parameters
from hack.release.__main__ import make
from hack.release.provenance import CHECKSUMS, STATEMENT


def test_checksums_are_those_of_all_files(folder: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", CHECKSUMS], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    listed = {line.split("  ", 1)[1] for line in (folder / CHECKSUMS).read_text().splitlines()}
    assert listed == {
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.name != CHECKSUMS
    }


def test_the_statement_is_about_these_files(folder: Path) -> None:
    statement = json.loads((folder / STATEMENT).read_text())
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    for subject in statement["subject"]:
        content = (folder / subject["name"]).read_bytes()
        assert subject["digest"] == {"sha256": hashlib.sha256(content).hexdigest()}
    definition = statement["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["version"] in str(statement["subject"])
    assert definition["buildType"]
    assert statement["predicate"]["runDetails"]["builder"]["id"]


@pytest.mark.parametrize("part", ["wheels", "charts", "manifests"])
def test_the_same_tree_gives_the_same_files(tmp_path: Path, part: str) -> None:
    given = parameters.read({"SOURCE_DATE_EPOCH": "1767225600"})
    for name in ("one", "two"):
        make(given, tmp_path / name, (part,), "urn:tests")
    one, two = ((tmp_path / name / CHECKSUMS).read_text() for name in ("one", "two"))
    assert one == two
    assert len(one.splitlines()) > 1
