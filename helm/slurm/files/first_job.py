"""What `helm test` runs: a job, submitted by a Token over slurmrestd, until its end."""
# ruff: noqa: INP001 the pod has it as a text

from __future__ import annotations

import asyncio
import os
import sys
import time
from datetime import timedelta

from slurm_client import FileToken, JobSpec, SlurmClient, SlurmError

URL = os.environ["SLURMRESTD_URL"]
PATIENCE = float(os.environ["TIMEOUT"])
TOKEN = os.environ["TOKEN_FILE"]

JOB = JobSpec(
    script="#!/bin/sh\nhostname\n",
    name="helm-test",
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
        while (number := await submitted(slurm)) is None:
            if time.monotonic() > until:
                say(f"no job could be submitted to {URL} within {PATIENCE:g} s")
                return 1
            await asyncio.sleep(3)
        say(f"job {number} was submitted to {URL}")
        try:
            ended = await slurm.wait_job(number, timeout=max(1.0, until - time.monotonic()))
        except SlurmError as error:
            say(f"job {number} did not end within {PATIENCE:g} s: {error}")
            return 1
    for end in ended.ends:
        say(f"job {number} ended: {end.state}, exit code {end.exit_status}")
    return 0 if ended.succeeded else 1


async def submitted(slurm: SlurmClient) -> int | None:
    """The number of the job, or nothing if Slurm cannot take it yet."""
    try:
        return (await slurm.submit_job(JOB)).id
    except SlurmError as error:
        say(f"the job was not submitted, trying again: {error}")
        return None


def say(text: str) -> None:
    """Print a line for `helm test --logs`."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
