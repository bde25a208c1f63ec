"""A key set is rotated in several orders of steps and faults: the operator's own rules, real daemons, jobs and logins.

It begins as a set that the operator has generated: the first step is a Secret of the user's with that key and another.
What the operator would do is decided by its rules (`tests.unit.cluster.parts.keys.key_model`), in a made-up time:
the two minutes for kubelets pass at once. What it does happens to real daemons, and its questions are answered by them:
slurmctld, two slurmds, slurmdbd, and a sackd whose commands submit jobs. Two slurmrestds are called with tokens
throughout, and an exporter is scraped. The table in docs/development/reliability-journal.md has what this test prints.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from typing_extensions import override

from hack.images.rootfs import ensure, ensure_mariadb
from hack.machine import ports
from slinky_operator.cluster.parts.keys.proof.answers import KeyFinding, finding
from slinky_operator.cluster.parts.keys.sets import key_sets
from slinky_operator.slurm.connection import key_proof
from slinky_operator.slurm.connection.key_proof import Daemon, Holder, KeySet
from tests.integration.slurm_conf.test_key_sets import ends_well, running
from tests.support.accounting_host import AccountingHost
from tests.support.daemons import DaemonError
from tests.support.exporter_process import scraped
from tests.support.key_proof_program import beside_sackd
from tests.support.mariadb_host import MariadbHost
from tests.support.slurm_host import SLURM_UID
from tests.unit.cluster.parts.keys.key_model import OURS, SLURMDS, Model, key_set, pod
from tests.unit.cluster.parts.keys.test_key_steps import until_done

pytestmark = [pytest.mark.timeout(400), pytest.mark.long(170), pytest.mark.full]

SLURMDBD = "slurmdbd"


class Rotation(Model):
    """A Cluster whose daemons are real, with a set that the operator has made: it becomes the user's with step one."""

    def __init__(self, host: AccountingHost, proof_port: int) -> None:
        self.host, self.on_disk = host, key_set("A")
        self.of_slurmdbd = self.on_disk
        self._ports = {
            Daemon.SLURMCTLD: host.slurmctld_port,
            Daemon.SLURMDBD: host.slurmdbd_port,
            Daemon.SACKD: proof_port,
        }
        super().__init__(OURS)
        world = self.world
        world.wall = datetime.now(UTC)
        world.raw = {**world.raw, "spec": {**world.raw["spec"], "accounting": {}}}
        slurmdbd = pod("slurm-accounting-0", "127.0.0.1", self.mounts)
        slurmdbd["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        world.daemon_pods["accounting"] = (slurmdbd,)
        login = pod("login-0", "127.0.0.1", self.mounts)
        login["spec"]["initContainers"] = [{"name": "key-proof"}]
        world.login_pods = [login]

    @override
    def _check(self) -> None:
        """All daemons are on one Node here, whose kubelet mounts when the last one would."""
        (text, *others) = {*self.mounted.values()}
        if not others:
            self.mount(text)

    def mount(self, text: bytes) -> None:
        """Let daemons find a set; those that read keys at their start only are started again for it."""
        if text == self.on_disk:
            return
        put(self.host, text)
        self.on_disk = text
        # As its script does; it has no handler of SIGTERM, and is the first process of its namespace here.
        self.host.stop("sackd", kill=True)
        self.host.start_sackd()
        if key_sets.for_restart(text) != key_sets.for_restart(self.of_slurmdbd):
            self.of_slurmdbd = text
            self.host.stop(SLURMDBD)
            self.host.start_slurmdbd()

    @override
    def _reconfigure(self) -> None:
        self.reloads += 1
        self.host.reconfigure()

    @override
    def _proves(self, holder: Holder, asked: KeySet, at: float) -> KeyFinding:
        port = self._ports.get(holder.daemon) or slurmd_port(self.host, holder.name.removeprefix("slurmd of "))
        keys = (*asked.live, *asked.expired)
        questions = (key_proof.ask(holder.daemon, "127.0.0.1", port, one, time.time()) for one in keys)

        async def answers() -> list[key_proof.Answer]:
            return await asyncio.gather(*questions)

        found = asyncio.run(answers())
        return finding(asked, {key.kid: one for key, one in zip(keys, found, strict=True)}, at)

    def takes(self, *names: str) -> None:
        """Write a step, and wait until it is accepted; whether the one before is proven is the operator's affair."""
        self.write(*names)
        for _ in range(200):
            if self.accepted == key_set(*names):
                return
            self.passes(3)
        raise AssertionError(f"not accepted: {self.keys.trouble or self.keys.held}")


def put(host: AccountingHost, text: bytes) -> None:
    path, new = host.configuration / "slurm.jwks", host.configuration / "new"
    new.write_bytes(text)
    os.chown(new, SLURM_UID, SLURM_UID)
    new.chmod(0o400)
    new.rename(path)


def slurmd_port(host: AccountingHost, name: str) -> int:
    return int(host.run("scontrol", "show", "node", name).stdout.split(" Port=")[1].split()[0])


@dataclass
class Load:
    """Jobs are submitted from the login, and both slurmrestds called, until the end."""

    host: AccountingHost
    rest_ports: tuple[int, ...]
    jobs: list[int] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    calls: int = 0
    failed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ending, self.submits, self.idle = threading.Event(), threading.Event(), threading.Event()
        self.submits.set()
        self._threads = [threading.Thread(target=one) for one in (self._submit, self._call)]
        for one in self._threads:
            one.start()

    def end(self) -> None:
        self._ending.set()
        for one in self._threads:
            one.join()

    def rest(self) -> None:
        """Submit nothing, and wait until all has ended and is saved: a kill forgets the rest.

        A job that slurmctld has started and not saved would be started again, which its slurmd refuses.
        """
        self.idle.clear()
        self.submits.clear()
        assert self.idle.wait(90), "a submission ends"
        host = self.host
        host.wait_for(lambda: not self.unfinished() & {*self.jobs}, "what was submitted has ended")
        marker = int(host.run("sbatch", "-H", "--parsable", "--wrap", "true").stdout)
        host.wait_saved(marker)
        host.run("scancel", str(marker))

    def unfinished(self) -> set[int]:
        """Jobs that wait, run or end."""
        return {int(number) for number in self.host.run("squeue", "-h", "-o", "%A").stdout.split()}

    def go_on(self) -> None:
        """Submit again."""
        self.submits.set()

    def _submit(self) -> None:
        while not self._ending.wait(0.2):
            if not self.submits.is_set():
                self.idle.set()
                continue
            self.idle.clear()
            words = ("sbatch", "--parsable", "-o", "/dev/null", "--mem=10", "--wrap", "sleep 2")
            result = self.host.login(*words)
            if result.returncode:
                self.refused.append(result.stderr.strip())
            else:
                self.jobs.append(int(result.stdout.split(";")[0]))

    def _call(self) -> None:
        for port in itertools.cycle(self.rest_ports):
            if self._ending.wait(0.1):
                return
            url = f"http://127.0.0.1:{port}/slurm/v0.0.42/nodes/"
            request = urllib.request.Request(url, headers={"X-SLURM-USER-TOKEN": self.host.token()})
            self.calls += 1
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - a loopback address
                    answer.read()
            except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
                self.failed.append(str(error))


@pytest.fixture(params=["24.11", "26.05"])
def slurm(request: pytest.FixtureRequest) -> Iterator[AccountingHost]:
    with MariadbHost(ensure_mariadb()) as mariadb:
        host = AccountingHost(ensure(request.param), database=mariadb.database("orders"))
        try:
            (host.configuration / "slurm.key").unlink()
            put(host, key_set("A"))
            host.start()
            for name in SLURMDS:
                host.add_node(name, cpus=8, memory=1024)
            host.start_sackd()
            yield host
        finally:
            host.close()


# A rotation from the key `a` to `b`, in several orders


def in_order(model: Rotation, load: Load, a: str, b: str) -> None:
    """Each step when the one before is done."""
    for step in steps(a, b):
        model.takes(*step)
        until_done(model)


def at_once(model: Rotation, load: Load, a: str, b: str) -> None:
    """Each step as soon as the one before is accepted, before any daemon has read it."""
    for step in steps(a, b):
        model.takes(*step)
    until_done(model)


def refused_between(model: Rotation, load: Load, a: str, b: str) -> None:
    """Before each step a set that separates daemons; a configuration goes live, and a login pod starts, beside it."""
    for step in steps(a, b):
        model.write(a, "Z")
        model.wants_reload = True
        model.wait()
        assert not model.wants_reload
        assert model.on_disk == model.accepted
        model.host.stop("sackd", kill=True)
        model.host.start_sackd()
        model.takes(*step)
        until_done(model)


def operator_killed(model: Rotation, load: Load, a: str, b: str) -> None:
    """The operator ends right after each kind of write or question, or before it has happened."""
    lost = itertools.cycle(["KeepKeys", "stage", "KeySetQuestion", "TouchPod", "Reload"])
    for step in steps(a, b):
        for one in itertools.islice(lost, 2):
            model.loses = one
            model.write(*step)
            model.passes(3, 3)
        model.kill()
        model.takes(*step)
        until_done(model)


def slurmctld_killed(model: Rotation, load: Load, a: str, b: str) -> None:
    """slurmctld is killed when a step is accepted and not read yet, and starts with what is there."""
    for step in steps(a, b):
        model.takes(*step)
        load.rest()
        model.host.stop("slurmctld", kill=True)
        model.mount(model.offered)
        model.host.start_slurmctld()
        load.go_on()
        until_done(model)


ORDERS: tuple[Callable[[Rotation, Load, str, str], None], ...] = (
    in_order,
    at_once,
    refused_between,
    operator_killed,
    slurmctld_killed,
)


def steps(a: str, b: str) -> tuple[tuple[str, ...], ...]:
    """Added, switched to, the earlier one retired, dropped; the default in upper case."""
    return (a.upper(), b), (a, b.upper()), (f"{a}-", b.upper()), (b.upper(),)


def test_no_order_of_steps_and_faults_loses_a_job(slurm: AccountingHost) -> None:
    (second,) = ports.hold(1)
    slurm.start_slurmrestd("slurmrestd-2", second)
    with beside_sackd(slurm) as proof_port, scraped(slurm.url, slurm.configuration / "jwt.key") as scrapes:
        model, load = Rotation(slurm, proof_port), Load(slurm, (slurm.rest_port, second))
        lines, held = [], running(slurm)
        try:
            slurm.wait_for(lambda: len(load.jobs) > 2, "jobs are submitted")
            slurm.wait_for(lambda: scrapes.answers[-1:] == [True], "the exporter knows everything")
            for order, (a, b) in zip(ORDERS, itertools.pairwise("abcdef"), strict=True):
                began, before = time.monotonic(), (len(load.jobs), len(load.refused), load.calls, len(load.failed))
                order(model, load, a, b)
                # What is dropped changes nothing, and is mounted later.
                model.wait()
                seconds = time.monotonic() - began
                assert model.accepted == model.on_disk == key_set(b.upper())
                # A job lives through a whole order, and goes on to another step under the next key.
                ends_well(slurm, held)
                held = running(slurm)
                after = (len(load.jobs), len(load.refused), load.calls, len(load.failed))
                jobs, refused, calls, failed = (new - old for new, old in zip(after, before, strict=True))
                lines.append(
                    f"{order.__name__}: {seconds:.1f} s, {jobs} jobs, {refused} submissions refused, "
                    f"{failed} of {calls} calls failed"
                )
            ends_well(slurm, held)
        finally:
            load.end()
        all_ended_well(slurm, load.jobs)
        slurm.wait_for(lambda: scrapes.answers[-1:] == [True], "the exporter knows everything")
    blind = f"exporter down in {scrapes.answers.count(False)} of {len(scrapes.answers)} scrapes; {scrapes.missed}"
    print("\n".join(lines), {*load.refused}, {*load.failed}, f"{slurm.crashes} crashes", blind)  # noqa: T201 - the figures of a table


def all_ended_well(slurm: AccountingHost, jobs: Iterable[int]) -> None:
    """Wait until all jobs have, or show what slurmdbd and slurmctld say of the others."""
    try:
        slurm.wait_for(lambda: {*jobs} <= completed(slurm), "all jobs have ended well")
    except DaemonError as error:
        others = ",".join(str(job) for job in sorted({*jobs} - completed(slurm)))
        looks = (
            ("sacct", "-D", "-P", "-j", others, "-o", "JobID,State,ExitCode,Submit,Start,End,NodeList"),
            ("squeue", "--all", "--states=all", f"--jobs={others}", "--format=%i %T %r %S %e %N"),
            ("scontrol", "--oneliner", "show", "nodes"),
        )
        shown = "\n".join(slurm.run(*look, check=False).stdout for look in looks)
        raise AssertionError(f"jobs {others} have not ended well:\n{shown}") from error


def completed(slurm: AccountingHost) -> set[int]:
    """By slurmdbd, which has missed no end of a job either."""
    shown = slurm.run("sacct", "-n", "-P", "-X", "-a", "-s", "CD", "-S", "now-1hours", "-E", "now", "-o", "JobID")
    return {int(line) for line in shown.stdout.split()}
