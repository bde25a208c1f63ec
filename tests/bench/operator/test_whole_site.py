"""From the page of a whole site to a user's first job: the sample with accounting, users, login pods and nodes.

Prints, asserts nothing. All images are on the Nodes already. Times include the polling of the observer (0.2 s), and
one `ssh` a look.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hack.images import build as images
from hack.installing.operator import Installation
from hack.localkube.kubectl import wait_for
from hack.localkube.paths import PROJECT
from hack.machine.progress import say
from tests.support.logins import visitor
from tests.support.slurm_in_kubernetes import SlurmInKubernetes, fresh_namespace

pytestmark = pytest.mark.timeout(1800)
LONGEST = 900.0
"""Seconds; a busy machine takes long."""


def test_whole_site(installed: Installation, tmp_path: Path) -> None:
    installed.cluster.load_images(images.ensure(["mariadb"], say)["mariadb"])
    slurm = SlurmInKubernetes(installed.cluster.kubectl, fresh_namespace("bench"), "26.05", "hpc")
    alice = visitor(slurm, tmp_path, "alice")
    slurm.kubectl("create", "namespace", slurm.namespace)
    key = json.dumps({"stringData": {"alice": alice.public_key}})
    start, rows = time.monotonic(), []

    def is_true(kind: str, name: str, condition: str) -> bool:
        return bool(slurm.condition(kind, name, condition)["status"] == "True")

    def reached(what: str) -> None:
        rows.append((what, time.monotonic() - start))

    slurm.kube("apply", f"--filename={PROJECT / 'config/samples/whole-site.yaml'}")
    slurm.kube("patch", "secret", "login-keys", f"--patch={key}")
    wait_for("Slurm", lambda: is_true("cluster", slurm.name, "Ready"), LONGEST, poll=0.2)
    reached("the Cluster is Ready")
    wait_for("accounting", lambda: is_true("cluster", slurm.name, "AccountingReady"), LONGEST, poll=0.2)
    reached("slurmdbd records its jobs")
    wait_for("two nodes", lambda: slurm.get("nodeset", "cpu")["status"].get("slurmIdle") == 2, LONGEST, poll=0.2)
    reached("two nodes are idle")
    wait_for("login pods", lambda: is_true("loginset", alice.loginset, "Ready"), LONGEST, poll=0.2)
    reached("login pods are Ready")
    job = "srun -N2 id -un"
    wait_for("a job", lambda: alice.attempt(job, checked="accept-new").returncode == 0, LONGEST, poll=0.2)
    reached("a user has logged in by ssh, and `srun -N2` has run")
    width = max(len(name) for name, _ in rows)
    print()
    for name, seconds in rows:
        print(f"{name:{width}}  {seconds:8.1f} s")
