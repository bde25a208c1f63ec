"""What the processes of one pytest run share: created by the first that needs it, available to the others.

If the run is one process, it creates everything itself.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def worker() -> str:
    """Return the name of this process among those of the run; empty if it is the only one."""
    return os.environ.get("PYTEST_XDIST_WORKER", "")


def folder_of_run(paths: pytest.TempPathFactory) -> Path:
    """Return a folder that all processes of the run have, and no other run."""
    own = paths.getbasetemp()
    return own.parent if worker() else own


@contextmanager
def first_of(folder: Path, what: str) -> Iterator[bool]:
    """Keep the others waiting, and say whether this process is the first one, who has to make it.

    Where that fails, the next one is the first.

    Parameters
    ----------
    folder
        `folder_of_run`, or any that those have who share it.
    what
        A name for it.
    """
    made = folder / f"{what}.made"
    with (folder / f"{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_first = not made.exists()
        yield is_first
        made.touch()
