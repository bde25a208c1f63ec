"""What jobs refer to, and a change that takes it away, on real daemons of both releases: the matrix of references.

The rows, and what each does to a pending and a running job, are in `tests.support.references`. All changes are made by
one reconfigure: no two rows concern the same line.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from hack.images.rootfs import ensure, ensure_mariadb
from hack.machine import ports
from slinky_operator.cluster.rollout.in_use.removals import Kept, keep
from slinky_operator.cluster.rollout.slurm_questions import ask_use
from slinky_operator.slurm.conf import ConfFiles
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slurm_client import MintedToken, SlurmClient
from tests.support.accounting_host import AccountingHost
from tests.support.mariadb_host import MariadbHost
from tests.support.references import ACCOUNT_ROWS, RELEASES, ROWS, TOPOLOGY_ROW, Fate, Row
from tests.support.slurm_host import SlurmHost

pytestmark = pytest.mark.timeout(300)

OPTIONS = "SlurmdParameters=config_overrides\nDebugFlags=NO_CONF_HASH"
"""Nodes may say that they have more than this machine, and their slurmds keep the file they were started with."""

HAS = "CPUs=2 RealMemory=256"
NODES: Mapping[str, tuple[str, str]] = {
    # Name: its line before, and after.
    "on": (f"{HAS} Feature=on", ""),
    "required": (HAS, ""),
    "renamed": (HAS, ""),
    "listed": (HAS, HAS),
    "listed-gone": (HAS, ""),
    "excluded": (HAS, ""),
    "fewer": ("CPUs=4 RealMemory=256", HAS),
    "more": (HAS, "CPUs=4 RealMemory=256"),
    # A node that ends a job is busy with that for a minute, and has no room for the pending one.
    "fewer-too": ("CPUs=4 RealMemory=256", HAS),
    "more-too": (HAS, "CPUs=4 RealMemory=256"),
    "sockets": ("Sockets=1 CoresPerSocket=4 RealMemory=256", "Sockets=2 CoresPerSocket=2 RealMemory=256"),
    "memory": (HAS, "CPUs=2 RealMemory=64"),
    "left": (HAS, HAS),
    "tape": (f"{HAS} Feature=tape Gres=tape:2", f"{HAS} Feature=tape"),
    "gpus": (f"{HAS} Gres=gpu:a:2", f"{HAS} Gres=gpu:a:1"),
    "types": (f"{HAS} Gres=gpu:a:2", f"{HAS} Gres=gpu:b:2"),
    "lost": (f"{HAS} Feature=lost", HAS),
    "lost-too": (f"{HAS} Feature=lost-too", HAS),
    "alone": (HAS, ""),
    "together": (HAS, ""),
}
DYNAMIC = {"big": "all", "crowd": "crowd", "paired": "paired", "parted": "parted", "licensed": "licensed"}
"""Nodes that no line names, each with a feature."""

SILENT = "listed-gone"
"""A node without a slurmd, so that a job that names it and another one runs on the other one."""

PARTITIONS = ("removed", "renamed", "first", "second", "stays", "shorter", "closed")
BEFORE = "\n".join(
    (
        OPTIONS,
        "GresTypes=gpu,tape",
        "Licenses=removed:4,renamed:4,fewer:4,reserved:4",
        *(f"PartitionName={name} Nodes=ALL State=UP" for name in PARTITIONS),
        "PartitionName=shrunk Nodes=left,listed State=UP",
    )
)
AFTER = f"""\
{OPTIONS}
GresTypes=gpu
Licenses=other:4,fewer:1
PartitionName=other Nodes=ALL State=UP
PartitionName=stays Nodes=ALL State=UP
PartitionName=shorter Nodes=ALL State=UP MaxTime=1
PartitionName=closed Nodes=ALL State=UP AllowGroups=nogroup
PartitionName=shrunk Nodes=listed State=UP
"""
RESERVATIONS = {
    "node": "Nodes=alone",
    "nodes": "Nodes=together,paired",
    "partition": "Nodes=parted PartitionName=removed",
    "license": "Nodes=licensed Licenses=reserved:1",
}
WAITS = "until [ -e /var/spool/go ]; do sleep 0.2; done"
LACKING = ("Licenses", "PartitionTimeLimit", "Reservation", "ReqNodeNotAvail", "Resources")
"""First words of reasons of a job that waits for something."""
UNHARMED = frozenset({Fate.SAFE, Fate.WAITS})
SHOWN = "JobID:.12,:|,State:.20,:|,Reason:.80,:|,PriorityLong:.12,:|,RestartCnt:.4,:|,Licenses:.30,:|,NodeList:.20"


def gres_conf(*, after: bool) -> str:
    lines = [f"NodeName=gpus,types Name=gpu Type=a File=/dev/{one}" for one in ("null", "zero")]
    lines.append("NodeName=tape Name=tape Count=2")
    if after:
        lines = ["NodeName=gpus Name=gpu Type=a File=/dev/null"]
        lines += [f"NodeName=types Name=gpu Type=b File=/dev/{one}" for one in ("null", "zero")]
    return "\n".join((*lines, ""))


class Matrix:
    """One cluster with the jobs of all rows."""

    def __init__(self, release: str) -> None:
        self.host = SlurmHost(ensure(release))
        self.ports = dict(zip(NODES, ports.hold(len(NODES)), strict=True))
        self.jobs: dict[Row, tuple[int, int]] = {}
        self.locked: set[int] = set()

    def write(self, *, after: bool) -> None:
        """The files of before, or of after the change."""
        names = {"renamed": "another-name"} if after else {}
        lines = [
            f"NodeName={names.get(name, name)} NodeAddr=127.0.0.1 Port={self.ports[name]} {both[after] or HAS}"
            for name, both in NODES.items()
            if both[after] or name in names
        ]
        self.host.write_conf("\n".join((*lines, AFTER if after else BEFORE)))
        self.host.write_file("gres.conf", gres_conf(after=after), 0o444)

    def start(self) -> None:
        """Start the daemons, and the jobs: of each row one that waits for its time, and one that runs."""
        host = self.host
        self.write(after=False)
        host.start()
        # A slurmd that finds itself no more in its file ends.
        shutil.copytree(host.configuration, host.shared / "kept")
        slurmd = ["slurmd", "-D", "-f", "/var/spool/kept/slurm.conf", "-N"]
        for name in NODES.keys() - {SILENT}:
            host.spawn(name, [*slurmd, name])
        for name, feature in DYNAMIC.items():
            (port,) = ports.hold(1)
            conf = f"Port={port} CPUs=64 RealMemory=256 Features={feature}"
            host.spawn(name, [*slurmd, name, "-Z", "--conf", conf])
        for name in (NODES.keys() | DYNAMIC.keys()) - {SILENT}:
            host.wait_for(lambda name=name: host.node_is_up(name), f"node {name} is up")  # type: ignore[misc]
        for row in ROWS:
            if not row.words.startswith("--reservation"):
                self.submit(row)
        for name, words in RESERVATIONS.items():
            about = ["Users=root", "StartTime=now", "Duration=60", *words.split()]
            host.run("scontrol", "create", "reservation", f"ReservationName={name}", *about)
        for row in ROWS:
            if row not in self.jobs:
                self.submit(row)
        states = {job: "RUNNING" for _, job in self.jobs.values()}
        host.wait_for(lambda: {job: self.shown()[job]["state"] for job in states} == states, "jobs run")

    def submit(self, row: Row) -> None:
        words = [*row.words.split(), *([] if "--mem" in row.words else ["--mem=1"])]
        pending = self.host.sbatch(WAITS, *words, "--begin=now+2hours")
        self.jobs[row] = pending, self.host.sbatch(WAITS, *words)

    def files(self) -> dict[str, str]:
        """What slurmctld reads."""
        return {path.name: path.read_text() for path in self.host.configuration.glob("*.conf")}

    async def kept(self) -> Kept:
        """What the operator's rules keep of the running configuration, by what slurmrestd says of the jobs."""
        running = self.files()
        self.write(after=True)
        wanted = self.files()
        self.write(after=False)
        # A partition is closed first, and only then it matters which jobs are in it.
        running["slurm.conf"] = re.sub(r"(PartitionName=\w+ .*)State=UP", r"\1State=INACTIVE", running["slurm.conf"])
        async with SlurmClient(self.host.url, token=MintedToken(self.host.jwt_key)) as client:
            asked = cast("ClusterClient", SimpleNamespace(client=client, fresh_jobs=client.jobs))
            use = replace(await ask_use(asked, "", time.monotonic), states={})
        assert not use.why
        return keep(ConfFiles.read(running), ConfFiles.read(wanted), use, 1, live=True)

    def change(self) -> None:
        """Reconfigure; then it is time for jobs that wait, and those that run may end."""
        self.write(after=True)
        self.host.run("scontrol", "reconfigure")
        running = {job for _, job in self.jobs.values()}
        for job, shown in self.shown().items():
            if shown["state"] == "RESV_DEL_HOLD":
                # 24.11 takes any change for a release.
                continue
            time = "TimeLimit=9" if job in running else "StartTime=now"
            said = self.host.run("scontrol", "update", f"JobId={job}", time, check=False).stderr
            if "Invalid node name" in said and shown["state"] in {"PENDING", "RUNNING"}:
                self.locked.add(job)
        (self.host.shared / "go").touch()

    def shown(self) -> dict[int, dict[str, str]]:
        """What Slurm shows of each job."""
        lines = self.host.run("squeue", "-h", "-a", "-t", "all", "-O", SHOWN).stdout.splitlines()
        keys = ("id", "state", "reason", "priority", "restarts", "licenses", "node")
        rows = [dict(zip(keys, map(str.strip, line.split("|")), strict=True)) for line in lines]
        return {int(row["id"]): row for row in rows}

    def has(self, row: Row, shown: Mapping[str, str]) -> bool:
        """Whether a job has what it asked for."""
        gres = self.host.run("sinfo", "-h", "-n", shown["node"], "-o", "%G").stdout if row.has else ""
        return row.has in f"{shown['licenses']} {gres}"

    def fate(self, row: Row, job: int, shown: Mapping[str, str]) -> Fate | None:  # noqa: PLR0911 - one for each fate
        """What has become of a job; `None` while it is open."""
        if job in self.locked:
            return Fate.LOCKED
        if shown["state"] == "COMPLETED":
            return Fate.SAFE if job == self.jobs[row][1] or self.has(row, shown) else Fate.BARE
        if shown["state"] == "NODE_FAIL" or (shown["state"] == "COMPLETING" and "Down" in shown["reason"]):
            return Fate.AGAIN if int(shown["restarts"]) else Fate.ENDS
        if shown["state"] == "RESV_DEL_HOLD" and job == self.jobs[row][1] and not int(shown["restarts"]):
            # Slurm shows this instead of how it has ended.
            return Fate.ENDS
        if shown["state"] == "RESV_DEL_HOLD" or (shown["state"] == "PENDING" and shown["priority"] == "0"):
            return Fate.HELD
        if shown["state"] in {"PENDING", "COMPLETING"} and int(shown["restarts"]):
            return Fate.AGAIN
        return Fate.WAITS if shown["state"] == "PENDING" and shown["reason"].startswith(LACKING) else None

    def poke(self) -> None:
        """Let the scheduler look at jobs that are open: it does so by itself once a minute."""
        shown = self.shown()
        for row, (job, _) in self.jobs.items():
            if self.fate(row, job, shown[job]) is None:
                self.host.run("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)

    def others(self, release: str) -> list[tuple[Row, Fate | None, Mapping[str, str]]]:
        """Jobs that fare otherwise than the table says, or are open."""
        self.poke()
        shown = self.shown()
        found = [
            (row, self.fate(row, job, shown[job]), expected, shown[job])
            for row, jobs in self.jobs.items()
            for job, expected in zip(jobs, row.fates(release), strict=True)
        ]
        return [(row, fate, about) for row, fate, expected, about in found if fate not in expected]


@pytest.fixture(params=RELEASES)
def matrix(request: pytest.FixtureRequest) -> Iterator[tuple[Matrix, str]]:
    """Of one release."""
    made = Matrix(request.param)
    try:
        made.start()
        yield made, request.param
    finally:
        made.host.close()


async def test_what_becomes_of_jobs_and_which_rule_names_them(matrix: tuple[Matrix, str]) -> None:
    made, release = matrix
    words = "; ".join((await made.kept()).why)
    for row, (pending, running) in made.jobs.items():
        seen = [pending] if release in row.rule.hidden else [pending, running]
        harmed = [job for job, fates in zip(seen, row.fates(release), strict=False) if not fates & UNHARMED]
        named = [row.reservation] if row.reservation else harmed if row.rule.guards else []
        unnamed = [one for one in named if not re.search(rf"\b{one}\b", words)]
        assert not unnamed, (row, words)
    made.change()
    made.host.wait_for(lambda: not made.others(release), "each job fares as the table says", timeout=240)


ACCOUNTED = """\
PartitionName=accounts Nodes=ALL AllowAccounts=lab,shut State=UP
PartitionName=allowed Nodes=ALL AllowQos=normal,wide State=UP
PartitionName=own Nodes=ALL QOS=wide State=UP
"""


def test_what_becomes_of_jobs_of_accounts_and_qos() -> None:
    with MariadbHost(ensure_mariadb()) as mariadb:
        for number, release in enumerate(RELEASES):
            database = mariadb.database(f"references{number}")
            with AccountingHost(ensure(release), database=database, enforce="associations,qos") as host:
                accounts_and_qos(host)


def accounts_and_qos(host: AccountingHost) -> None:
    host.sacctmgr("add", "qos", "wide")
    for account in ("lab", "shut"):
        host.sacctmgr("add", "account", account)
        host.sacctmgr("add", "user", "root", f"account={account}", "qos=normal,wide", "defaultqos=normal")
    host.write_conf(ACCOUNTED)
    host.run("scontrol", "reconfigure")
    host.add_node("w-0", cpus=16)
    pending = {row: host.sbatch("true", *row.words.split(), "--begin=now+2hours") for row in ACCOUNT_ROWS}
    running = {row: host.sbatch(WAITS, *row.words.split(), "--mem=1") for row in ACCOUNT_ROWS}
    host.wait_for(lambda: {host.job_state(job) for job in running.values()} == {"RUNNING"}, "jobs run")
    host.write_conf(ACCOUNTED.replace("lab,shut", "lab").replace("normal,wide", "normal").replace(" QOS=wide", ""))
    host.run("scontrol", "reconfigure")
    (host.shared / "go").touch()

    def is_as_the_table_says(row: Row) -> bool:
        host.run("scontrol", "update", f"JobId={pending[row]}", "StartTime=now", check=False)
        words = host.run("squeue", "-h", "-t", "all", "-j", str(pending[row]), "-o", "%T %r").stdout
        # By account the reason is shown late, or not at all.
        state = "PENDING" if row.pending is Fate.WAITS else "COMPLETED"
        return words.startswith(state) and "BeginTime" not in words and host.job_state(running[row]) == "COMPLETED"

    for row in ACCOUNT_ROWS:
        host.wait_for(lambda row=row: is_as_the_table_says(row), row.change)  # type: ignore[misc]


@pytest.mark.parametrize("release", RELEASES)
def test_what_becomes_of_jobs_when_a_switch_is_renamed(release: str) -> None:
    assert TOPOLOGY_ROW.fates(release) == (frozenset({Fate.SAFE}), frozenset({Fate.SAFE}))
    (port,) = ports.hold(1)
    node = f"NodeName=t-0 NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=256"
    host = SlurmHost(ensure(release), extra_conf=f"TopologyPlugin=topology/tree\n{node}")
    host.write_file("topology.conf", "SwitchName=old Nodes=t-0\n", 0o444)
    with host:
        host.start_slurmd("t-0", ["slurmd", "-D", "-N", "t-0", "-f", "/etc/slurm/slurm.conf"])
        running = host.sbatch(WAITS, TOPOLOGY_ROW.words, "--mem=1")
        pending = host.sbatch("true", TOPOLOGY_ROW.words, "--begin=now+2hours")
        host.wait_for(lambda: host.job_state(running) == "RUNNING", "the job runs")
        host.write_file("topology.conf", "SwitchName=new Nodes=t-0\n", 0o444)
        host.reconfigure()
        (host.shared / "go").touch()
        host.run("scontrol", "update", f"JobId={pending}", "StartTime=now")
        done = {running: "COMPLETED", pending: "COMPLETED"}
        host.wait_for(lambda: {job: host.job_state(job) for job in done} == done, "both have ended well", timeout=240)
