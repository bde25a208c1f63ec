"""How long a configuration change takes, and the share of its preflight. Prints, asserts nothing.

The reference is a manual reconfigure with the same slurmctld: the time of the change without any check, with the files
already mounted. The Go operator polls every 30 s and then waits for the kubelet (72 s measured).
"""

from __future__ import annotations

import statistics
import time
from datetime import datetime

import pytest

from hack.installing.operator import Installation
from hack.localkube.kubectl import wait_for
from tests.support.configuring import PREFLIGHTS, config_applied, edit
from tests.support.pods import identities
from tests.support.slurm_in_kubernetes import SlurmInKubernetes, fresh_namespace

pytestmark = pytest.mark.timeout(900)
CHANGES = 20


def test_configuration(installed: Installation) -> None:
    slurm = SlurmInKubernetes(installed.cluster.kubectl, fresh_namespace("bench"), "26.05")
    slurm.create()
    slurm.nodeset("compute", 1)
    slurm.wait_ready()
    slurm.wait_idle_nodes("compute-0")
    before = identities(slurm)
    changes: list[float] = []
    preflights: list[float] = []
    by_hand: list[float] = []
    for number in range(CHANGES):
        begun = time.monotonic()
        generation = edit(slurm, extraConf=f"KillWait={40 + number}")
        shown: dict[str, float] = {}

        def live(generation: int = generation, shown: dict[str, float] = shown) -> bool:
            for pod in slurm.get("pods", PREFLIGHTS)["items"]:
                for one in pod["status"].get("containerStatuses", ()):
                    ended = one["state"].get("terminated")
                    if ended:
                        start = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
                        shown["s"] = (datetime.fromisoformat(ended["finishedAt"]) - start).total_seconds()
            found = config_applied(slurm)
            return bool(found["observedGeneration"] >= generation and found["status"] == "True")

        wait_for("the change", live, 60, poll=0.02)
        changes.append(time.monotonic() - begun)
        preflights += shown.values()
        begun = time.monotonic()
        slurm.control("scontrol", "reconfigure")
        by_hand.append(time.monotonic() - begun)
    ranked = sorted(changes)
    reference = statistics.median(by_hand)
    p50, p95 = statistics.median(ranked), ranked[round(0.95 * (CHANGES - 1))]
    rows = [
        ("`scontrol reconfigure` by hand (the reference)", f"{reference:.2f} s"),
        ("spec change -> applied, p50", f"{p50:.2f} s, {p50 / reference:.0f} times that"),
        ("spec change -> applied, p95", f"{p95:.2f} s"),
        ("preflight, pod made -> daemons ended (whole seconds)", f"{statistics.mean(preflights or [0]):.1f} s"),
        ("daemons restarted", str(sum(identities(slurm)[name] != before[name] for name in before))),
    ]
    width = max(len(name) for name, _ in rows)
    print()
    for name, value in rows:
        print(f"{name:{width}}  {value}")
    slurm.delete()
