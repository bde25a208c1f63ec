"""Run an array, and a job that begins when all tasks have succeeded: ``array_then_merge.py FOLDER``."""

import os
import sys
import time
from datetime import timedelta

from slurm_client import JobSpec, SyncSlurmClient

PART = """#!/bin/sh
echo "$((SLURM_ARRAY_TASK_ID * SLURM_ARRAY_TASK_ID))" > "part-$SLURM_ARRAY_TASK_ID"
"""
MERGE = """#!/bin/sh
cat part-* | awk '{ sum += $1 } END { print sum }' > sum
"""


def main(folder: str) -> int:
    """Return 0 if the second job has succeeded."""
    minute = timedelta(minutes=1)
    with SyncSlurmClient(os.environ["SLURMRESTD_URL"], os.environ["SLURM_JWT"]) as slurm:
        parts = slurm.submit_job(
            JobSpec(script=PART, name="part", array="1-3", time_limit=minute, working_directory=folder)
        )
        merge = slurm.submit_job(
            JobSpec(
                script=MERGE,
                name="merge",
                # Not "afterany": a task that fails leaves nothing to merge.
                dependency=f"afterok:{parts.id}",
                time_limit=minute,
                working_directory=folder,
            )
        )
        print(f"array {parts.id}, then {merge.id}", flush=True)
        while True:
            job = slurm.job(merge.id)
            if job.is_finished or job.state_reason == "DependencyNeverSatisfied":
                break
            time.sleep(0.5)
        for part in slurm.job_parts(parts.id):
            print(f"{part.alone} {part.state}")
        print(f"{job.id} {job.state} {job.state_reason}")
        if not job.is_finished:
            slurm.cancel_job(job)
        return 0 if job.state.base == "COMPLETED" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
