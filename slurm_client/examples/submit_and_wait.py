"""Submit a script with its #SBATCH lines, wait, and end with the job's exit code: ``submit_and_wait.py job.sh``."""

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

from slurm_client import SlurmClient
from slurm_client.notation import sbatch


async def main(script: str, folder: str) -> int:
    """Return the exit code of the job: that of its script, 128 and the signal that ended it, or 1 out of time."""
    asked = sbatch.parse(script).spec
    spec = replace(asked, working_directory=asked.working_directory or folder)
    async with SlurmClient(os.environ["SLURMRESTD_URL"], os.environ["SLURM_JWT"]) as slurm:
        submitted = await slurm.submit_job(spec)
        print(f"submitted {submitted.id}", flush=True)
        finished = await slurm.wait_job(submitted.id)
    print(*(f"{end.id} {end.state}" for end in finished.ends), sep="\n")
    return finished.exit_status


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]).read_text(), str(Path.cwd()))))
