"""Runs the programs in ``slurm_client/examples`` as a reader would: as processes, with two variables."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "slurm_client" / "examples"


def variables(url: str, token: str) -> dict[str, str]:
    """Return the environment of an example."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "SLURMRESTD_URL": url, "SLURM_JWT": token}


def run_example(name: str, url: str, token: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run an example to its end."""
    return subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments],
        env=variables(url, token),
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def example_running(name: str, url: str, token: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run an example that does not end by itself, until the block ends; its output is to be read from its pipe."""
    with subprocess.Popen(
        [sys.executable, str(EXAMPLES / name), *arguments],
        env=variables(url, token),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
