"""Real slurmctlds start with a copy of a live state, by the script of the trial's own container."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from hack.images.rootfs import ensure, ensure_mariadb
from hack.machine import ports
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import TrialObjects
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.parts.slurmctld.manifests import stateful_set
from slinky_operator.cluster.trials.pods import TrialInput
from slinky_operator.cluster.trials.scripts import NOT_COPIED
from slinky_operator.cluster.trials.state_pod import LIVE, MOST_MIB, state_trial
from slinky_operator.slurm.conf.derive import FOLDER
from slinky_operator.slurm.pods.exit_messages import short
from tests.support.accounting_host import AccountingHost
from tests.support.daemons import Daemons
from tests.support.mariadb_host import MariadbHost
from tests.support.slurm_host import SLURM_UID, SlurmHost

OLDER, NEWEST = "24.11", "26.05"

CLUSTER = Cluster.parse(
    {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "slurm", "namespace": "here", "uid": "uid"},
        "spec": {},
    }
)
IMAGES = Images(
    {
        "slurmctld": "slurmctld:1",
        "slurmrestd": "slurmrestd:1",
        "agent": "agent:1",
        "slurmd": "slurmd:1",
        "sssd": "sssd:1",
    }
)
SAID = f"{FOLDER}/said"
"""Where the message goes instead of the kubelet's file."""

WAITS = "until [ -e /var/spool/go ]; do sleep 0.1; done"


class Trial(Daemons):
    """A trial of a copied state outside Kubernetes, on the network on which the live daemons are.

    Parameters
    ----------
    host
        The live daemons.
    state
        What it finds as the live state.
    """

    def __init__(self, release: str, host: SlurmHost, state: Path) -> None:
        super().__init__(ensure(release), "state-trial-")
        self.live = host
        self.place = self.folder / "trial"
        for folder in (self.place, self.folder / "run", self.folder / "etc" / "slurm"):
            folder.mkdir(exist_ok=True)
            os.chown(folder, SLURM_UID, SLURM_UID)
        self.binds |= {FOLDER: self.place, LIVE: state, "/run": self.folder / "run"}
        template = stateful_set(CLUSTER, IMAGES, {})["spec"]["template"]["spec"]
        files = {path.name: path.read_text() for path in host.configuration.glob("*.conf")}
        # It shares its port with the live one here, as no pod does.
        (port,) = ports.hold(1)
        files["slurm.conf"] = files["slurm.conf"].replace(str(host.slurmctld_port), str(port))
        made = self.made(template, files)
        assert made.config_map is not None
        for name, text in made.config_map.body["data"].items():
            (self.folder / "etc" / "slurm" / name).write_text(text)
        container = made.pod.body["spec"]["containers"][0]
        self.script = container["command"][-1].replace("/dev/termination-log", SAID)
        self.variables = {one["name"]: one["value"] for one in container["env"]}

    def made(self, template: dict[str, Any], files: dict[str, str]) -> TrialObjects:
        """The trial with these files."""
        return state_trial(TrialInput(CLUSTER, IMAGES, files, template, template, "claim", "node"))

    def run_it(self, *, lasts: bool = False) -> None:
        """Start it; a slurmctld that runs is left to run if it `lasts`."""
        script = self.script.replace("exit 0\n", "wait\n") if lasts else self.script
        self.spawn(
            "trial",
            ["/bin/sh", "-c", f"sleep 0.1\n{script}"],
            userspec=f"{SLURM_UID}:{SLURM_UID}",
            environment=self.variables,
        )

    def result(self) -> tuple[int, str]:
        """Exit code and message."""
        self.run_it()
        code = self.daemons.pop("trial").process.wait(180)
        said = self.place / "said"
        return code, said.read_text() if said.exists() else ""

    def asks(self, *command: str) -> str:
        """Run a command of Slurm beside it."""
        return self.run_beside("trial", *command, check=False).stdout

    @override
    def logs(self, lines: int = 30) -> str:
        """The ends of all logs, with that of its slurmctld."""
        found = self.place / "slurmctld.log"
        own = found.read_text().splitlines()[-lines:] if found.exists() else []
        return "\n".join((super().logs(lines), "--- slurmctld.log", *own))


@contextmanager
def a_cluster(release: str, extra: str = "") -> Iterator[SlurmHost]:
    host = SlurmHost(ensure(release), extra_conf=extra)
    try:
        host.start_slurmctld()
        yield host
    finally:
        host.close()


def with_jobs(host: SlurmHost) -> list[int]:
    """Two nodes with a job on each, and a job that is held; slurmctld has written down all of it."""
    for name in ("w-0", "w-1"):
        host.add_node(name)
    jobs = [host.sbatch(WAITS, "-w", name) for name in ("w-0", "w-1")]
    host.wait_for(lambda: all(host.job_state(job) == "RUNNING" for job in jobs), "jobs run")
    host.sbatch("true", "--hold", "--comment=the-last-one")
    host.wait_for(lambda: host.has_saved("the-last-one"), "slurmctld has saved its jobs")
    return jobs


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[SlurmHost], Path]:
    """Copy a state that nobody writes any more, to be damaged."""

    def copy(host: SlurmHost) -> Path:
        host.stop("slurmctld")
        made = tmp_path / "state"
        shutil.copytree(host.shared / "slurmctld", made)
        for path in (made, *made.iterdir()):
            os.chown(path, SLURM_UID, SLURM_UID)
        return made

    return copy


@contextmanager
def a_trial(release: str, host: SlurmHost, state: Path | None = None) -> Iterator[Trial]:
    trial = Trial(release, host, state or host.shared / "slurmctld")
    try:
        yield trial
    finally:
        trial.close()


def log_of(host: SlurmHost, name: str) -> str:
    return (host.folder / f"{name}.log").read_text(errors="replace")


def refuses(host: SlurmHost, name: str, call: str) -> bool:
    """Whether a slurmd has been called with a key that is not its own."""
    return f"{call} has authentication error" in log_of(host, name)


@pytest.mark.parametrize("release", [OLDER, NEWEST])
def test_a_newer_slurmctld_reads_the_jobs_and_ends(release: str) -> None:
    (port,) = ports.hold(1)
    static = f"NodeName=s-0 NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=256\nPartitionName=static Nodes=s-0"
    with a_cluster(release, static) as host:
        host.start_slurmd("s-0", ["slurmd", "-D", "-N", "s-0", "-f", "/etc/slurm/slurm.conf"])
        job = host.sbatch(WAITS, "-p", "static")
        host.wait_for(lambda: host.job_state(job) == "RUNNING", "the job on a node of slurm.conf runs")
        jobs = [job, *with_jobs(host)]
        with a_trial(NEWEST, host) as trial:
            code, said = trial.result()
            assert (code, said.strip()) == (0, "Recovered information about 4 jobs")
            assert {path.name for path in (trial.place / "state").iterdir()} >= {"job_state", "node_state"}
        assert [host.job_state(job) for job in jobs] == ["RUNNING"] * 3


@pytest.mark.parametrize("release", [OLDER, NEWEST])
def test_no_live_slurmd_obeys_it(release: str) -> None:
    """As if it went on, on the network of the live daemons, and ended all jobs that it has found."""
    with a_cluster(release) as host:
        jobs = with_jobs(host)
        with a_trial(NEWEST, host) as trial:
            trial.run_it(lasts=True)
            trial.wait_for(lambda: "UP" in trial.asks("scontrol", "ping"), "it answers")
            trial.asks("scancel", *map(str, jobs))
            for name in ("w-0", "w-1"):
                refusal = partial(refuses, host, name, "REQUEST_TERMINATE_JOB")
                trial.wait_for(refusal, f"{name} refuses to end its job")
        assert [host.job_state(job) for job in jobs] == ["RUNNING", "RUNNING"]
        (host.shared / "go").touch()
        host.wait_for(lambda: all(host.job_state(job) == "COMPLETED" for job in jobs), "the jobs end well")


COUNTED = (
    "GresTypes=gpu\nLicenses=matlab:4\nAccountingStorageTRES=gres/gpu,license/matlab\n"
    "PriorityType=priority/multifactor\nPriorityWeightFairshare=1000\nPriorityWeightTRES=cpu=100,gres/gpu=100"
)
OF_A_QOS = "PartitionName=q Nodes=ALL QOS=high AllowQos=high,normal AllowAccounts=lab"


def test_jobs_of_accounts_and_reservations_are_read_without_slurmdbd() -> None:
    with (
        MariadbHost(ensure_mariadb()) as mariadb,
        AccountingHost(
            ensure(OLDER), database=mariadb.database("state"), extra_conf=COUNTED, enforce="associations,limits,qos"
        ) as host,
    ):
        host.sacctmgr("add", "qos", "high", "MaxJobsPU=1")
        host.sacctmgr("add", "account", "lab")
        host.sacctmgr("add", "user", "root", "account=lab", "qos=normal,high", "defaultqos=normal")
        host.write_conf(f"{COUNTED}\n{OF_A_QOS}")
        host.run("scontrol", "reconfigure")
        for name in ("w-0", "w-1"):
            host.add_node(name, cpus=2)
        jobs = [host.sbatch(WAITS, "-A", "lab", *more) for more in (("--qos=high", "-p", "q"), ("-L", "matlab:1"))]
        host.wait_for(lambda: all(host.job_state(job) == "RUNNING" for job in jobs), "jobs run")
        host.sbatch(WAITS, "-A", "lab", "--qos=high", "-p", "q")
        reserved = ("reservationname=r", "start=now", "duration=60", "users=root", "nodes=w-1", "flags=ignore_jobs")
        host.run("scontrol", "create", "reservation", *reserved)
        host.sbatch("true", "-A", "lab", "--hold", "--comment=the-last-one")
        host.wait_for(lambda: host.has_saved("the-last-one"), "slurmctld has saved its jobs")
        host.wait_for(lambda: bool(host.saved("resv_state")), "slurmctld has saved the reservation")
        with a_trial(NEWEST, host) as trial:
            code, said = trial.result()
            assert (code, said.strip()) == (0, "Recovered information about 4 jobs"), trial.logs()
            assert "Recovered state of 1 reservations" in trial.logs()
        assert [host.job_state(job) for job in jobs] == ["RUNNING", "RUNNING"]


def test_an_older_slurmctld_says_that_it_cannot_read_the_state() -> None:
    with a_cluster(NEWEST) as host:
        with_jobs(host)
        with a_trial(OLDER, host) as trial:
            code, said = trial.result()
    assert code == 1
    assert "incompatible version" in short(said)


@pytest.mark.parametrize("release", [OLDER, NEWEST])
def test_a_damaged_state_is_refused_in_slurmctlds_words(release: str, copied: Callable[[SlurmHost], Path]) -> None:
    with a_cluster(release) as host:
        with_jobs(host)
        state = copied(host)
        whole = (state / "job_state").read_bytes()
        (state / "job_state").write_bytes(whole[: len(whole) // 2])
        with a_trial(NEWEST, host, state) as trial:
            code, said = trial.result()
    assert code == 1
    assert "Incomplete job state save file" in short(said)


def test_a_state_that_is_too_large_or_cannot_be_read_is_not_copied(copied: Callable[[SlurmHost], Path]) -> None:
    with a_cluster(NEWEST) as host:
        state = copied(host)
        with a_trial(NEWEST, host, state) as trial:
            # As if no state were small enough.
            trial.script = trial.script.replace(f"-le {MOST_MIB * 1024} ", "-le 1 ")
            assert trial.result() == (NOT_COPIED, f"it has 0 MiB, and at most {MOST_MIB} are copied")
        state.chmod(0)
        with a_trial(NEWEST, host, state) as trial:
            code, said = trial.result()
    assert code == NOT_COPIED
    assert "Permission denied" in said
