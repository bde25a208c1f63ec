"""Each image of a release folder is unpacked into something empty, says which release it is of, and runs its program.

Not part of `make test`: `make release-check` runs it on the folder that `make release` has filled.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from hack.images.names import SLURM_IMAGES, SLURM_SUITES, SLURMD_OCI
from hack.images.tools import contents
from hack.machine.progress import say
from hack.release import version
from tests.support.slurm_host import SLURM_UID

FOLDER = Path(os.environ.get("RELEASE", f"dist/{version.current()}")).resolve()
ARCHIVES = sorted((FOLDER / "images").glob("*.oci.tar"))
VERSION = version.current()

PROGRAMS = {
    "login": ("sackd", "-h"),
    "mariadb": ("mariadbd", "--version"),
    "slurm-operator": ("slurm-operator", "--help"),
    "slurmctld": ("slurmctld", "-V"),
    "slurmd": ("slurmd", "-V"),
    "slurmd-oci": ("skopeo", "--version"),
    "slurmdbd": ("slurmdbd", "-V"),
    "slurmrestd": ("slurmrestd", "-V"),
    "sssd": ("sssd", "--version"),
}


def named(archive: Path) -> tuple[str, str]:
    """Name and version from the name of the file."""
    name, found, _ = archive.name.removesuffix(".oci.tar").rsplit("-", 2)
    return name, found


def test_all_images_are_there() -> None:
    names = [named(archive) for archive in ARCHIVES]
    assert {name for name, _ in names} == set(PROGRAMS)
    for name in (*SLURM_IMAGES, SLURMD_OCI):
        assert sorted(found[:5] for one, found in names if one == name) == list(SLURM_SUITES)
    assert ("slurm-operator", VERSION) in names


def run(tree: Path, user: str, *command: str) -> str:
    """Run a program of an image, as its user, with what a container has of an environment."""
    path = "/opt/slurm-operator/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    done = subprocess.run(
        ["chroot", f"--userspec={user or '0:0'}", str(tree), *command],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": path, "HOME": "/", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name)
def test_an_image_says_what_it_is_of_and_runs(archive: Path, tmp_path: Path) -> None:
    name, found = named(archive)
    tmp_path.chmod(0o755)
    with contents.opened(archive) as opened:
        (image,) = opened.images()
        for digest in image.layers:
            with opened.layer(digest) as layer:
                layer.extractall(tmp_path, filter="fully_trusted")
    labels = {key.removeprefix("org.opencontainers.image."): text for key, text in image.labels.items()}
    assert (labels["title"], labels["version"]) == (name, found)
    assert {"description", "licenses", "created", "revision"} <= set(labels)
    if name == "slurmdbd":
        # It reads a configuration, which must be its user's, before it prints anything.
        conf = tmp_path / "etc/slurm/slurmdbd.conf"
        conf.write_text("DbdHost=localhost\nSlurmUser=slurm\nStorageType=accounting_storage/mysql\n")
        os.chown(conf, SLURM_UID, SLURM_UID)
        conf.chmod(0o600)
    started = time.monotonic()
    run(tmp_path, image.user, *PROGRAMS[name])
    say(f"{archive.name}: {PROGRAMS[name][0]} answers after {time.monotonic() - started:.1f} s")
    if name == "slurm-operator":
        authorities = (tmp_path / "etc/ssl/certs/ca-certificates.crt").read_text()
        assert authorities.count("BEGIN CERTIFICATE") > 50
    if name in SLURM_IMAGES:
        packages = (tmp_path / "var/lib/dpkg/status").read_text().split("\n\n")
        (client,) = (package for package in packages if package.startswith("Package: slurm-client\n"))
        assert f"\nVersion: {found}-" in client


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name)
def test_an_image_has_a_list_of_what_is_in_it(archive: Path) -> None:
    name, found = named(archive)
    listed = json.loads((FOLDER / "sboms" / archive.name.replace(".oci.tar", ".cdx.json")).read_text())
    assert listed["bomFormat"] == "CycloneDX"
    subject = listed["metadata"]["component"]
    assert (subject["name"], subject["version"]) == (name, found)
    kinds = {one["purl"].split("/")[0] for one in listed["components"] if one.get("purl")}
    assert kinds == ({"pkg:deb", "pkg:pypi"} if name == "slurm-operator" else {"pkg:deb"})


def test_other_programs_read_the_archives(tmp_path: Path) -> None:
    (operator,) = (archive for archive in ARCHIVES if named(archive)[0] == "slurm-operator")
    store = ["buildah", f"--root={tmp_path}/root", f"--runroot={tmp_path}/run", "--storage-driver=vfs"]
    subprocess.run([*store, "pull", "--quiet", f"oci-archive:{operator}"], check=True, capture_output=True)
    listed = subprocess.run([*store, "images", "--quiet"], check=True, capture_output=True, text=True).stdout
    assert len(listed.split()) == 1
