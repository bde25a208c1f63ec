"""Small disks for the claims of slurmctld and MariaDB, that can be filled and freed from the machine.

Each is a file system of its own, mounted before the machines of the local Kubernetes start, so that all Nodes see it;
a volume that is bound to the claim beforehand leads there. So each claim is full alone, and the machine never is.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hack.localkube.paths import state_root
from hack.localkube.servers.addons import STORAGE_CLASS
from slinky_operator.pod_programs.agent.volumes import room

STATE, DATABASE = "state", "data"
"""Names of the volumes in pods of slurmctld and MariaDB."""

SIZES: Final[Mapping[str, int]] = {STATE: 64, DATABASE: 512}
"""MiB of each."""

CLAIMS: Final[Mapping[str, str]] = {STATE: "{cluster}-controller-0", DATABASE: "{cluster}-database-0"}
"""Pod of each, by the name of the Cluster."""

BALLAST: Final = "ballast"
MIB: Final = 2**20
PAGE: Final = 4096


@dataclass(frozen=True, slots=True)
class Disks:
    """The disks of one site.

    Attributes
    ----------
    name
        Of the local Kubernetes.
    """

    name: str

    @property
    def folder(self) -> Path:
        """Where they are mounted: not in the folder of the local Kubernetes, which is removed whole."""
        return state_root().parent / "campaign" / self.name

    def mount(self) -> None:
        """Mount all; those that are there stay as they are."""
        for disk, size in SIZES.items():
            path = self.folder / disk
            path.mkdir(parents=True, exist_ok=True)
            if not path.is_mount():
                subprocess.run(
                    ["mount", "-t", "tmpfs", "-o", f"size={size}m,mode=1777", "campaign", str(path)], check=True
                )
            # What the pod sees is a folder in it: the ballast is not the pod's.
            (path / "volume").mkdir(exist_ok=True)
            (path / "volume").chmod(0o777)

    def unmount(self) -> None:
        """Take them away, with all that is on them."""
        for disk in SIZES:
            if (self.folder / disk).is_mount():
                subprocess.run(["umount", "--lazy", str(self.folder / disk)], check=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        with suppress(OSError):  # Another site has its own there, or there was none.
            self.folder.parent.rmdir()

    def objects(self, namespace: str, cluster: str) -> Iterator[dict[str, Any]]:
        """Volumes that are bound to the claims of a Cluster before those are made."""
        for disk, pod in CLAIMS.items():
            claim = {"namespace": namespace, "name": f"{disk}-{pod.format(cluster=cluster)}"}
            yield {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": f"campaign-{disk}"},
                "spec": {
                    "capacity": {"storage": "1Ti"},
                    "accessModes": ["ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "storageClassName": STORAGE_CLASS,
                    "claimRef": claim,
                    "hostPath": {"path": str(self.folder / disk / "volume"), "type": "Directory"},
                },
            }

    def fill(self, disk: str) -> str:
        """Take all room of a disk; how much it was."""
        path = self.folder / disk / BALLAST
        free = room(path.parent)["free"]
        try:
            # What is little is written when the file is closed.
            with path.open("ab") as file:
                file.write(b"\0" * free)
        except OSError:
            return f"{free // MIB} MiB and less"
        return f"{free // MIB} MiB"

    def free_room(self, disk: str) -> int:
        """Bytes that are left on a disk, less than a page of them apart."""
        left = room(self.folder / disk)["free"]
        return left if left >= PAGE else 0

    def free(self, disk: str) -> None:
        """Give it back."""
        (self.folder / disk / BALLAST).unlink(missing_ok=True)
