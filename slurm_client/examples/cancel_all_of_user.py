"""End all jobs of a user, and wait until none is left: ``cancel_all_of_user.py alice``."""

import os
import sys
import time

from slurm_client import SyncSlurmClient


def main(user: str) -> None:
    """Print what was ended."""
    with SyncSlurmClient(os.environ["SLURMRESTD_URL"], os.environ["SLURM_JWT"]) as slurm:
        meant = [job for job in slurm.jobs() if job.user == user and not job.is_finished]
        # One call. With an empty user it would be an error, and never all jobs.
        for result in slurm.cancel_jobs(user=user):
            if result.error is not None:
                print(f"{result.id}: {result.error}")
        left = {job.id for job in meant}
        while left:
            left &= {job.id for job in slurm.jobs() if not job.is_finished}
            time.sleep(0.2)
    print(f"{len(meant)} jobs of {user} have ended: {', '.join(job.alone for job in meant) or '-'}")


if __name__ == "__main__":
    main(sys.argv[1])
