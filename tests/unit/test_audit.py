"""An audit asks about everything, and one that could not ask fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.release import audit
from hack.release.parameters import ROOT


def program(folder: Path, name: str, script: str) -> Path:
    file = folder / name
    file.write_text(f'#!/bin/sh\necho "$@" >> {folder}/asked\n{script}\n')
    file.chmod(0o755)
    return file


def test_every_file_of_requirements_is_asked_about_strictly(tmp_path: Path) -> None:
    commands = list(audit.of_packages(ROOT / "requirements", program(tmp_path, "pip-audit", "")))
    named = {command[-1].rpartition("/")[2] for command in commands}
    assert {"runtime.txt", "plugin.txt", "sync.txt", "dev.txt", "release.txt", "docs.txt", "audit.txt"} <= named
    assert all("--strict" in command for command in commands)


def test_all_images_are_looked_through_whichever_is_bad(tmp_path: Path) -> None:
    for name in ("a.tar", "b.tar"):
        (tmp_path / name).touch()
    grype = program(tmp_path, "grype", 'case "$*" in *a.tar*) exit 1;; esac')
    assert audit.run(audit.of_images(tmp_path, str(grype))) == 1
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [line.split()[0].rpartition("/")[2] for line in asked] == ["a.tar", "b.tar"]
    assert all("--fail-on=high" in line for line in asked)


def test_an_audit_of_nothing_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(audit.NothingToAudit, match="make audit"):
        list(audit.of_packages(ROOT / "requirements", tmp_path / "missing"))
    with pytest.raises(audit.NothingToAudit, match="no requirements"):
        list(audit.of_packages(tmp_path, program(tmp_path, "pip-audit", "")))
    with pytest.raises(audit.NothingToAudit, match="not on the PATH"):
        list(audit.of_images(tmp_path, str(tmp_path / "missing")))
    with pytest.raises(audit.NothingToAudit, match="no images"):
        list(audit.of_images(tmp_path, str(program(tmp_path, "grype", ""))))
