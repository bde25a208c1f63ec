"""A registry on loopback: where there is no Docker, skaffold reads digest and settings of an image from a registry.

`ensure` starts one that ends with the skaffold that it was started for. Nodes do not pull from it: images are loaded.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from hack.developing.errors import DevelopingError
from hack.developing.tools import CRANE
from hack.localkube.programs import build
from hack.packaging.render import ROOT

PORT: Final = 5005
ADDRESS: Final = f"127.0.0.1:{PORT}"
_LOOK_AGAIN: Final = 1.0
_PATIENCE: Final = 30.0


def ensure() -> None:
    """Have a registry, for as long as the skaffold lives that this process was started by.

    Raises
    ------
    DevelopingError
        It does not begin to answer.
    """
    if _answers():
        return
    build.ensure(CRANE)
    subprocess.Popen(
        [sys.executable, "-m", "hack.developing.registry", str(_skaffold())],
        cwd=ROOT,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + _PATIENCE
    while not _answers():
        if time.monotonic() > deadline:
            raise DevelopingError(f"no registry answers at {ADDRESS}: is the port taken?")
        time.sleep(0.1)


def _answers() -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", PORT)) == 0


def _skaffold() -> int:
    """The nearest process above this one that is skaffold, else the parent."""
    process = os.getppid()
    while process > 1:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        if fields["Name"].strip() == "skaffold":
            return process
        process = int(fields["PPid"])
    return os.getppid()


def main(process: int) -> None:
    """Run a registry until a process has ended."""
    with tempfile.TemporaryDirectory(prefix="slurm-operator-registry-") as folder:
        command = [str(build.tool("crane")), "registry", "serve", f"--address={ADDRESS}", f"--disk={folder}"]
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        while server.poll() is None and Path(f"/proc/{process}").exists():
            time.sleep(_LOOK_AGAIN)
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main(int(sys.argv[1]))
