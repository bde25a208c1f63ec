"""Port-forwards to the slurmrestd of Clusters, each begun again when it ends.

kubectl ends a port-forward with the pod that it has chosen, and fails where there is none yet.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from typing import Final, Self

from hack.developing.cluster import SlurmCluster, program
from hack.machine import ports

SLURMRESTD: Final = 6820
PAUSE: Final = 1.0
"""Seconds before a port-forward that has ended is begun again."""


class Forwards:
    """Port-forwards by Cluster; use it as a context manager."""

    def __init__(self) -> None:
        self.ports: dict[SlurmCluster, int] = {}
        self._ending = threading.Event()
        self._processes: dict[SlurmCluster, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        with self._lock:
            for process in self._processes.values():
                process.terminate()

    def add(self, cluster: SlurmCluster, port: int | None = None) -> None:
        """Forward a free port of this machine, or a given one, to slurmrestd of a Cluster."""
        self.ports[cluster] = ports.hold(1)[0] if port is None else port
        threading.Thread(target=self._keep, args=(cluster,), daemon=True, name=cluster.service).start()

    def flags(self) -> Sequence[str]:
        """The operator's flag for them; none if there are none."""
        pairs = [f"{one.namespace}/{one.name}=http://127.0.0.1:{port}" for one, port in sorted(self.ports.items())]
        return [f"--slurmrestd-override={','.join(pairs)}"] if pairs else []

    def _keep(self, cluster: SlurmCluster) -> None:
        command = [
            program("kubectl"),
            f"--namespace={cluster.namespace}",
            "port-forward",
            "--address=127.0.0.1",
            f"service/{cluster.service}",
            f"{self.ports[cluster]}:{SLURMRESTD}",
        ]
        while not self._ending.is_set():
            with self._lock:
                if self._ending.is_set():
                    return
                process = self._processes[cluster] = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            process.wait()
            self._ending.wait(PAUSE)
