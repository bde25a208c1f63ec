"""Every number of the exporter is that of Slurm's own commands, with real daemons of both releases and accounting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Final

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from hack.images.rootfs import ensure, ensure_mariadb
from hack.machine import ports
from slurm_client import MintedToken, SlurmClient
from slurm_exporter.counting import Budgets
from slurm_exporter.exporter import Exporter, pace
from slurm_exporter.families.catalogue import GROUPS
from slurm_exporter.sources.collector import Cadence
from tests.support import sdiag
from tests.support import slurm_commands as commands
from tests.support.accounting_host import AccountingHost
from tests.support.mariadb_host import MariadbHost
from tests.support.slurm_commands import Labels, Values
from tests.support.slurm_series import OLDER_IN_FULL

pytestmark = [pytest.mark.timeout(600), pytest.mark.long(140)]

CADENCE = Cadence(interval=0.2, slow_interval=0.5)
PAUSE = 0.2
"""Seconds between two looks at what the commands say."""
PATIENCE = 120.0
"""Seconds, where the test itself says what did not happen."""
PREFIX = "slurm_cluster_"
CONF = """\
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=16
GresTypes=gpu
AccountingStorageTRES=gres/gpu,gres/gpu:a100
PriorityType=priority/multifactor
PriorityCalcPeriod=1
Licenses=matlab:3,ansys:5
NodeSet=big Feature=big
PartitionName=big Nodes=big MaxTime=2-12:30:00 PriorityTier=3
PartitionName=closed Nodes=big State=DRAIN
"""
GRES = "".join(f"NodeName=g-0 Name=gpu Type=a100 File=/dev/{name}\n" for name in ("null", "zero", "full", "random"))
"""Files that are no GPUs: slurmd only wants them to exist."""

RUNS_ON = "exec sleep 600"
NO_COMMAND = {
    "info": "no command shows the data parser; the release is compared",
    "slurmctld_latency_seconds": "no command shows how long slurmrestd waited",
    "slurmdbd_latency_seconds": "no command shows how long slurmrestd waited",
    "backfill_active": "sdiag prints a warning while it runs, and no number",
    "rpcs_dropped_total": "sdiag prints none without a limit of calls",
}
"""Families that are not compared."""

AGES: Final[dict[str, Labels]] = {
    "jobs_pending_age_max_seconds": (),
    "partition_jobs_pending_age_max_seconds": ("all",),
}
"""Families that change all the time, and the sample that is compared."""
SIX_DIGITS = frozenset({"share_normalized", "share_usage_effective", "share_factor"})


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariadbHost]:
    with MariadbHost(ensure_mariadb()) as host:
        yield host


@pytest.fixture(params=OLDER_IN_FULL)
def slurm(request: pytest.FixtureRequest, mariadb: MariadbHost) -> Iterator[AccountingHost]:
    """Nodes that are idle, drained, down, reserved or have GPUs; accounts, licenses, reservations; no jobs."""
    database = mariadb.database(f"numbers_{request.param.replace('.', '_')}")
    host = AccountingHost(ensure(request.param), database=database, extra_conf=CONF)
    host.write_file("gres.conf", GRES, 0o444)
    with host:
        add_accounts(host)
        host.add_node("n-0", cpus=4)
        host.add_node("n-1", cpus=2, features=("all", "big"))
        for name in ("n-2", "n-3", "n-5", "n-6"):
            host.add_node(name)
        host.add_node("n-4", cpus=2)
        (port,) = ports.hold(1)
        conf = f"Port={port} CPUs=4 RealMemory=512 Features=all Gres=gpu:a100:4"
        host.start_slurmd("g-0", ["slurmd", "-D", "-Z", "-N", "g-0", "-f", "/etc/slurm/slurm.conf", "--conf", conf])
        host.run("scontrol", "update", "NodeName=n-2", "State=DRAIN", "Reason=fans")
        host.run("scontrol", "update", "NodeName=n-3", "State=DOWN", "Reason=power")
        for name, start, *what in (
            ("maint", "now", "Nodes=n-4", "Flags=MAINT"),
            ("course", "now+1hour", "Nodes=n-0"),
            ("tools", "now", "Licenses=ansys:2", "Flags=ANY_NODES"),
        ):
            words = (f"ReservationName={name}", f"StartTime={start}", "Duration=60", "Users=root", *what)
            host.run("scontrol", "create", "reservation", *words)
        yield host


def add_accounts(slurm: AccountingHost) -> None:
    """Two users in an account of two, and a QOS that they may use."""
    slurm.sacctmgr("add", "qos", "fast")
    slurm.sacctmgr("add", "account", "lab", "fairshare=3")
    slurm.sacctmgr("add", "user", "root,daemon", "account=lab", "qos=normal,fast")


def submit_all_kinds(slurm: AccountingHost) -> None:
    """Jobs that run, wait for every reason there is a word for, and have ended in every way."""

    def submit(*options: str, script: str = RUNS_ON) -> int:
        return slurm.sbatch(script, *options)

    def wait(job: int, state: str) -> None:
        slurm.wait_for(lambda: slurm.job_state(job) == state, f"job {job} is {state}", PATIENCE)

    late, stuck = submit("-t1", "-w", "n-6"), submit("-w", "n-5")
    reserved = submit("--reservation=maint")
    # The job that waits for another is the first to be submitted, and the only one that is not eligible.
    submit("-d", f"afterok:{reserved}")
    for job in (late, stuck, reserved):
        wait(job, "RUNNING")
    # A slurmd that does not answer keeps its job completing.
    slurm.freeze("n-5")
    slurm.run("scancel", str(stuck))
    wait(stuck, "COMPLETING")
    slurm.end_now(late)
    wait(late, "TIMEOUT")

    failed = submit("-w", "n-6", script="exit 3")
    wait(failed, "FAILED")
    done = submit("-w", "n-6", script="true")
    wait(done, "COMPLETED")
    running = [
        submit("-p", "big", "-L", "matlab:2", "-A", "lab", "-t60"),
        submit("--gres=gpu:a100:3", "-w", "g-0", "--mem=64", "-t60"),
        submit("-N2", "-n3", "--exclude=n-6,g-0", "-t50"),
    ]
    for job in running:
        wait(job, "RUNNING")
    array = submit("--array=0-9:3,20%1", "-w", "n-6")
    limited = ("squeue", "-h", "-j", str(array), "-t", "PD", "-o", "%r")
    slurm.wait_for(lambda: "JobArrayTaskLimit" in slurm.run(*limited).stdout, "a task of the array runs", PATIENCE)
    submit("-L", "matlab:2", "-t60")
    submit("--gres=gpu:2", "-w", "g-0", "-t60")
    submit("-b", "now+2hours")
    submit("-H")
    submit("--qos=fast", "-A", "lab", "-H", "--uid=daemon")
    submit("-p", "all,big", "-n2", "-w", "n-1")
    submit("-N5", "-n5")
    # sacct leaves out a job that was never eligible.
    unwanted = submit("-w", "n-6")
    eligible = ("squeue", "-h", "-j", str(unwanted), "-O", "eligibletime")
    slurm.wait_for(lambda: "N/A" not in slurm.run(*eligible).stdout, "a job is eligible", PATIENCE)
    slurm.run("scancel", str(unwanted))
    as_daemon = ("setpriv", "--reuid=1", "--regid=1", "--clear-groups")
    slurm.run(*as_daemon, "sbatch", "-H", "-o", "/dev/null", "--chdir=/tmp", stdin="#!/bin/sh\ntrue\n")


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something holds."""
    while True:
        if await condition():
            return
        await asyncio.sleep(PAUSE)


class Page:
    """The exporter's page, and what it counted before the comparison."""

    def __init__(self, http: httpx.AsyncClient, exporter: Exporter, slurm: AccountingHost) -> None:
        self._http = http
        self._url = f"http://127.0.0.1:{exporter.port}/metrics"
        self._slurm = slurm

    async def read(self) -> Values:
        """Values by name without its prefix and label values in the order of the label names."""
        result: Values = {}
        for family in text_string_to_metric_families((await self._http.get(self._url)).text):
            for sample in family.samples:
                labels = tuple(value for _, value in sorted(sample.labels.items()))
                result.setdefault(sample.name.removeprefix(PREFIX), {})[labels] = sample.value
        return result

    def run(self, *words: str) -> str:
        """Run a command of Slurm."""
        return self._slurm.run(*words).stdout

    async def counted(self) -> tuple[Values, Values]:
        """Counters of `sdiag` and a page that is younger, between which nothing has changed.

        Counters that the commands and the exporter themselves move are left out.
        """
        _, first, _ = await asyncio.to_thread(sdiag.scheduler, self.run)
        polls = await self.polls()
        await until(lambda: self._polled_since(polls))
        await asyncio.sleep(CADENCE.interval)
        page = await self.read()
        _, second, _ = await asyncio.to_thread(sdiag.scheduler, self.run)
        kept = {
            family: {labels: value for labels, value in found.items() if second[family].get(labels) == value}
            for family, found in first.items()
        }
        return kept, page

    async def _polled_since(self, polls: float) -> bool:
        """Whether an answer that was asked for since then is counted."""
        return await self.polls() >= polls + 3

    async def polls(self) -> float:
        """How often `diag` was asked for."""
        found = (await self.read()).get("slurm_exporter_source_polls_total", {})
        return found.get(("diag",), 0.0)


@asynccontextmanager
async def exported(slurm: AccountingHost) -> AsyncIterator[Page]:
    """An exporter of everything."""
    budgets = Budgets(users=50, accounts=50, call_users=50)
    async with (
        SlurmClient(slurm.url, MintedToken(slurm.jwt_key, user="slurm"), pace=pace(CADENCE)) as client,
        Exporter(client, CADENCE, budgets, host="127.0.0.1", port=0) as exporter,
        httpx.AsyncClient(trust_env=False) as http,
    ):
        yield Page(http, exporter, slurm)


async def begin(page: Page) -> Values:
    """What the page has counted when `sdiag` is at zero, before there was a job."""
    while True:
        await asyncio.to_thread(page.run, "sdiag", "--reset")
        counted, shown = await page.counted()
        still = [
            counted[f"{what}_total"].get((), 1) for what in ("schedule_cycles", "backfill_cycles", "jobs_submitted")
        ]
        if "jobs_submitted_total" in shown and not any(still):
            return {
                family: {labels: value - counted.get(family, {}).get(labels, 0) for labels, value in found.items()}
                for family, found in shown.items()
                if family.endswith("_total")
            }


def near(family: str, value: float) -> float:
    """A value with as many digits as the command has."""
    return round(value, 6 if family in SIX_DIGITS else 9)


def shown_of(page: Values, family: str) -> dict[Labels, float]:
    """Values of a family that are not zero."""
    return {labels: near(family, value) for labels, value in page.get(family, {}).items() if near(family, value)}


async def compare(page: Page, before: Values) -> None:
    """Compare each family until it has agreed once."""
    wrong: dict[str, str] = {}
    left = {
        each.name.removeprefix(PREFIX) for name, group in GROUPS.items() if name != "The exporter" for each in group
    }
    left -= NO_COMMAND.keys() | AGES.keys()
    end = time.monotonic() + PATIENCE
    while left and time.monotonic() < end:
        wanted: Values = {}
        for read in (commands.nodes, commands.jobs, commands.partitions, commands.holdings, commands.shares):
            wanted |= await asyncio.to_thread(read, page.run)
        wanted |= await asyncio.to_thread(commands.services, page.run)
        gauges, _, means = await asyncio.to_thread(sdiag.scheduler, page.run)
        counted, shown = await page.counted()
        wanted |= gauges
        wrong = {}
        for family in left:
            told: object
            found: object
            if family in means:
                divisor, told, parts = means[family]
                cycles = grown(shown, before, divisor)
                found = int(grown(shown, before, family) * parts / cycles + 1e-3) if cycles else 0
            elif family.endswith("_total"):
                told = {labels: near(family, value) for labels, value in counted.get(family, {}).items()}
                found = {labels: near(family, grown(shown, before, family, labels)) for labels in counted[family]}
            else:
                told, found = wanted.get(family, {}), shown_of(shown, family)
            if told != found:
                wrong[family] = f"{family}: commands {told}, exporter {found}"
        left = set(wrong)
    if left:
        pytest.fail("\n".join(wrong.values()))


def grown(page: Values, before: Values, family: str, labels: Labels = ()) -> float:
    """What a counter has grown by since `sdiag` was at zero."""
    return page.get(family, {}).get(labels, 0) - before.get(family, {}).get(labels, 0)


async def test_every_number_is_that_of_a_command(slurm: AccountingHost) -> None:
    async with exported(slurm) as page:
        before = await begin(page)
        await asyncio.to_thread(submit_all_kinds, slurm)
        await compare(page, before)
        await agrees_on_age(page)
        await agrees_with_slurmdbd(page)

        await until(lambda: has_usage(page))
        # Once more, now that there is usage: slurmctld computes shares once a minute.
        await compare(page, before)

        shown = await page.read()
        # Every kind of job was there: an empty list agrees with anything.
        assert set(shown_of(shown, "jobs")) == {
            (state,) for state in ("cancelled", "completed", "failed", "pending", "running", "timeout")
        }
        reasons = ("BeginTime", "Dependency", "JobArrayTaskLimit", "JobHeldUser", "Licenses", "Resources")
        assert {(reason,) for reason in reasons} <= set(shown_of(shown, "jobs_pending"))
        assert shown["gres"]["gpu", "allocated", "a100"] == 3
        assert shown["node_gres_allocated"]["gpu", "g-0", "a100"] == 3
        assert shown["licenses_reserved"]["ansys",] == 2
        assert shown["user_rpcs_total"]["daemon",] > 0
        assert {state for (state,) in shown_of(shown, "nodes")} == {"allocated", "down", "idle", "mixed"}
        release = slurm.run("scontrol", "--version").stdout.split()[-1]
        assert {label for labels in shown["info"] for label in labels} >= {release}


async def has_usage(page: Page) -> bool:
    """Whether there is usage of an account."""
    return shown_of(await page.read(), "share_usage_seconds").get(("lab", "root"), 0) > 0


async def agrees_on_age(page: Page) -> None:
    """Wait until the age is that of the first job that became eligible; one that waits for another is older."""
    differences: list[float] = []
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        since = await asyncio.to_thread(commands.oldest, page.run)
        shown = await page.read()
        differences = [time.time() - since - shown[family][label] for family, label in AGES.items()]
        # Times are whole seconds; the page and the clock are read one after the other.
        if all(abs(seconds) < 2 for seconds in differences):
            return
        await asyncio.sleep(PAUSE)
    pytest.fail(f"the oldest job waits for other seconds than squeue says, by {differences}")


async def agrees_with_slurmdbd(page: Page) -> None:
    """Wait until slurmdbd has as many jobs in each state that is not pending."""
    told: dict[str, int] = {}
    shown: dict[str, float] = {}
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        told = await asyncio.to_thread(commands.started, page.run)
        counts = shown_of(await page.read(), "jobs")
        shown = {state: count for (state,), count in counts.items() if state != "pending"}
        if told == shown:
            return
        await asyncio.sleep(PAUSE)
    pytest.fail(f"sacct counts {told}, the exporter {shown}")
