"""Begin as if started from a fresh login: nothing that a process inherits decides how it, and what it starts, behaves.

``nohup`` has all children ignore SIGHUP, a shell script those in its background SIGINT; a variable names another
cluster, a proxy stands between a test and its own server, a locale has other words and letters, a mask takes the rights
from files that a daemon of another user has to read. Tests, the daemons that they start and the machines of the local
Kubernetes must not differ by that: `begin` is called first by pytest (``tests/conftest.py``), `hack.check`, the demo
and everything that starts a local Kubernetes.

What stays is what a person chooses for the whole: PATH, HOME, TMPDIR and the XDG folders, the priority (``nice``), the
hard limits, proxies and certificates for downloads.
"""

from __future__ import annotations

import locale
import os
import resource
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

OF_THE_CALLER: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
"""Signals of a terminal: who has them ignored wants this process to go on, not what it starts to be deaf."""

UNHEARD: Final = "NEUTRAL_START_UNHEARD"
"""Variable with the numbers of those that were ignored: processes of pytest's that begin likewise go on, too."""

LEFT_TO_PYTHON: Final = frozenset({signal.SIGPIPE, signal.SIGXFSZ})
"""Ignored by each Python, which gives them back to the programs that it starts."""

UMASK: Final = 0o022

OPEN_FILES: Final = 20_000
"""For one process: an API server, or a test that opens thousands of connections."""

LIMITS: Final = (resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC)
"""Soft limits that become as high as the hard ones."""

FIXED: Final = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'api'}"}
"""Variables that have one value for everybody."""

DROPPED: Final = (
    # Another cluster, other credentials, another Slurm.
    *("KUBE", "HELM_"),
    *("SLURM", "SBATCH_", "SRUN_", "SALLOC_", "SCANCEL_", "SQUEUE_", "SINFO_", "SACCT", "SCONTROL_"),
    *("SCRONTAB_", "SPRIO_", "SSHARE_", "SREPORT_", "SSTAT_", "SDIAG_", "MUNGE_", "PMI_", "PMIX_", "MYSQL_"),
    # How languages, shells and tools behave.
    *("LANG", "LC_", "PYTHONASYNCIODEBUG", "PYTHONDEVMODE", "PYTHONINSPECT", "PYTHONIOENCODING", "PYTHONOPTIMIZE"),
    # Set in many container images: each of hundreds of processes would compile what it imports, and each process of
    # pytest rewrite all tests.
    "PYTHONDONTWRITEBYTECODE",
    *("PYTHONSAFEPATH", "PYTHONSTARTUP", "PYTHONTRACEMALLOC", "PYTHONUTF8", "PYTHONWARNINGS"),
    *("BASH_ENV", "BASHOPTS", "SHELLOPTS", "CDPATH", "GLOBIGNORE", "POSIXLY_CORRECT", "GREP_", "PERL5", "PERL_"),
    *("COLUMNS", "LINES", "FORCE_COLOR", "CLICOLOR", "NO_COLOR"),
    # What is meant for the program that started this one: make, git, systemd.
    *("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_PREFIX"),
    *("GIT_OBJECT_DIRECTORY", "NOTIFY_SOCKET", "LISTEN_", "WATCHDOG_", "INVOCATION_ID", "JOURNAL_STREAM"),
)
"""Beginnings of names of variables that are taken away."""

PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy")

NEAR: Final = ("localhost", "127.0.0.1", "127.0.0.0/8", "::1", "10.90.0.0/16", "10.96.0.0/12", "10.244.0.0/16", ".svc")
"""Where no proxy stands before: loopback and the networks of a local Kubernetes. Not each program reads ranges."""


def begin() -> None:
    """Free this process, and all that it starts from now on, from what it has inherited."""
    _open_standard_files()
    _restore_signals()
    _ = os.umask(UMASK)
    _raise_limits()
    wanted = environment(os.environ)
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted)
    sys.dont_write_bytecode = False
    time.tzset()
    _ = locale.setlocale(locale.LC_ALL, FIXED["LC_ALL"])


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a neutral process.

    Parameters
    ----------
    given
        Those that were inherited.
    """
    kept = {name: value for name, value in given.items() if not name.startswith(DROPPED)} | FIXED
    if any(given.get(name) or given.get(name.upper()) for name in PROXIES):
        before = given.get("no_proxy") or given.get("NO_PROXY") or ""
        named = [word for word in before.split(",") if word and word not in NEAR]
        # curl and Python read the one, Go the other first.
        kept |= dict.fromkeys(("no_proxy", "NO_PROXY"), ",".join((*named, *NEAR)))
    return kept


def _open_standard_files() -> None:
    """Open what is closed of standard input, output and error: the next file would be taken for one of them."""
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:  # noqa: PLR2004 the last of the three
        os.set_inheritable(opened, True)  # noqa: FBT003 the standard library's signature
    os.close(opened)


def _restore_signals() -> None:
    _ = signal.pthread_sigmask(signal.SIG_SETMASK, ())
    ignored = {one for one in signal.valid_signals() - LEFT_TO_PYTHON if signal.getsignal(one) is signal.SIG_IGN}
    before = {int(number) for number in os.environ.get(UNHEARD, "").split()}
    unheard = {one for one in OF_THE_CALLER if one in ignored or one in before}
    for one in ignored - unheard:
        _ = signal.signal(one, signal.SIG_DFL)
    for one in unheard:
        # A handler is not inherited by another program, as a signal that is ignored would be.
        _ = signal.signal(one, _go_on)
    if unheard:
        os.environ[UNHEARD] = " ".join(str(int(one)) for one in sorted(unheard))


def _go_on(_number: int, _frame: FrameType | None) -> None:
    """Do as asked by who started this: nothing."""


def _raise_limits() -> None:
    for one in LIMITS:
        _, hard = resource.getrlimit(one)
        resource.setrlimit(one, (hard, hard))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Not to the end: some programs close each file that they might have.
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
