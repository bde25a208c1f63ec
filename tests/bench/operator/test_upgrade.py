"""An upgrade of Slurm 24.11 to 26.05 of a Cluster with accounting, login pods and NodeSets, and who notices it.

Beside it users submit a job every half second, with the older Slurm's `sbatch`, on a node that is not upgraded.
Prints, asserts nothing about times. All images are on the Nodes already. Times include the polling of the observer
(0.2 s); each submit costs one `kubectl exec`.
"""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from hack.images import build as images
from hack.installing.operator import Installation
from hack.localkube.kubectl import KubectlFailed, wait_for
from hack.machine.progress import say
from tests.support.nodesets import uids
from tests.support.slurm_in_kubernetes import NEWEST, OLDER, SlurmInKubernetes, fresh_namespace

pytestmark = pytest.mark.timeout(1800)
LONGEST = 900.0
"""Seconds; a busy machine takes long."""

MOST_USERS = 64
"""Submits at once."""

SLOW = 3.0
"""Seconds of a submit that its user notices."""


@dataclass(frozen=True)
class Submit:
    """One `sbatch`, by the clock of the observer."""

    begun: float
    """Seconds after the change of the images."""

    lasted: float
    """Seconds."""

    failure: str
    """What it said; empty if the job was accepted."""


@dataclass
class Users:
    """Submit a job every half second, whether or not those before have been accepted, until told to stop."""

    slurm: SlurmInKubernetes
    start: float
    stop: threading.Event = field(default_factory=threading.Event)
    submits: list[Submit] = field(default_factory=list)

    def work(self) -> None:
        """Submit, and return when the last one has ended."""
        with ThreadPoolExecutor(MOST_USERS) as users:
            while not self.stop.wait(0.5):
                users.submit(self._submit)

    def _submit(self) -> None:
        begun, failure = time.monotonic(), ""
        try:
            self.slurm.submit("--partition=stays", pod="stays-0", seconds=0)
        except KubectlFailed as error:
            failure = str(error)
        self.submits.append(Submit(begun - self.start, time.monotonic() - begun, failure))


def test_upgrade(installed: Installation) -> None:
    for name in ("mariadb", "slurm-24.11"):
        installed.cluster.load_images(images.ensure([name], say)[name])
    slurm = SlurmInKubernetes(installed.cluster.kubectl, fresh_namespace("bench"), OLDER)
    login = {"name": "front", "image": slurm.image("login")}
    slurm.create(accounting={}, login=[login])
    slurm.nodeset("stays", 1)
    slurm.nodeset("rolled", 2)
    loginset = "loginset", f"{slurm.name}-front"

    def wait_true(kind: str, name: str, condition: str) -> None:
        wait_for(condition, lambda: slurm.condition(kind, name, condition)["status"] == "True", LONGEST)

    wait_true("cluster", slurm.name, "Ready")
    wait_true("cluster", slurm.name, "AccountingReady")
    wait_true(*loginset, "Ready")
    slurm.wait_idle(["stays-0", "rolled-0", "rolled-1"])
    before, start = uids(slurm), time.monotonic()
    users = Users(slurm, start)
    rows: list[tuple[str, float]] = []
    worker = threading.Thread(target=users.work)
    worker.start()

    def reached(what: str) -> None:
        rows.append((what, time.monotonic() - start))
        say(f"{what}: {rows[-1][1]:.1f} s")

    def wants(daemon: str) -> dict[str, str]:
        return {"image": f"localhost/slinky/{daemon}:{NEWEST}"}

    def gets(kind: str, component: str, daemon: str) -> None:
        def has() -> bool:
            template = slurm.get(kind, f"{slurm.name}-{component}")["spec"]["template"]["spec"]
            return wants(daemon)["image"] in [one["image"] for one in template["containers"]]

        wait_for(daemon, has, LONGEST, poll=0.2)
        reached(f"{daemon} gets its image")

    try:
        daemons = {"accounting": "slurmdbd", "controller": "slurmctld", "restapi": "slurmrestd"}
        spec = {**{name: wants(daemon) for name, daemon in daemons.items()}, "login": [{**login, **wants("login")}]}
        patch = json.dumps({"spec": spec})
        slurm.kube("patch", "clusters.slinky.slurm.net", slurm.name, "--type=merge", "--patch", patch)
        slurm.nodeset("rolled", 2, **wants("slurmd"))
        gets("statefulset", "accounting", "slurmdbd")
        gets("statefulset", "controller", "slurmctld")
        gets("deployment", "restapi", "slurmrestd")
        wait_for("login", lambda: slurm.get(*loginset)["spec"]["image"] == wants("login")["image"], LONGEST, poll=0.2)
        reached("slurmrestd answers; login pods get their image")
        wait_for("login pods", lambda: _is_done(slurm.get(*loginset)), LONGEST, poll=0.2)
        reached("login pods are Ready")
        wait_for(
            "nodes",
            lambda: {name for name, uid in uids(slurm).items() if before.get(name) != uid} == {"rolled-0", "rolled-1"},
            LONGEST,
            poll=0.2,
        )
        slurm.wait_idle_nodes("rolled-0", "rolled-1")
        reached("both nodes of the NodeSet are idle with theirs")
    finally:
        users.stop.set()
        worker.join()
    slurm.abandon()
    _tell(rows, users.submits)


def _tell(rows: list[tuple[str, float]], submits: list[Submit]) -> None:
    """Print the table."""
    slow = sorted((one for one in submits if one.failure or one.lasted > SLOW), key=lambda one: one.begun)
    accepted = [one.lasted for one in submits if not one.failure]
    rows.append(("longest submit that was accepted", max(accepted)))
    if slow:
        rows.append(
            (f"first and last submit that failed or took over {SLOW:.0f} s, apart", slow[-1].begun - slow[0].begun)
        )
    print()
    for what, seconds in rows:
        print(f"{what:66}  {seconds:8.1f} s")
    print(f"{len(accepted)} submits accepted, {len(submits) - len(accepted)} failed; those that took long or failed:")
    for one in slow:
        print(f"  begun at {one.begun:5.1f} s, ended after {one.lasted:5.1f} s: {one.failure or 'accepted'}")


def _is_done(loginset: dict[str, object]) -> bool:
    """Whether all pods of a LoginSet are as its spec asks, and accept logins."""
    metadata, status = loginset["metadata"], loginset.get("status") or {}
    assert isinstance(metadata, dict)
    assert isinstance(status, dict)
    seen = status.get("observedGeneration") == metadata["generation"]
    return seen and status.get("updatedReplicas") == status.get("readyReplicas") == status.get("replicas") != 0
