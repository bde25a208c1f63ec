"""Checksums and provenance name every file of a release, and nothing that is not there."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from hack.release import parameters
from hack.release.__main__ import make
from hack.release.contents.provenance import CHECKSUMS, STATEMENT

pytestmark = pytest.mark.full


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


def test_the_same_tree_gives_the_same_files(folder: Path, tmp_path: Path) -> None:
    said = json.loads((folder / STATEMENT).read_text())["predicate"]["buildDefinition"]["externalParameters"]
    environ = {key.upper(): str(said[key]) for key in ("registry", "source", "SOURCE_DATE_EPOCH")}
    make(parameters.read(environ), tmp_path, ("wheels", "charts", "manifests"), "urn:tests")
    again = {str(path.relative_to(tmp_path)): path for path in tmp_path.glob("*/*")}
    assert len(again) > 10
    assert [name for name, path in again.items() if path.read_bytes() != (folder / name).read_bytes()] == []
