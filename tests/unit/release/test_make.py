"""A release is made of a commit, and deletes nothing but an older release."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from hack.release import __main__ as program
from hack.release import changes, parameters, version
from hack.release.contents import provenance
from hack.release.parameters import Parameters

GIVEN = Parameters("1.2.3", "registry.example.com/slurm", "", "abc", is_dirty=False, epoch=0)


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(program.Refused, match="is no release"):
        program.make(GIVEN, tmp_path, (), "urn:tests")
    assert (tmp_path / "thesis.txt").read_text() == "x"
    with pytest.raises(program.Refused, match="is no release"):
        program.make(GIVEN, tmp_path / "thesis.txt", (), "urn:tests")


def test_an_older_release_and_an_empty_folder_are_filled(tmp_path: Path) -> None:
    program.make(GIVEN, tmp_path / "new", (), "urn:tests")
    (tmp_path / "new" / "old.tgz").write_text("x")
    program.make(GIVEN, tmp_path / "new", (), "urn:tests")
    assert {path.name for path in (tmp_path / "new").iterdir()} == {provenance.CHECKSUMS, provenance.STATEMENT}


def test_a_tree_that_differs_from_its_commit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(parameters, "read", lambda: dataclasses.replace(GIVEN, is_dirty=True))
    arguments = ["make", f"--folder={tmp_path / 'new'}", "--parts", "manifests"]
    assert program.main(arguments) == 1
    assert "files differ from the commit" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    assert program.main([*arguments, "--allow-dirty"]) == 0


def test_the_notes_are_the_section_of_the_changelog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(changes, "CHANGELOG", tmp_path / "CHANGELOG.md")
    changes.CHANGELOG.write_text("# Changelog\n")
    assert program.main(["notes"]) == 1
    assert "has no section" in capsys.readouterr().err
    changes.CHANGELOG.write_text(f"# Changelog\n\n## {version.current()}\n\nIt is new.\n")
    assert program.main(["notes"]) == 0
    assert capsys.readouterr().out == "It is new.\n"
