"""Where things lie: built programs in the user's cache, running clusters in the user's state folder."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def cache_root() -> Path:
    """Return the cache folder: everything in it may be deleted and is then rebuilt."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "slurm-operator"


def state_root() -> Path:
    """Return the folder that holds one folder per running cluster."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "slurm-operator" / "localkube"


@dataclass(frozen=True, slots=True)
class ClusterPaths:
    """The files of one cluster, all below one folder that `down` removes."""

    name: str

    @property
    def root(self) -> Path:
        """The cluster's folder."""
        return state_root() / self.name

    @property
    def mark(self) -> str:
        """Eight characters that no other cluster on this machine has, another user's of the same name included."""
        return hashlib.sha256(str(self.root).encode()).hexdigest()[:8]

    @property
    def cgroup(self) -> str:
        """The cgroup that holds those of the Nodes."""
        return f"localkube/{self.name}-{self.mark}"

    @property
    def pki(self) -> Path:
        """Certificates and keys, mode 0700."""
        return self.root / "pki"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.root / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        """Who did what, one JSON object a line."""
        return self.root / "audit.log"

    @property
    def record(self) -> Path:
        """What `up` changed on the host and must be put back, written before the change."""
        return self.root / "record.json"

    @property
    def volumes(self) -> Path:
        """What the default StorageClass provisions, shared by all Nodes as they share the machine's disk."""
        return self.root / "volumes"

    def machine(self, machine: str) -> Path:
        """Return the folder of one machine: its disk, its logs, its control socket."""
        return self.root / machine
