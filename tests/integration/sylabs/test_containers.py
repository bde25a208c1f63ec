"""
``srun --container`` in real Slurms, with the oci.conf of the operator, real crun, skopeo and umoci.

slurmd has the capabilities that it has in a pod, and a /proc of which a part is hidden, as there.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.images.rootfs import ensure_oci
from slinky_api.sylabs import wlm
from slinky_api.v1alpha1.slurmjob.submission import SlurmJobSpec
from slinky_operator.jobs import translation as submissions
from slinky_operator.jobs.images.runtimes import Runtime
from slinky_operator.sylabs.translation.site import Site
from slinky_operator.sylabs.translation.slurmjob import translate
from slurm_client import MintedToken, SlurmClient
from tests.support import oci_images
from tests.support.slurm_host import SlurmHost
from tests.unit.slurm.conf.goldens import Case

PLACE = "/var/spool/jobs"
USER = 1000
"""The user `user` of the tree."""

TOLD = f'[ "$OF_IMAGE" = yes ] || exit 9; id -u > {PLACE}/told; exit 5'


@pytest.fixture(scope="module", params=["24.11", "26.05"])
def host(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    """A cluster of one node that gets its configuration from slurmctld, with a folder that all containers see."""
    tree = ensure_oci(request.param)
    slurm = SlurmHost(tree)
    slurm.as_in_pods = True
    rendered = Case({"containers": {"mounts": [PLACE, "/missing"]}}).render()
    assert not rendered.problems
    slurm.write_file("oci.conf", rendered.files["oci.conf"])
    with slurm:
        place = slurm.shared / "jobs"
        (place / "images").mkdir(parents=True)
        for folder in (place, place / "images"):
            os.chown(folder, USER, USER)
        for name, user in (("plain", ""), ("other", "33:44")):
            oci_images.image(tree, ["/bin/sh"], user).write(place / f"image-{name}")
            unpack = ("umoci", "unpack", "--rootless", "--image", f"{PLACE}/image-{name}:test", f"{PLACE}/{name}")
            unpacked = as_user(slurm, *unpack)
            assert unpacked.returncode == 0, unpacked.stderr
        slurm.add_node("w-0", cpus=4, configless=True)
        yield slurm


@pytest.fixture
def place(host: SlurmHost) -> Iterator[Path]:
    """The shared folder, without what other tests have left; at the end nothing of a container is left on the node."""
    place = host.shared / "jobs"
    for name in ("told", "begun", "out"):
        (place / name).unlink(missing_ok=True)
    yield place
    spool = host.shared / "slurmd-w-0"
    host.wait_for(lambda: not list(spool.glob("oci-*")), "the folders of the steps are removed")
    assert list((place / "images").iterdir()) == []


def as_user(host: SlurmHost, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the tree as the user."""
    change = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "env", "HOME=/home/user")
    return host.run(*change, "sh", "-c", f'cd {PLACE} && exec "$@"', "sh", *command, check=False)


def in_container(host: SlurmHost, bundle: str, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    return as_user(host, "srun", *options, f"--container={PLACE}/{bundle}", "/bin/sh", "-c", script)


def test_a_container_is_the_users_and_its_exit_code_that_of_the_step(host: SlurmHost, place: Path) -> None:
    step = in_container(host, "plain", TOLD)
    assert step.returncode == 5, step.stderr
    assert (place / "told").read_text() == "0\n"
    assert (place / "told").stat().st_uid == USER
    # It sees what the image has, and what the Cluster mounts; not the node's files, nor where the node's Slurm is.
    step = in_container(host, "plain", "[ ! -e /etc/slurm ] && [ ! -e /missing ] && echo conf=$SLURM_CONF")
    assert (step.returncode, step.stdout) == (0, "conf=\n"), step.stderr


def test_the_user_of_an_image_is_the_user_of_the_job_outside(host: SlurmHost, place: Path) -> None:
    step = in_container(host, "other", f"id; {TOLD}")
    assert (step.returncode, step.stdout) == (5, "uid=33 gid=44 groups=44\n"), step.stderr
    assert (place / "told").stat().st_uid == USER


def test_each_task_has_its_container(host: SlurmHost, place: Path) -> None:
    step = in_container(host, "plain", "echo $SLURM_PROCID", "--ntasks=3", "--cpus-per-task=1")
    assert (step.returncode, sorted(step.stdout.split())) == (0, ["0", "1", "2"]), step.stderr
    assert not (place / "told").exists()


def test_a_signal_reaches_the_program_and_a_cancelled_job_leaves_nothing(host: SlurmHost, place: Path) -> None:
    script = f"trap 'echo heard > {PLACE}/told; exit' TERM; : > {PLACE}/begun; while :; do sleep 0.1; done"
    step = shlex.join(["srun", f"--container={PLACE}/plain", "/bin/sh", "-c", script])
    sent = as_user(host, "sbatch", "--parsable", "--output=/dev/null", f"--wrap={step}")
    number = sent.stdout.strip()
    assert number, sent.stderr
    host.wait_for((place / "begun").exists, "the container runs")
    host.run("scancel", number)
    host.wait_for(lambda: host.job_state(int(number)) == "CANCELLED", "the job is cancelled")
    host.wait_for((place / "told").exists, "the program has heard of it")


def test_a_bundle_that_is_not_there_fails_the_step(host: SlurmHost, place: Path) -> None:
    step = in_container(host, "missing", TOLD)
    assert step.returncode != 0
    assert "Task launch" in step.stderr
    assert not (place / "told").exists()


async def test_the_script_of_a_slurmjob_runs_in_the_container_that_it_names(host: SlurmHost, place: Path) -> None:
    script = f"#!/bin/sh\n#SBATCH --container={PLACE}/plain\n{TOLD}\n"
    asked = SlurmJobSpec.model_validate({"clusterName": "slurm", "script": script, "output": f"{PLACE}/out"})
    async with SlurmClient(host.url, MintedToken(host.jwt_key, "user")) as slurm:
        submitted = await slurm.submit_job(submissions.translate(asked, name="sample", user="user").job)
        job = await slurm.wait_job(submitted.id)
    # Slurm's own words about the container would be in the output of the job.
    assert (job.exit_status, (place / "out").read_text()) == (5, "")
    assert (place / "told").read_text() == "0\n"
    assert (place / "told").stat().st_uid == USER


async def test_a_wlmjob_runs_the_command_of_its_image(host: SlurmHost, place: Path) -> None:
    made = oci_images.image(host.root, ["/bin/sh", "-c", TOLD], "33:44")
    with oci_images.registry({"sample": made}) as address:
        trusted = host.configuration.parent / "containers" / "registries.conf.d" / "test.conf"
        trusted.write_text(f'[[registry]]\nlocation = "{address}"\ninsecure = true\n')
        site = Site(runtime=Runtime.SLURM, folder=f"{PLACE}/images")
        spec = wlm.WlmJobSpec.model_validate({"image": f"docker://{address}/sample:test"})
        asked = translate(spec, site).spec.model_copy(update={"output": f"{PLACE}/out"})
        async with SlurmClient(host.url, MintedToken(host.jwt_key, "user")) as slurm:
            submitted = await slurm.submit_job(submissions.translate(asked, name="sample", user="user").job)
            job = await slurm.wait_job(submitted.id)
    assert (job.succeeded, job.exit_status) == (False, 5), (place / "out").read_text()
    assert (place / "told").read_text() == "33\n"
    assert (place / "told").stat().st_uid == USER
