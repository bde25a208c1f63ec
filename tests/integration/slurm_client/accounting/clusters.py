"""
The clusters with accounting that conformance is tested on: real ones and the fake, with one interface.

Each has the same finished jobs, by name: `JOBS` says how each of them ended.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
import jwt
from typing_extensions import override

from slurm_client import MintedToken, SlurmClient
from slurm_client.models import ExitCode
from slurm_client.testing import FakeSlurmrestd
from tests.support import accounting_host

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slurm_client.testing.faults import Fault
    from tests.support.accounting_host import AccountingHost

JOBS = {
    "completed": "COMPLETED",
    "failed": "FAILED",
    "signalled": "FAILED",
    "cancelled": "CANCELLED",
    "timed-out": "TIMEOUT",
    "running": "RUNNING",
}
"""Jobs that every cluster has, and the state slurmdbd keeps of each; `array` is there beside them."""

Answer = tuple[int, Any]


class AccountingCluster(ABC):
    """A cluster with slurmdbd; `jobs` has the ids of `JOBS` and of ``array``, whose tasks exit with their number."""

    url: str
    key: bytes
    release: str
    cluster: str
    jobs: Mapping[str, int]

    def client(self, version: str | None, user: str = "root") -> SlurmClient:
        """Return a client that speaks one data parser."""
        return SlurmClient(self.url, MintedToken(self.key, user), api_version=version)

    async def ask(
        self, version: str, method: str, path: str, body: object = None, *, as_user: str = "root", **query: str
    ) -> Answer:
        """Send one request to a path below ``/slurmdb/<version>/``; return status and answer without its ``meta``."""
        now = int(time.time())
        token = jwt.encode({"sun": as_user, "iat": now - 60, "exp": now + 600}, self.key, algorithm="HS256")
        async with httpx.AsyncClient(timeout=60) as http:
            reply = await http.request(
                method,
                f"{self.url}/slurmdb/{version}/{path}",
                params=query,
                json=body,
                headers={"X-SLURM-USER-TOKEN": token},
            )
        if not reply.headers.get("content-type", "").startswith("application/json") or not reply.content:
            return reply.status_code, reply.text
        answer = reply.json()
        answer.pop("meta", None)
        return reply.status_code, answer

    @abstractmethod
    async def stop_slurmdbd(self) -> None:
        """Let slurmdbd be away."""

    @abstractmethod
    async def start_slurmdbd(self) -> None:
        """Let slurmdbd be there again."""

    @abstractmethod
    async def run_job(self, name: str) -> int:
        """Let a job of that name complete, and return its id."""


class RealCluster(AccountingCluster):
    """MariaDB, slurmdbd, slurmctld, slurmd and slurmrestd of one Slurm release."""

    cluster = accounting_host.CLUSTER

    def __init__(self, host: AccountingHost, release: str, jobs: Mapping[str, int]) -> None:
        self.host = host
        self.url = host.url
        self.key = host.jwt_key
        self.release = release
        self.jobs = jobs

    @override
    async def stop_slurmdbd(self) -> None:
        await asyncio.to_thread(self.host.stop, "slurmdbd")

    @override
    async def start_slurmdbd(self) -> None:
        await asyncio.to_thread(self.host.start_slurmdbd)

    @override
    async def run_job(self, name: str) -> int:
        return await asyncio.to_thread(run_job, self.host, name)


def run_job(host: AccountingHost, name: str) -> int:
    """Let a job complete that needs no node for itself."""
    job_id = host.sbatch("true", "-J", name, "-w", "w-1")
    host.wait_for(lambda: host.job_state(job_id) == "COMPLETED", f"job {name} completes")
    return job_id


def _runs(host: AccountingHost, job_id: int) -> bool:
    return host.job_state(job_id) == "RUNNING"


def start_jobs(host: AccountingHost) -> dict[str, int]:
    """Submit `JOBS` and wait until slurmdbd has them all in their states."""
    jobs = {
        "completed": host.sbatch("srun true; srun -J second true", "-J", "completed"),
        "failed": host.sbatch("exit 3", "-J", "failed", "--comment=a comment"),
        "signalled": host.sbatch("kill -9 $$", "-J", "signalled"),
        "array": host.sbatch("exit $SLURM_ARRAY_TASK_ID", "-J", "array", "--array=0-1"),
        "cancelled": host.sbatch("exec sleep 600", "-J", "cancelled"),
        "timed-out": host.sbatch("exec sleep 600", "-J", "timed-out", "--time=1"),
        "running": host.sbatch("sleep 6000", "-J", "running"),
    }
    for name in ("cancelled", "timed-out", "running"):
        host.wait_for(partial(_runs, host, jobs[name]), f"job {name} runs")
    host.run("scancel", str(jobs["cancelled"]))
    host.end_now(jobs["timed-out"])
    wanted = {str(jobs[name]): state for name, state in JOBS.items()}
    wanted |= {f"{jobs['array']}_0": "COMPLETED", f"{jobs['array']}_1": "FAILED"}

    def all_there() -> bool:
        shown = host.run("sacct", "-n", "-P", "-X", "-o", "JobID,State").stdout.splitlines()
        states = dict(line.split("|") for line in shown)
        return all(states.get(job, "").startswith(state) for job, state in wanted.items())

    host.wait_for(all_there, "slurmdbd has all jobs in their states", 180)
    return jobs


class FakeCluster(AccountingCluster):
    """The fake, pretending to be that release."""

    def __init__(self, fake: FakeSlurmrestd) -> None:
        self.fake = fake
        self.url = fake.url
        assert fake.key is not None
        self.key = fake.key
        self.release = fake.world.release
        self.cluster = fake.database.cluster
        self.jobs = self._start_jobs()
        self._away: Fault | None = None

    def _start_jobs(self) -> dict[str, int]:
        jobs = {}
        codes = {"failed": ExitCode(("ERROR",), 3), "signalled": ExitCode(("SIGNALED",), None, 9, "KILL")}
        for name, state in JOBS.items():
            comment = "a comment" if name == "failed" else ""
            job = self.fake.add_job(name=name, nodes=["w-0"], account="root", cpus=1, comment=comment)
            jobs[name] = int(job.id)
            if state != "RUNNING":
                self.fake.finish_job(job.id, state)
                self.fake.world.jobs[job.id] = replace(self.fake.jobs[job.id], exit_code=codes.get(name))
        own, other = (self.fake.add_job(name="array", nodes=["w-0"], account="root", cpus=1) for _ in range(2))
        for job, task, state, code in ((own, 1, "FAILED", 1), (other, 0, "COMPLETED", 0)):
            self.fake.finish_job(job.id, state)
            ended = ExitCode(("ERROR" if code else "SUCCESS",), code)
            self.fake.world.jobs[job.id] = replace(
                self.fake.jobs[job.id], array_job_id=own.id, array_task_id=task, exit_code=ended
            )
        return jobs | {"array": int(own.id)}

    @override
    async def stop_slurmdbd(self) -> None:
        self._away = self.fake.faults.slurmdbd_down()

    @override
    async def start_slurmdbd(self) -> None:
        assert self._away is not None
        self.fake.faults.remove(self._away)

    @override
    async def run_job(self, name: str) -> int:
        job = self.fake.add_job(name=name, nodes=["w-1"], account="root", cpus=1)
        self.fake.finish_job(job.id)
        return int(job.id)
