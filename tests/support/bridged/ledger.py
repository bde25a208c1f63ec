"""What Slurm has promised, as slurmctld itself shows it, beside what pods have: each core once, each job with its pods.

Slurm is asked in a process of its own, so what it shows is of another moment than the pods: what does not agree counts
only if it stays so.
"""

from __future__ import annotations

import asyncio
import math
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

from slinky_api import labels
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import SLURMJOBS
from slurm_client.notation import hostlist
from tests.support.bridged.machines import OVER, cpus_of, pinned_to
from tests.support.bridged.site import BridgedSite

PATIENCE_S: Final = 30.0
"""Seconds for which a pod may live without a running job, and a running job without a pod: others learn of it late."""

RUNNING: Final = frozenset({"RUNNING", "COMPLETING"})
_FIELD: Final = re.compile(r"\b(JobId|JobName|JobState|Partition)=(\S*)")
_CORES: Final = re.compile(r" Nodes=(\S+) CPU_IDs=(\S+)")
LIVING: Final = RUNNING | {"PENDING", "CONFIGURING"}


class Ledger:
    """What has been seen of a site, step by step.

    Parameters
    ----------
    site
        The pods.
    run
        Runs a command of Slurm.
    """

    def __init__(self, site: BridgedSite, run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
        self._site = site
        self._run = run
        self.looks = 0
        self.twice: list[str] = []
        """Cores that two running jobs had, groups that had two jobs, and pods that had more than their job."""
        self.lonely: dict[str, float] = {}
        """Since when a pod has no running job, or a job no pod."""
        self.longest = 0.0
        """Seconds for which this lasted at most."""
        self.strays: list[str] = []
        """Those for which it lasted too long."""
        self.most_busy = 0
        """Cores of Slurm that were busy at once."""
        self.left: list[str] = []
        """Jobs that wait or run, at the last look."""

    async def look(self) -> None:
        """Compare once."""
        began = time.monotonic()
        placed = self._placed()
        shown = await asyncio.to_thread(self._run, "scontrol", "-d", "-o", "show", "jobs")
        jobs = [_Job.read(line) for line in shown.stdout.splitlines() if line.startswith("JobId=")]
        living = [one for one in jobs if one.state in LIVING]
        running = {one.number: one for one in living if one.state in RUNNING}
        self.looks += 1
        self.left = [f"{one.number} {one.name} {one.state}" for one in living]
        self._count(living, running, placed)
        there = {_work_of(pod) for pod in self._site.groups}
        now = {f"pod {one.pod} of job {one.job}" for one in placed if one.job not in running}
        now |= {f"job {one.number} {one.name}" for one in living if one.is_of_pods and one.name not in there}
        self.lonely = {name: self.lonely.get(name, began) for name in now}
        self.longest = max([self.longest, *(began - since for since in self.lonely.values())])
        self.strays += [name for name, since in self.lonely.items() if began - since > PATIENCE_S]

    def _placed(self) -> list[_Placed]:
        """The pods that were placed, live and are not about to go."""
        found = []
        for pod in self._site.groups:
            about = pod["metadata"]
            name = (about.get("annotations") or {}).get(labels.ANNOTATION_BRIDGE_SLURMJOB)
            if not name or pod["status"].get("phase") in OVER or about.get("deletionTimestamp"):
                continue
            job = self._site.kube.find(SLURMJOBS, name, about["namespace"]) or {}
            number = str((job.get("status") or {}).get("jobId"))
            found.append(_Placed(about["name"], number, pinned_to(pod), math.ceil(cpus_of(pod))))
        return found

    def _count(self, living: list[_Job], running: dict[str, _Job], placed: list[_Placed]) -> None:
        """No core of a node belongs to two jobs, no group has two jobs, and no pod more than its job has there."""
        names = Counter(one.name for one in living)
        self.twice += [f"{count} jobs named {name}" for name, count in names.items() if count > 1]
        owners: dict[tuple[str, int], str] = {}
        for job in running.values():
            for core in job.cores:
                other = owners.setdefault(core, job.number)
                if other != job.number:
                    self.twice.append(f"core {core}: jobs {other} and {job.number}")
        self.most_busy = max(self.most_busy, len(owners))
        had: Counter[tuple[str, str]] = Counter()
        for one in placed:
            had[one.job, one.node] += one.cpus
        given = Counter((job.number, node) for job in running.values() for node, _ in job.cores)
        self.twice += [
            f"pods of job {job} have {count} cores of {node}, and Slurm gave {given[job, node]}"
            for (job, node), count in had.items()
            if job in running and count > given[job, node]
        ]


@dataclass(frozen=True, slots=True)
class _Placed:
    """A pod that Slurm has placed."""

    pod: str
    job: str
    node: str
    cpus: int


@dataclass(frozen=True, slots=True)
class _Job:
    """A job as slurmctld shows it."""

    number: str
    name: str
    state: str
    partition: str
    cores: frozenset[tuple[str, int]]

    @classmethod
    def read(cls, line: str) -> Self:
        """Read a line of scontrol."""
        known = dict(_FIELD.findall(line))
        cores = {
            (node, core)
            for nodes, text in _CORES.findall(line)
            for node in hostlist.expand(nodes)
            for core in _numbers(text)
        }
        return cls(known["JobId"], known["JobName"], known["JobState"], known.get("Partition", ""), frozenset(cores))

    @property
    def is_of_pods(self) -> bool:
        """Whether it was made for pods."""
        return self.partition in {"pods", "urgent"} and not self.name.startswith("other")


def _work_of(pod: Object) -> str:
    owners = pod["metadata"].get("ownerReferences") or ()
    return str(owners[0]["name"] if owners else pod["metadata"]["name"])


def _numbers(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found
