"""User-visible delays and the operator's cost, on the local Kubernetes with real Slurm. Prints, asserts nothing.

Run it with ``make bench``, or alone: ``pytest tests/bench/operator --capture=no``. Times include the polling of the
observer (20 ms on the API server, one ``kubectl exec`` on Slurm's side, which costs about 0.1 s a look).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hack.installing.operator import NAMESPACE, Installation
from hack.localkube.kubectl import wait_for
from tests.support import processes
from tests.support.port_forward import port_forward
from tests.support.slurm_in_kubernetes import SlurmInKubernetes, fresh_namespace
from tests.support.web import fetch

pytestmark = pytest.mark.timeout(900)
IDLE_SECONDS = 30.0


def took(what: str, act: Callable[[], object], ready: Callable[[], bool]) -> tuple[str, str]:
    """Act, wait, and return a row of the table."""
    start = time.monotonic()
    act()
    wait_for(what, ready, timeout=180, poll=0.02)
    return what, f"{time.monotonic() - start:.2f} s"


def resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def requests(installation: Installation) -> float:
    """Requests to the API server so far, by the operator's own count."""
    with port_forward(installation.cluster.kubectl, NAMESPACE, "deployment/slurm-operator", 8080) as port:
        lines = fetch(f"http://127.0.0.1:{port}/metrics").body.decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("slurm_operator_kubernetes_requests_total"))


def test_first_light(installed: Installation) -> None:
    slurm = SlurmInKubernetes(installed.cluster.kubectl, fresh_namespace("bench"), "26.05")

    def pods(count: int) -> bool:
        return len(slurm.slurmd_pods()) == count

    def idle(count: int) -> bool:
        return bool(slurm.get("nodeset", "compute")["status"].get("slurmIdle") == count)

    def ready() -> bool:
        return slurm.get("cluster", slurm.name).get("status", {}).get("isReady") is True

    rows = [took("`spec: {}` -> isReady", slurm.create, ready)]
    rows.append(took("first NodeSet applied -> 2 idle in status", lambda: slurm.nodeset("compute", 2), lambda: idle(2)))
    start = time.monotonic()
    slurm.scale("compute", 4)
    wait_for("pods", lambda: pods(4), 60, poll=0.02)
    rows.append(("2 -> 4: pods created", f"{time.monotonic() - start:.2f} s"))
    wait_for("idle", lambda: idle(4), 60, poll=0.02)
    rows.append(("2 -> 4: 4 idle in status", f"{time.monotonic() - start:.2f} s"))
    drain = ("scontrol", "update", "nodename=compute-3", "state=drain", "reason=bench")
    rows.append(
        took(
            "drain by an administrator -> in status",
            lambda: slurm.control(*drain),
            lambda: slurm.get("nodeset", "compute")["status"].get("slurmDrain") == 1,
        )
    )
    slurm.control("scontrol", "update", "nodename=compute-3", "state=undrain")
    rows.append(
        took(
            "second NodeSet applied -> in the live configuration",
            lambda: slurm.nodeset("burst", 1),
            lambda: "burst" in slurm.get("cluster", slurm.name)["status"]["config"]["nodeSets"],
        )
    )
    slurm.wait_idle_nodes("burst-0")
    (pid,) = processes.of_pod(installed.pods()[installed.leader()], "slurm-operator")
    before, asked = cpu_seconds(pid), requests(installed)
    time.sleep(IDLE_SECONDS)
    used, more = cpu_seconds(pid) - before, requests(installed) - asked
    rows += [
        ("operator, resident", f"{resident_mib(pid):.0f} MiB"),
        ("operator, idle: CPU", f"{100 * used / IDLE_SECONDS:.1f} % of a core"),
        (
            "operator, idle: requests to the API server (Lease renewals apart)",
            f"{60 * more / IDLE_SECONDS:.0f} a minute",
        ),
    ]
    width = max(len(name) for name, _ in rows)
    print()
    for name, value in rows:
        print(f"{name:{width}}  {value:>12}")
