"""The folder that a script makes for its image, and removes at its end.

Scripts here are run by any POSIX shell. Texts of users become words by `shlex`, in single quotes, in which a shell
expands nothing; the first line that is no comment comes before all of them, so that none can be an ``#SBATCH`` line.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Final

FOLDER: Final = '"$folder"'
"""The folder, as a word of the script."""

_BEGIN: Final = ("#!/bin/sh", "set -eu")


def script(lines: Iterable[str], *, folder: str | None) -> str:
    """Make a script.

    Parameters
    ----------
    lines
        What it does, each line with all its words quoted.
    folder
        Where the folder is made; None if none is needed.
    """
    made = () if folder is None else _made_in(folder)
    return "\n".join((*_BEGIN, *made, *lines, ""))


def _made_in(parent: str) -> tuple[str, ...]:
    # A folder of this name that exists is somebody else's: mkdir fails, and nothing has been promised to be removed.
    # Images may contain folders that their owner cannot write to, which rm would leave. Slurm ends a job that is out of
    # time with two SIGTERM, of which the first ends its steps: the second comes while the folder is being removed.
    return (
        f"folder={shlex.quote(parent.rstrip('/'))}/wlmjob-$SLURM_JOB_ID-${{SLURM_RESTART_COUNT:-0}}",
        f"mkdir -m 700 {FOLDER}",
        f"leave() {{ trap '' HUP INT TERM; trap - EXIT; chmod -R u+rwX {FOLDER} || :; rm -rf {FOLDER} || :; }}",
        "trap leave EXIT",
        "trap 'leave; exit 143' HUP INT TERM",
    )


def on_each_node(*words: str, cpus: int) -> str:
    """Write a step with one task on each node of the job.

    Parameters
    ----------
    *words
        Options of srun, and the program with its arguments, quoted.
    cpus
        CPUs of each task; 0 for Slurm's default.
    """
    asked = (f"--cpus-per-task={cpus}",) if cpus else ()
    return " ".join(("srun", '--nodes="$SLURM_JOB_NUM_NODES"', "--ntasks-per-node=1", *asked, *words))
