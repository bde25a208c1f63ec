"""Submit a script with its #SBATCH lines, wait, and end with the job's exit code: ``submit_and_wait.py job.sh``."""

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

from slurm_client import SlurmClient
from slurm_client.notation import sbatch


async def main(script: str, folder: str) -> int:
    """Return the exit code of the job: that of its script, or 128 and the signal that ended it."""
    asked = sbatch.parse(script).spec
    spec = replace(asked, working_directory=asked.working_directory or folder)
    async with (
        SlurmClient(os.environ["SLURMRESTD_URL"], os.environ["SLURM_JWT"]) as slurm,
        # Before the job is submitted, so that no change of it is missed.
        slurm.watch_jobs() as events,
    ):
        submitted = await slurm.submit_job(spec)
        print(f"submitted {submitted.id}", flush=True)
        async for event in events:
            job = event.new
            if job is None or job.id != submitted.id:
                continue
            print(f"{job.state} {job.state_reason if job.is_pending else job.node_list}", flush=True)
            if job.is_finished:
                code = job.exit_code
                if code is None or job.state.base not in {"COMPLETED", "FAILED"}:
                    return 1
                return 128 + code.signal if code.signal else code.return_code or 0
    return 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]).read_text(), str(Path.cwd()))))
