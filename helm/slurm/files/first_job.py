"""What `helm test` runs: a job, submitted by a Token over slurmrestd, until its end. No job is left behind."""
# ruff: noqa: INP001 the pod has it as a text

from __future__ import annotations

import asyncio
import os
import sys
import time
import uuid
from datetime import timedelta

from slurm_client import FileToken, JobSpec, SlurmClient, SlurmError

URL = os.environ["SLURMRESTD_URL"]
PATIENCE = float(os.environ["TIMEOUT"])
TOKEN = os.environ["TOKEN_FILE"]
PAUSE = 3.0
NAME = f"helm-test-{uuid.uuid4().hex[:12]}"
"""By which the job is found whose submission was not answered."""

JOB = JobSpec(
    script="#!/bin/sh\nhostname\n",
    name=NAME,
    partition=os.environ.get("PARTITION") or None,
    account=os.environ.get("ACCOUNT") or None,
    time_limit=timedelta(minutes=1),
    working_directory="/tmp",  # noqa: S108 a folder that each node has
    standard_output="/dev/null",
    environment={"PATH": "/bin:/usr/bin"},
)


async def main() -> int:
    """Run the job, and return what the pod ends with."""
    until = time.monotonic() + PATIENCE
    async with SlurmClient(URL, FileToken(TOKEN)) as slurm:
        number = await submitted(slurm)
        while number is None:
            if time.monotonic() > until:
                say(f"no job could be submitted to {URL} within {PATIENCE:g} s")
                await cancel(slurm)
                return 1
            await asyncio.sleep(PAUSE)
            number = await submitted(slurm, is_first=False)
        say(f"job {number} was submitted to {URL}")
        try:
            ended = await slurm.wait_job(number, timeout=max(1.0, until - time.monotonic()))
        except SlurmError as error:
            say(f"job {number} did not end within {PATIENCE:g} s: {error}")
            await cancel(slurm)
            return 1
    for end in ended.ends:
        say(f"job {number} ended: {end.state}, exit code {end.exit_status}")
    return 0 if ended.succeeded else 1


async def submitted(slurm: SlurmClient, *, is_first: bool = True) -> int | None:
    """The number of the job, or nothing if Slurm cannot take it yet."""
    try:
        if not is_first:
            # The answer may be lost, and the job be there.
            for job in await slurm.find_jobs(name=NAME):
                return job.id
        return (await slurm.submit_job(JOB)).id
    except SlurmError as error:
        say(f"no job yet, trying again: {error}")
        return None


async def cancel(slurm: SlurmClient) -> None:
    """End the job, if there is one, also one whose submission was not answered."""
    try:
        for job in await slurm.find_jobs(name=NAME):
            if not job.state.is_finished:
                await slurm.cancel_job(job)
                say(f"job {job.id} was cancelled")
    except SlurmError as error:
        say(f"a job {NAME} may be left: it could not be cancelled: {error}")


def say(text: str) -> None:
    """Print a line for `helm test --logs`."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
