"""What is attached to a release can be verified where it was downloaded, without folders."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hack.release import assets
from hack.release.assets import AssetsFailed
from hack.release.contents import provenance


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "1.2.3"
    for name in ("charts/a.tgz", "plugin/slurm.yaml", "images/b.oci.tar", "olm/c.tar.gz", "olm/manifests/d.yaml"):
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (made / provenance.STATEMENT).write_text("{}")
    (made / provenance.CHECKSUMS).write_text("of paths")
    return made


def test_every_file_is_there_but_those_that_are_in_an_archive(folder: Path, tmp_path: Path) -> None:
    made = assets.build(folder, tmp_path / "assets")
    assert {path.name for path in made} == {
        *("a.tgz", "slurm.yaml", "b.oci.tar", "c.tar.gz"),
        *(provenance.STATEMENT, provenance.CHECKSUMS),
    }
    assert sorted(made) == sorted((tmp_path / "assets").iterdir())


def test_checksums_are_of_the_names_that_are_downloaded(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "assets"
    assets.build(folder, target)
    (target / "b.oci.tar").unlink()
    command = ["sha256sum", "--check", "--strict", "--ignore-missing", provenance.CHECKSUMS]
    done = subprocess.run(command, cwd=target, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{name}: OK" for name in ("a.tgz", "c.tar.gz", "provenance.intoto.json", "slurm.yaml")
    ]
    assert (folder / provenance.CHECKSUMS).read_text() == "of paths"


def test_two_files_of_one_name_are_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "charts" / "slurm.yaml").write_text("x")
    with pytest.raises(AssetsFailed, match=r"two files have the name slurm\.yaml"):
        assets.build(folder, tmp_path / "assets")
    assert not (tmp_path / "assets").exists()


def test_a_folder_that_is_no_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssetsFailed, match="run `make release`"):
        assets.build(tmp_path, tmp_path / "assets")
