"""The behaviour of real daemons of both releases that rendering relies on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping

import pytest

from hack.images.rootfs import ensure
from slinky_operator.slurm.conf import parse, restart_keys
from tests.support.slurm_host import SlurmHost
from tests.unit.slurm.conf.goldens import Case

pytestmark = pytest.mark.smoke

SERIES = ("24.11", "26.05")
SCRIPT = "#!/bin/sh\necho {word} $SLURM_JOB_ID >> /var/spool/said\n"


@pytest.fixture(params=SERIES)
def slurm(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    """A cluster of each release, with slurmctld alone."""
    host = SlurmHost(ensure(request.param))
    try:
        host.start_slurmctld()
        (host.shared / "said").touch()
        (host.shared / "said").chmod(0o666)
        yield host
    finally:
        host.close()


def script(word: str) -> str:
    return SCRIPT.format(word=word)


def give(host: SlurmHost, spec: Mapping[str, object]) -> None:
    """Bring what is rendered for a Cluster to the daemons: its files as they are mounted, its keys beside ours."""
    rendered = Case(spec).render()
    assert not rendered.problems
    keys = parse(rendered.files["slurm.conf"]).keys
    before = {path.name for path in host.configuration.iterdir()}
    for name in before | rendered.files.keys():
        if name.startswith(("prolog", "epilog")) or name in rendered.files.keys() - {"slurm.conf"}:
            host.write_file(name, rendered.files.get(name))
    lines = [f"{key}={value}" for key in sorted(keys) if key.startswith(("prolog", "epilog")) for value in keys[key]]
    host.write_conf("\n".join(lines))
    host.reconfigure()


def said_by_a_job(host: SlurmHost, *last: str) -> list[str]:
    """Run a job and return what scripts said of it, once the last ones have."""
    job = host.sbatch("true")
    log = host.shared / "said"

    def words() -> list[str]:
        return [line.split()[0] for line in log.read_text().splitlines() if line.endswith(f" {job}")]

    host.wait_for(lambda: words()[-len(last) :] == list(last), f"scripts of job {job} said {last}")
    return words()


def test_scripts_run_in_order_and_change_with_a_reconfigure(slurm: SlurmHost) -> None:
    slurm.add_node("w-0", configless=True)
    give(
        slurm,
        {
            "prologScripts": {"b": script("second"), "a": script("first")},
            "epilogScripts": {"a": script("last")},
            "prologSlurmctldScripts": {"a": script("before")},
        },
    )
    assert said_by_a_job(slurm, "last") == ["before", "first", "second", "last"]

    give(slurm, {"prologScripts": {"a": script("changed")}, "epilogScripts": {"b": script("end")}})
    assert said_by_a_job(slurm, "end") == ["changed", "end"]


def test_a_job_under_way_ends_with_the_new_epilog(slurm: SlurmHost) -> None:
    slurm.add_node("w-0", configless=True)
    give(slurm, {"epilogScripts": {"a": script("old")}})
    job = job_that_waits(slurm)
    give(slurm, {"epilogScripts": {"a": script("new")}})
    (slurm.shared / "go").touch()
    slurm.wait_for(lambda: (slurm.shared / "said").read_text() != "", "the epilog has run")
    assert (slurm.shared / "said").read_text() == f"new {job}\n"
    slurm.wait_for(lambda: slurm.job_state(job) == "COMPLETED", "the job has ended well")


def job_that_waits(host: SlurmHost) -> int:
    """Start a job that ends when there is a file `go`; slurmd has begun it, and nothing of its start is under way."""
    job = host.sbatch("touch /var/spool/begun; until [ -e /var/spool/go ]; do sleep 0.1; done")
    host.wait_for((host.shared / "begun").exists, "the job has begun")
    return job


TAKEN_OVER = {
    "MaxNodeCount": "17",
    "SelectTypeParameters": "CR_CPU",
    "SchedulerType": "sched/builtin",
    "PriorityType": "priority/basic",
    "JobAcctGatherType": "jobacct_gather/linux",
    "MessageTimeout": "25 sec",
    "Licenses": "matlab:7",
    "CommunicationParameters": "keepaliveinterval=30",
}


def test_all_but_listening_is_taken_over_and_a_restart_harms_no_job(slurm: SlurmHost) -> None:
    slurm.add_node("w-0")
    job = job_that_waits(slurm)
    before = listening(slurm.slurmctld_port)
    slurm.write_conf("\n".join(f"{key}={value.removesuffix(' sec')}" for key, value in TAKEN_OVER.items()))
    slurm.run("scontrol", "reconfigure")
    slurm.wait_for(lambda: shown(slurm) == TAKEN_OVER, "every key is taken over")
    assert slurm.job_state(job) == "RUNNING"

    # Only that it listens somewhere else is missing, which is why a change of it is handled separately.
    assert listening(slurm.slurmctld_port) == before == {"127.0.0.1"}
    one, other = (restart_keys(parse(f"CommunicationParameters={item}")) for item in ("NoInAddrAny", "x"))
    assert one != other
    slurm.stop("slurmctld")
    slurm.start_slurmctld()
    assert listening(slurm.slurmctld_port) == {"0.0.0.0"}  # noqa: S104 - what is looked for
    assert slurm.job_state(job) == "RUNNING"
    (slurm.shared / "go").touch()
    slurm.wait_for(lambda: slurm.job_state(job) == "COMPLETED", "the job has ended well")


def shown(host: SlurmHost) -> dict[str, str]:
    lines = host.run("scontrol", "show", "config").stdout.splitlines()
    found = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}
    return {key: found.get(key, "") for key in TAKEN_OVER}


def listening(port: int) -> set[str]:
    lines = subprocess.run(["ss", "-ltnH", f"sport = :{port}"], capture_output=True, text=True, check=True).stdout
    return {line.split()[3].rpartition(":")[0] for line in lines.splitlines()}


def test_less_room_than_nodes_ends_jobs_and_is_why_it_waits(slurm: SlurmHost) -> None:
    for name in ("w-0", "w-1"):
        slurm.add_node(name)
    job = slurm.sbatch("sleep 600", "-w", "w-1", "--no-requeue")
    slurm.wait_for(lambda: slurm.job_state(job) == "RUNNING", "the job runs")
    slurm.max_nodes = 1
    slurm.write_conf()
    slurm.run("scontrol", "reconfigure")
    slurm.wait_for(lambda: "w-1" not in slurm.run("sinfo", "-hN", "-o", "%N").stdout, "w-1 is forgotten")
    assert slurm.job_state(job) != "RUNNING"
