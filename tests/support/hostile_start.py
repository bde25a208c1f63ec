"""Start a program as badly as one may be started: signals, mask, priority, limits, files and variables of others.

What makes it neutral again is `hack.machine.neutral_start`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from hack.machine.neutral_start import ROOT

VARIABLES: Final = {
    "TZ": "Asia/Kathmandu",
    "LANG": "tr_TR.UTF-8",
    "KUBECONFIG": "/nowhere/kubeconfig",
    "KUBERNETES_SERVICE_HOST": "192.0.2.1",
    "KUBERNETES_SERVICE_PORT": "443",
    "HELM_NAMESPACE": "other",
    "SLURM_CONF": "/nowhere/slurm.conf",
    "SLURM_JWT": "nonsense",
    "SLURMRESTD_URL": "http://192.0.2.1",
    "SBATCH_PARTITION": "none",
    "http_proxy": "http://127.0.0.1:1",
    "HTTPS_PROXY": "http://127.0.0.1:1",
    "PYTHONPATH": "/nowhere",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONWARNINGS": "ignore",
    "BASH_ENV": "/nowhere/rc",
    "POSIXLY_CORRECT": "1",
    "COLUMNS": "20",
    "FORCE_COLOR": "1",
    "MAKEFLAGS": "n",
    "GIT_DIR": "/nowhere/git",
    "NOTIFY_SOCKET": "/nowhere/notify",
}
"""Each of them changes what some program does."""

_SPOIL: Final = """
import json, os, resource, signal, sys
variables, nice, *command = json.loads(sys.argv[1])
for name in ("HUP", "INT", "QUIT", "PIPE", "CHLD", "ALRM", "USR1"):
    signal.signal(signal.Signals["SIG" + name], signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR2])
os.umask(0o077)
os.nice(nice)
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
os.close(0)
os.execvpe(command[0], command, {**os.environ, **variables})
"""


def run(command: Sequence[str], variables: Mapping[str, str], *, nice: int = 10) -> subprocess.CompletedProcess[str]:
    """Run a command from the top of the tree, and return what it printed on both of its outputs.

    Parameters
    ----------
    command
        Program and arguments.
    variables
        Beside those that each such start has.
    nice
        How far it gives way to others; on a busy machine it may hardly run at all.
    """
    orders = json.dumps([{**VARIABLES, **variables}, nice, *command])
    # A pytest that is started begins its own run, and is no worker of this one.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-c", _SPOIL, orders],
        cwd=ROOT,
        env=kept,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
