"""Build Kubernetes with CoreDNS, helm and the volume provisioner from their Go modules, once per version.

Each program lies in the cache under a name that holds a hash of everything it is built from, so a new version never
overwrites one that a running cluster uses, and tests never rebuild what is there. `programs.module` compiles.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hack.localkube.errors import NoSpace
from hack.localkube.paths import cache_root
from hack.localkube.programs.module import HELM, KUBERNETES, KUBERNETES_VERSION, PROVISIONER, Program, compile_into

__all__ = [
    "HELM",
    "KUBERNETES",
    "KUBERNETES_VERSION",
    "PROVISIONER",
    "Program",
    "bin_folder",
    "binary",
    "ensure",
    "tool",
]

BUILD_NEEDS_MIB = 6000
_UNFINISHED = ".unfinished-"


def ensure(*programs: Program) -> None:
    """Build the programs that the cache does not hold, and link their names into `bin_folder`.

    Programs that are asked for together are built together, which takes less time than one after the other.

    Raises
    ------
    MissingProgram
        There is no Go.
    NoSpace
        The cache's file system is too full for a build.
    BuildFailed
        The compiler or the download failed; the text has its words.
    """
    missing = _missing(programs)
    if missing:
        with ExitStack() as locks:
            # All in one order: two that want the same two do not wait for each other.
            for program in sorted(missing, key=lambda program: program.name):
                locks.enter_context(_lock(program))
            # Another process may have built some while this one waited.
            missing = _missing(missing)
            if missing:
                _build(missing)
    _link(programs)


def binary(program: Program) -> Path:
    """Return where the program lies once it is built."""
    return cache_root() / "programs" / program.key() / program.name


def bin_folder() -> Path:
    """Return the folder with the names of all programs, for a PATH."""
    return cache_root() / "bin"


def tool(name: str) -> Path:
    """Return the path of a program by the name it is called by, ``kubectl`` for example."""
    return bin_folder() / name


def _missing(programs: Sequence[Program]) -> list[Program]:
    return [program for program in programs if not binary(program).exists()]


@contextmanager
def _lock(program: Program) -> Iterator[None]:
    # Two test runs on one machine share the cache: the second waits and then finds everything there.
    folder = cache_root() / "programs"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{program.name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build(programs: Sequence[Program]) -> None:
    free = shutil.disk_usage(cache_root()).free // 2**20
    if free < BUILD_NEEDS_MIB:
        raise NoSpace(cache_root(), free, BUILD_NEEDS_MIB)
    for program in programs:
        folder = binary(program).parent
        folder.mkdir(parents=True, exist_ok=True)
        # Where our process was killed, its compiler may live on, and must find nothing to write to.
        for left in folder.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(left)
    # In the folder of the first: where this process is killed, the next one to build that program removes it.
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=binary(programs[0]).parent))
    compile_into(unfinished, programs)
    for program in programs:
        (unfinished / program.name).replace(binary(program))
    shutil.rmtree(unfinished)


def _link(programs: Sequence[Program]) -> None:
    folder = bin_folder()
    folder.mkdir(parents=True, exist_ok=True)
    for program in programs:
        for name in program.names:
            link = folder / name
            if link.is_symlink() and link.readlink() == binary(program):
                continue
            fresh = folder / f".{name}.{os.getpid()}.{threading.get_ident()}"
            # Left by a process that was killed and had the same number, on a machine that has rebooted since.
            fresh.unlink(missing_ok=True)
            fresh.symlink_to(binary(program))
            fresh.replace(link)
