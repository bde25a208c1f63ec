"""``srun --container-image`` in a real Slurm with pyxis and enroot, with the capabilities that slurmd has in a pod.

Not part of `make test`, which has no sources of them: `make pyxis-check PYXIS=FOLDER ENROOT=FOLDER` builds it first.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import oci_images
from tests.support.slurm_host import SlurmHost

PLACE = "/var/spool/jobs"
USER = 1000
PLUGSTACK = "required /usr/local/lib/slurm/spank_pyxis.so runtime_path=/var/spool/pyxis\n"
SCRIPT = "read said < /etc/of-image; echo said=$said; id -u; exit 5"


@pytest.fixture(scope="module")
def host() -> Iterator[SlurmHost]:
    tree = Path(os.environ["PYXIS_TREE"])
    slurm = SlurmHost(tree)
    slurm.as_in_pods = True
    slurm.write_file("plugstack.conf", PLUGSTACK)
    with slurm:
        place = slurm.shared / "jobs"
        (slurm.shared / "pyxis").mkdir()
        root = place / "root"
        for name in ("etc", "home", "root", "run", "usr/bin", "var"):
            (root / name).mkdir(parents=True)
        with tarfile.open(fileobj=io.BytesIO(oci_images.layer(tree))) as layer:
            layer.extractall(root, filter="tar")
        (root / "etc/of-image").write_text("yes\n")
        (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        for folder, _, files in os.walk(place):
            for path in (folder, *(os.path.join(folder, file) for file in files)):  # noqa: PTH118 - of os.walk
                os.chown(path, USER, USER, follow_symlinks=False)
        packed = as_user(slurm, "mksquashfs", "root", "image.sqsh", "-noappend", "-no-progress")
        assert packed.returncode == 0, packed.stderr
        shutil.rmtree(root)
        slurm.add_node("w-0", cpus=4, configless=True)
        yield slurm


def as_user(host: SlurmHost, *command: str) -> subprocess.CompletedProcess[str]:
    change = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "env", "HOME=/home/user")
    return host.run(*change, "sh", "-c", f'cd {PLACE} && exec "$@"', "sh", *command, check=False)


def in_container(host: SlurmHost, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    return as_user(host, "srun", f"--container-image={PLACE}/image.sqsh", *options, "/bin/sh", "-c", script)


def test_a_step_sees_the_image_and_its_exit_code_is_the_programs(host: SlurmHost) -> None:
    step = in_container(host, SCRIPT)
    assert (step.returncode, step.stdout) == (5, f"said=yes\n{USER}\n"), step.stderr


def test_a_folder_of_the_node_can_be_mounted(host: SlurmHost) -> None:
    step = in_container(host, "echo kept > /jobs/out", f"--container-mounts={PLACE}:/jobs")
    assert step.returncode == 0, step.stderr
    assert (host.shared / "jobs/out").read_text() == "kept\n"


def test_an_image_that_is_not_there_ends_the_step_and_nothing_runs_on_the_node(host: SlurmHost) -> None:
    step = as_user(host, "srun", f"--container-image={PLACE}/missing.sqsh", "touch", f"{PLACE}/on-the-node")
    assert step.returncode != 0
    assert "missing.sqsh" in step.stderr
    assert not (host.shared / "jobs/on-the-node").exists()
