"""What 10,000 pods of one namespace cost that wait for Slurm, and what another namespace waits for beside them.

Prints, asserts nothing. An operator begins, as after an upgrade, and finds the pods with their SlurmJobs, whose jobs
wait in Slurm: every group and every SlurmJob has its pass, and the list of jobs is read. Meanwhile pods of another
namespace come one by one; the same before, without the many. The operator's own loops work; the API server is in
memory, and Slurm is a fake in a thread of the process. Run it alone: ``pytest
tests/bench/bridge/test_waiting_pods.py --capture=no --override-ini=testpaths=tests/bench``.
"""

from __future__ import annotations

import asyncio
import copy
import os
import statistics
import time
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pytest

from slinky_api import labels
from slinky_operator.kube.cache.budget import LIMIT, MIB, footprint
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import BRIDGE_PODS, NAMESPACES, SLURMJOBS
from slinky_operator.runtime.garbage_collection import freeze_caches, relax_collector
from slinky_operator.slurmjob.model.slurm_records.marks import Mark
from slurm_client.testing import FakeSlurmrestd
from tests.bench.bridge.conftest import KEY
from tests.support.bridged.machines import Work
from tests.support.bridged.site import TEAM, USER, BridgedSite
from tests.support.slurm_jobs import until
from tests.support.turns import Turns

MANY: Final = int(os.environ.get("BENCH_PODS", "10000"))
FEW: Final = 10
OTHER: Final = "other"
FOR_EVER: Final = Work(1e6)


def crowd(site: BridgedSite, slurm: FakeSlurmrestd) -> None:
    """Make many of one pod that waits, its SlurmJob and its job."""
    pod = site.kube.objects["pods", TEAM, "seed"]
    uid = pod["metadata"]["uid"]
    (job,) = [one for (kind, where, _), one in site.kube.objects.items() if (kind, where) == ("slurmjobs", TEAM)]
    number = job["status"]["jobId"]
    record = slurm.world.jobs[number]
    for count in range(MANY):
        own, other_id, at = f"{uid}-{count}", f"{job['metadata']['uid']}-{count}", 100_000 + count
        about = {**pod["metadata"], "name": f"pod-{count}", "uid": own}
        site.kube.put(BRIDGE_PODS, {**copy.deepcopy(pod), "metadata": copy.deepcopy(about)})
        owner = {**job["metadata"]["ownerReferences"][0], "name": f"pod-{count}", "uid": own}
        given = {
            **copy.deepcopy(job["metadata"]),
            "name": f"bridge-{own}",
            "uid": other_id,
            "ownerReferences": [owner],
            "labels": {**job["metadata"]["labels"], labels.LABEL_BRIDGE_GROUP: own},
            "annotations": {
                key: value.replace(uid, own) for key, value in (job["metadata"].get("annotations") or {}).items()
            },
        }
        status = {**copy.deepcopy(job["status"]), "jobId": at}
        site.kube.put(SLURMJOBS, {**copy.deepcopy(job), "metadata": given, "status": status})
        slurm.world.jobs[at] = replace(record, id=at, extra=Mark(other_id, 0).text, hold=True, priority=0)
    slurm.world.set_job_state(number, "PENDING", hold=True, priority=0)


class Bench:
    """One site, and pods of another namespace that come to it."""

    def __init__(self, site: BridgedSite) -> None:
        self._site = site
        self._began: dict[str, float] = {}
        self.bound: dict[str, float] = {}
        site.kube.pod_changed.append(self._changed)

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if new is None or new["metadata"]["namespace"] != OTHER:
            return
        name = new["metadata"]["name"]
        _ = self._began.setdefault(name, time.monotonic())
        if new["spec"].get("nodeName") and name not in self.bound:
            self.bound[name] = time.monotonic() - self._began[name]

    async def come(self, prefix: str) -> list[float]:
        """Seconds from the creation of each of a few pods to its Node."""
        for number in range(FEW):
            name = f"{prefix}-{number}"
            self._site.pod(name, "1", FOR_EVER, namespace=OTHER)
            await until(partial(self.bound.__contains__, name))
        return [self.bound[f"{prefix}-{number}"] for number in range(FEW)]


async def first_list(site: BridgedSite) -> float:
    """Seconds until an operator that has just begun knows all jobs."""
    began = time.monotonic()

    def is_there() -> bool:
        queue = site.queues.get("cluster-1")
        return queue is not None and queue.is_complete

    await until(is_there)
    return time.monotonic() - began


def shown(name: str, times: list[float]) -> None:
    print(f"{name}: median {statistics.median(times):.2f} s, longest {max(times):.2f} s", flush=True)


@pytest.mark.timeout(1800)
async def test_waiting_pods(slurm: FakeSlurmrestd) -> None:
    relax_collector()
    site = BridgedSite(slurm.url, KEY, poll_interval=1.0)
    site.kube.put(NAMESPACES, {"metadata": {"name": OTHER, "labels": {}}})
    tenants = [{"namespaces": [TEAM, OTHER], "user": USER, "partitions": ["pods"]}]
    site.cluster(jobs={"tenants": tenants, "bridge": {"nodeLabels": {"bridge": "yes"}}})
    bench = Bench(site)

    def state() -> Any:
        found = [one for (kind, where, _), one in site.kube.objects.items() if kind == "slurmjobs" and where == TEAM]
        return found and (found[0].get("status") or {}).get("state")

    async with site.running():
        site.pod("seed", "1", FOR_EVER)
        await until(lambda: state() == "Pending")
        await asyncio.sleep(5)
        (seed,) = slurm.world.jobs
        slurm.world.set_job_state(seed, "PENDING", hold=True, priority=0)
        site.machines.add("k0", 64, bridge="yes")
        await until(lambda: site.nodes() == ["k0"])
        shown("another namespace, alone", await bench.come("alone"))
    crowd(site, slurm)
    freeze_caches()
    sizes = {
        name: [footprint(one) for (kind, where, _), one in site.kube.objects.items() if kind == name and where == TEAM]
        for name in ("pods", "slurmjobs")
    }
    for name, of in sizes.items():
        print(f"{name}: {len(of)}, {statistics.mean(of) / 1024:.1f} KiB each, {sum(of) / MIB:.0f} MiB")
    whole = sum(statistics.mean(of) for of in sizes.values())
    print(f"within a budget of {LIMIT / MIB:.0f} MiB: {LIMIT / whole:.0f} pods with their SlurmJobs")
    turns, asked, written = Turns(), len(slurm.requests), len(site.kube.calls)
    turns.begin()
    began, cpu = time.monotonic(), time.thread_time()
    async with site.running():
        # That a test puts all keys into the queues in one turn is no part of it.
        turns.begin()
        listed = asyncio.create_task(first_list(site))
        shown("another namespace, beside them", await bench.come("beside"))
        queues = [one.queue for one in site.controllers]
        await until(lambda: not any(len(one) for one in queues))
        print(f"the first list of jobs was there after {await listed:.1f} s")
        seconds, cpu = time.monotonic() - began, time.thread_time() - cpu
        calls = len(slurm.requests) - asked
        print(f"first passes of all: {seconds:.1f} s, CPU {1000 * cpu / MANY:.2f} ms each, {calls} calls to Slurm")
        print(f"writes: {len(site.kube.calls) - written}; longest turn {1000 * turns.longest():.0f} ms")
        turns.begin()
        asked, written, cpu = len(slurm.requests), len(site.kube.calls), time.thread_time()
        await asyncio.sleep(30)
        cpu = time.thread_time() - cpu
        print(f"at rest, of 30 s: CPU {cpu:.1f} s, {len(slurm.requests) - asked} calls to Slurm", end=", ")
        print(f"{len(site.kube.calls) - written} writes, longest turn {1000 * turns.longest():.0f} ms")
        shown("another namespace, beside them at rest", await bench.come("rest"))
