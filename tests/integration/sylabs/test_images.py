"""
WlmJobs in a real Slurm: their scripts start real steps, with stand-ins for what fetches and runs images.

``srun --container`` reads a real bundle's config.json and starts it by the runtime of oci.conf, which is a stand-in
too: it keeps the config.json that Slurm has made for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hack.images.rootfs import ensure
from slinky_api.sylabs import wlm
from slinky_api.v1alpha1.slurmjob.submission import JobVariable
from slinky_operator.jobs import translation as submissions
from slinky_operator.jobs.images.runtimes import Runtime
from slinky_operator.sylabs.translation.site import Site
from slinky_operator.sylabs.translation.slurmjob import translate
from slurm_client import MintedToken, SlurmClient
from slurm_client.models.job import FinishedJob
from tests.support.slurm_host import SlurmHost

PLACE = "/var/spool/jobs"
RECORD = f"""#!/bin/sh
printf '%s\\n' "${{0##*/}} $*" >> {PLACE}/calls-$SLURMD_NODENAME-"${{0##*/}}"
"""
IMAGE_COMMAND = ["/of/image", "a b", "it's", "$HOME", "two\nlines", ""]
CONFIG = json.dumps(
    {
        "ociVersion": "1.0.0",
        "process": {"args": IMAGE_COMMAND, "env": ["OF_IMAGE=yes"], "cwd": "/"},
        "root": {"path": "rootfs"},
    }
)
PROGRAMS: Mapping[str, str] = {
    "apptainer": 'case "$1" in pull) : > "$2";; run) [ -e "$2" ] || exit 9; . /var/spool/jobs/inside;; esac\n',
    "skopeo": "",
    "umoci": f'mkdir -p "$5/rootfs"; cp {PLACE}/config.json "$5/config.json"\n',
    "jq": f'cat "{PLACE}/words"\n',
    "runtime": f'cp "$1/config.json" {PLACE}/started-$SLURMD_NODENAME\n. {PLACE}/inside\n',
}
OCI_CONF = f"""\
RunTimeQuery="false"
RunTimeKill="true"
RunTimeDelete="true"
RunTimeRun="{PLACE}/bin/runtime %b"
"""


@pytest.fixture(scope="module", params=["24.11", "26.05"])
def host(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    """A cluster of two nodes that get their configuration from slurmctld, and share a folder."""
    # On a busy machine a script needs more than the 5 s of other tests to remove its folder before Slurm kills it.
    slurm = SlurmHost(ensure(request.param), extra_conf="KillWait=30")
    slurm.write_file("oci.conf", OCI_CONF)
    with slurm:
        place = slurm.shared / "jobs"
        for folder in (place / "bin", place / "images"):
            folder.mkdir(parents=True)
        for name, text in PROGRAMS.items():
            (place / "bin" / name).write_text(RECORD + text)
            (place / "bin" / name).chmod(0o755)
        (place / "config.json").write_text(CONFIG)
        words = (each.replace("'", "'\\''") for each in IMAGE_COMMAND)
        (place / "words").write_text(" ".join(f"'{each}'" for each in words))
        for name in ("w-0", "w-1"):
            slurm.add_node(name, cpus=2, configless=True)
        yield slurm


@pytest.fixture
def place(host: SlurmHost) -> Path:
    """The folder that jobs and tests share, without what other tests have left."""
    place = host.shared / "jobs"
    for left in (*place.glob("calls-*"), *place.glob("out"), *place.glob("started-*")):
        left.unlink()
    (place / "inside").write_text("")
    return place


def calls(place: Path, program: str) -> dict[str, list[str]]:
    """What each node called a program with."""
    found = sorted(place.glob(f"calls-*-{program}"))
    return {path.name.split("-", 1)[1].removesuffix(f"-{program}"): path.read_text().splitlines() for path in found}


def started(place: Path) -> dict[str, str]:
    """What the image on each node has said when it started."""
    return {path.name.removeprefix("started-"): path.read_text() for path in place.glob("started-*")}


async def submitted(slurm: SlurmClient, runtime: Runtime, **spec: Any) -> int:
    """Submit a WlmJob as the operator would."""
    site = Site(runtime=runtime, folder=f"{PLACE}/images", is_folder_shared=True)
    found = translate(wlm.WlmJobSpec.model_validate(spec), site).spec
    path = JobVariable(name="PATH", value=f"{PLACE}/bin:/usr/bin:/bin")
    asked = found.model_copy(update={"env": (path,), "output": f"{PLACE}/out"})
    return (await slurm.submit_job(submissions.translate(asked, name="sample", user="root").job)).id


async def ran(host: SlurmHost, runtime: Runtime, **spec: Any) -> FinishedJob:
    async with SlurmClient(host.url, MintedToken(host.jwt_key, "root")) as slurm:
        return await slurm.wait_job(await submitted(slurm, runtime, **spec))


async def test_an_image_runs_once_on_each_node_with_the_cpus_of_the_node(host: SlurmHost, place: Path) -> None:
    (place / "inside").write_text(f'echo "$SLURM_CPUS_PER_TASK $SLURM_NTASKS" > {PLACE}/started-$SLURMD_NODENAME\n')
    job = await ran(host, Runtime.APPTAINER, image="docker://a", resources={"nodes": 2, "cpuPerNode": 2})
    assert job.succeeded, (place / "out").read_text()
    file = f"{PLACE}/images/wlmjob-{job.id}-0/image.sif"
    assert calls(place, "apptainer") == {
        "w-0": [f"apptainer pull {file} docker://a", f"apptainer run {file}"],
        "w-1": [f"apptainer run {file}"],
    }
    assert started(place) == {"w-0": "2 2\n", "w-1": "2 2\n"}
    assert list((place / "images").iterdir()) == []


@pytest.mark.parametrize(
    ("runtime", "end"),
    [(Runtime.APPTAINER, "CANCELLED"), (Runtime.SLURM, "CANCELLED"), (Runtime.SLURM, "TIMEOUT")],
)
async def test_the_folder_of_a_job_that_slurm_ends_goes(
    host: SlurmHost, place: Path, runtime: Runtime, end: str
) -> None:
    (place / "inside").write_text(f": >> {PLACE}/started-$SLURMD_NODENAME\nexec sleep 3600\n")
    async with SlurmClient(host.url, MintedToken(host.jwt_key, "root")) as slurm:
        number = await submitted(slurm, runtime, image="docker://a", resources={"nodes": 2})
        host.wait_for(lambda: len(started(place)) == 2, "the image runs on both nodes")
        assert [path.name for path in (place / "images").iterdir()] == [f"wlmjob-{number}-0"]
        if end == "CANCELLED":
            await slurm.cancel_job(number)
        else:
            host.end_now(number)
        job = await slurm.wait_job(number)
    assert [each.state.base for each in job.ends] == [end]
    host.wait_for(lambda: not list((place / "images").iterdir()), "the folder is removed")


async def test_the_exit_code_of_an_image_is_that_of_the_job(host: SlurmHost, place: Path) -> None:
    (place / "inside").write_text("exit 5\n")
    for runtime in (Runtime.APPTAINER, Runtime.SLURM):
        job = await ran(host, runtime, image="docker://a")
        assert (job.succeeded, job.exit_status) == (False, 5), (place / "out").read_text()
        assert list((place / "images").iterdir()) == []


async def test_slurm_starts_the_bundle_with_the_command_of_the_image(host: SlurmHost, place: Path) -> None:
    job = await ran(host, Runtime.SLURM, image="docker://a", resources={"nodes": 2})
    assert job.succeeded, (place / "out").read_text()
    for node in ("w-0", "w-1"):
        config = json.loads(started(place)[node])
        assert config["process"]["args"] == IMAGE_COMMAND
        assert "OF_IMAGE=yes" in config["process"]["env"]
        assert config["root"]["path"] == f"{PLACE}/images/wlmjob-{job.id}-0/bundle/rootfs"
    assert calls(place, "runtime").keys() == {"w-0", "w-1"}
    assert calls(place, "skopeo").keys() == calls(place, "umoci").keys() == {"w-0"}
    assert list((place / "images").iterdir()) == []


async def test_nothing_runs_where_slurm_would_ignore_the_container(host: SlurmHost, place: Path) -> None:
    host.write_file("oci.conf", None)
    host.reconfigure()
    try:
        job = await ran(host, Runtime.SLURM, image="docker://a")
    finally:
        host.write_file("oci.conf", OCI_CONF)
        host.reconfigure()
    assert not job.succeeded
    assert "has no oci.conf" in (place / "out").read_text()
    assert calls(place, "skopeo") == {}
