"""The sample's prolog and epilog keep the jobs of each GPU in a folder, on real Slurm of both releases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hack.images.rootfs import ensure
from hack.localkube.paths import PROJECT
from hack.machine import ports
from tests.support.slurm_host import SlurmHost

SAMPLE = PROJECT / "config" / "samples" / "more" / "gpu-jobs.yaml"
GRES = """\
NodeName=g-0 Name=gpu Type=h100 File=/dev/null
NodeName=g-0 Name=gpu Type=h100 File=/dev/zero
"""
"""Two files that are no GPUs, but files that there are: slurmd wants no more."""

CONF = """\
GresTypes=gpu
Prolog=/etc/slurm/prolog.sh
Epilog=/etc/slurm/epilog.sh
"""
PLACE = "/run/gpu-jobs"


@pytest.fixture(params=["24.11", "26.05"])
def slurm(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[SlurmHost, Path]]:
    """A node with two GPUs, and the folder that dcgm-exporter would read."""
    scripts = {one["metadata"]["name"]: one for one in yaml.safe_load_all(SAMPLE.read_text())}
    host = SlurmHost(ensure(request.param), extra_conf=CONF)
    host.write_file("gres.conf", GRES, 0o444)
    for kind in ("prolog", "epilog"):
        host.write_file(f"{kind}.sh", scripts[f"gpu-jobs-{kind}"]["data"]["90-gpu-jobs"])
    folder = tmp_path / "jobs"
    folder.mkdir()
    host.binds[PLACE] = folder
    with host:
        (port,) = ports.hold(1)
        conf = f"Port={port} CPUs=4 RealMemory=256 Features=all Gres=gpu:h100:2"
        host.start_slurmd("g-0", ["slurmd", "-D", "-Z", "-N", "g-0", "-f", "/etc/slurm/slurm.conf", "--conf", conf])
        yield host, folder


def shown(folder: Path) -> dict[str, list[str]]:
    """The jobs of each GPU."""
    return {path.name: path.read_text().split() for path in folder.iterdir()}


def test_a_gpu_has_its_jobs_while_they_run(slurm: tuple[SlurmHost, Path]) -> None:
    host, folder = slurm

    def start(gpus: str) -> str:
        job = str(host.sbatch("sleep 600", "--ntasks=1", *([f"--gres={gpus}"] if gpus else [])))
        host.wait_for(lambda: host.job_state(int(job)) == "RUNNING", f"job {job} runs")
        return job

    first, without = start("gpu:1"), start("")
    second = start("gpu:1")
    # A job may run before its prolog has ended.
    host.wait_for(lambda: shown(folder) == {"0": [first], "1": [second]}, "each GPU has its job")
    host.run("scancel", first)
    host.wait_for(lambda: shown(folder) == {"1": [second]}, "the first has left its GPU")
    third = start("gpu:1")
    host.wait_for(lambda: shown(folder) == {"0": [third], "1": [second]}, "the next job has it")
    # What a job of before left behind, of another node's, goes with nobody else's.
    (folder / "1").write_text(f"{second}\n77{second}\n")
    host.run("scancel", second, third, without)
    host.wait_for(lambda: shown(folder) == {"1": [f"77{second}"]}, "all have left, and nobody else's line is touched")
    assert "drain" not in host.run("sinfo", "--noheader", "--format=%T").stdout
