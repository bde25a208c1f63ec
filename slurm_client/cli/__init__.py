"""
``slurm-rest``: a cluster on the command line, through slurmrestd.

Needs click (the extra ``cli``); nothing else of the library imports this room. Exit codes are in
:mod:`slurm_client.cli.exits`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    if find_spec("click") is None:
        sys.stderr.write("slurm-rest: click is not installed; run: pip install 'slurm-rest-client[cli]'\n")
        return 2
    from slurm_client.cli.app import run

    return run(arguments)
