"""
The targets of the conformance suite: real clusters and the fake, with one interface.

A target prepares what a test needs (nodes, jobs in some state) and provides clients; it asserts nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import override

from slurm_client import MintedToken, SlurmClient
from slurm_client.testing import FakeSlurmrestd

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.slurm_host import SlurmHost

_serial = itertools.count(1)

UNTIL_TOLD = """#!/bin/sh
until [ -s "/var/spool/end-$SLURM_JOB_ID" ]; do sleep 0.1; done
exit "$(cat "/var/spool/end-$SLURM_JOB_ID")"
"""
"""A batch script that runs until :meth:`Target.end_job`."""


class Target(ABC):
    """A cluster to be asked; nodes ``w-0`` (1 CPU) and ``w-1`` (2 CPUs) are in partition ``all``."""

    url: str
    key: bytes
    release: str

    def client(self, version: str | None, user: str = "root") -> SlurmClient:
        """Return a client that speaks one data parser."""
        return SlurmClient(self.url, MintedToken(self.key, user), api_version=version)

    @abstractmethod
    async def add_node(self, *, instance_id: str = "", extra: str = "") -> str:
        """Add a node with one CPU and return its name, which nothing else has."""

    @abstractmethod
    async def remove_node(self, name: str) -> None:
        """Stop the slurmd of an added node; its record stays."""

    @abstractmethod
    async def start_job(self, node: str) -> int:
        """Start a job that fills a node and return its id when it is running."""

    @abstractmethod
    async def start_array(self, node: str, tasks: str = "0-1") -> int:
        """Start an array on a node with two CPUs and return its id when the first two tasks are running."""

    @abstractmethod
    async def suspend_job(self, job_id: int) -> None:
        """Suspend a running job."""

    @abstractmethod
    async def end_job(self, job_id: int, exit_code: int = 0) -> None:
        """Let the script :data:`UNTIL_TOLD` of a running job return."""

    def name(self) -> str:
        """Return a node name that was not used before."""
        return f"n-{next(_serial)}"


class RealTarget(Target):
    """slurmctld, slurmd and slurmrestd of one Slurm release."""

    def __init__(self, host: SlurmHost, release: str) -> None:
        self.host = host
        self.url = host.url
        self.key = host.jwt_key
        self.release = release

    @override
    async def add_node(self, *, instance_id: str = "", extra: str = "") -> str:
        name = self.name()
        await asyncio.to_thread(self.host.add_node, name, instance_id=instance_id, extra=extra)
        return name

    @override
    async def remove_node(self, name: str) -> None:
        await asyncio.to_thread(self.host.stop, name)

    @override
    async def start_job(self, node: str) -> int:
        job_id = await asyncio.to_thread(self.host.sbatch, "sleep 600", "-w", node, "--exclusive")
        await until(lambda: _is(self.host.job_state, job_id, "RUNNING"))
        return job_id

    @override
    async def start_array(self, node: str, tasks: str = "0-1") -> int:
        array = await asyncio.to_thread(self.host.sbatch, "sleep 600", "-w", node, f"--array={tasks}")

        async def running() -> bool:
            async with self.client(None) as slurm:
                return sum(job.is_running for job in await slurm.jobs() if job.array_job_id == array) == 2

        await until(running)
        return array

    @override
    async def suspend_job(self, job_id: int) -> None:
        await asyncio.to_thread(self.host.run, "scontrol", "suspend", str(job_id))

    @override
    async def end_job(self, job_id: int, exit_code: int = 0) -> None:
        (self.host.shared / f"end-{job_id}").write_text(f"{exit_code}\n")


async def _is(function: Callable[[int], str], argument: int, wanted: str) -> bool:
    return await asyncio.to_thread(function, argument) == wanted


class FakeTarget(Target):
    """The fake, pretending to be that release."""

    def __init__(self, fake: FakeSlurmrestd) -> None:
        self.fake = fake
        self.url = fake.url
        assert fake.key is not None
        self.key = fake.key
        self.release = fake.world.release

    @override
    async def add_node(self, *, instance_id: str = "", extra: str = "") -> str:
        name = self.name()
        self.fake.add_node(name, instance_id=instance_id, extra=extra, memory=256)
        return name

    @override
    async def remove_node(self, name: str) -> None:
        """The record stays, and nothing else is seen of a slurmd that is gone."""

    @override
    async def start_job(self, node: str) -> int:
        return int(self.fake.add_job(nodes=[node]).id)

    @override
    async def start_array(self, node: str, tasks: str = "0-1") -> int:
        # The task that started last has the number of the array, or those that wait.
        own, *others = (self.fake.add_job(nodes=[node], cpus=1) for _ in range(2 if tasks == "0-1" else 3))
        indices = [1, 0] if len(others) == 1 else [None, 1, 0]
        for task, job in zip(indices, (own, *others), strict=True):
            self.fake.world.jobs[job.id] = replace(self.fake.jobs[job.id], array_job_id=own.id, array_task_id=task)
        if len(others) > 1:
            waiting = tasks.replace("0-", "2-")
            self.fake.set_job_state(own.id, "PENDING", nodes=(), node_list="", array_tasks=waiting)
        return int(own.id)

    @override
    async def suspend_job(self, job_id: int) -> None:
        self.fake.set_job_state(job_id, "SUSPENDED")

    @override
    async def end_job(self, job_id: int, exit_code: int = 0) -> None:
        self.fake.world.exit_job(job_id, exit_code)


async def until(
    condition: Callable[[], Awaitable[bool]],
    timeout: float = 120,  # noqa: ASYNC109
    or_tell: Callable[[], str] = str,
) -> None:
    """Ask again and again until the condition holds; ``or_tell`` has more to say when it never does."""
    deadline = time.monotonic() + timeout
    while not await condition():
        assert time.monotonic() < deadline, f"the condition was never met {or_tell()}"
        await asyncio.sleep(0.05)
