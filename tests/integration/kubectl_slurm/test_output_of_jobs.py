"""The command by which `logs job/ID` reads a file in slurmd's container, as root here, as there."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_slurm.commands.logs import job_output

STRANGER = "12345"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody may enter."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


def read(path: Path) -> subprocess.CompletedProcess[str]:
    command = ["sh", "-c", job_output.READ, "sh", STRANGER, STRANGER, "2", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_last_lines_of_a_file_are_read(folder: Path) -> None:
    own = folder / "-own"
    own.write_text("1\n2\n3\n")
    own.chmod(0o444)
    assert read(own).stdout == "2\n3\n"


def test_a_link_shows_nothing_that_the_user_of_the_job_may_not_read(folder: Path) -> None:
    secret, link = folder / "secret", folder / "link"
    secret.write_text("key\n")
    secret.chmod(0o400)
    link.symlink_to(secret)
    refused = read(link)
    assert refused.stdout == ""
    assert "Permission denied" in refused.stderr
