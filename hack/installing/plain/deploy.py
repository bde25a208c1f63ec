"""Apply the plain manifests and run things in them."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.localkube.kubectl import Kubectl, wait_for

MANIFESTS = Path(__file__).parent
NODES = ("slurmd-0", "slurmd-1", "slurmd-2")


@dataclass(frozen=True, slots=True)
class PlainSlurm:
    """slurmctld, slurmrestd and three slurmd pods of one Slurm version in a namespace of their own.

    Attributes
    ----------
    kubectl
        Access to the cluster.
    slurm
        Version as in the image tags, ``26.05`` for example.
    """

    kubectl: Kubectl
    slurm: str

    @property
    def namespace(self) -> str:
        """The namespace, one per version, so that both run side by side."""
        return f"plain-slurm-{self.slurm.replace('.', '-')}"

    def apply(self) -> None:
        """Create everything; what is there stays, keys included."""
        self.kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}])
        if not self.kubectl("get", "secret", "slurm-keys", "-n", self.namespace, "--ignore-not-found", "-o", "name"):
            keys = {"slurm.key": secrets.token_bytes(1024), "jwt.key": secrets.token_bytes(32)}
            secret = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "slurm-keys", "namespace": self.namespace},
                "data": {name: base64.b64encode(value).decode() for name, value in keys.items()},
            }
            self.kubectl.apply([secret])
        self.kubectl("apply", "--namespace", self.namespace, "--kustomize", str(MANIFESTS / f"slurm-{self.slurm}"))

    def wait(self, timeout: float = 240.0) -> None:
        """Wait until all three nodes are idle and slurmrestd is ready."""
        wait_for("three idle Slurm nodes", lambda: self.states() == dict.fromkeys(NODES, "idle"), timeout)
        waiting = ("rollout", "status", "deployment/slurmrestd", f"--timeout={timeout:.0f}s")
        self.kubectl("-n", self.namespace, *waiting, timeout=timeout + 10)

    def states(self) -> dict[str, str]:
        """Return the state of each Slurm node, as ``sinfo`` calls it."""
        lines = self.exec("slurmctld-0", "sinfo", "--noheader", "--Node", "--format=%N %T").splitlines()
        return dict(line.split() for line in lines)

    def exec(self, pod: str, *argv: str, timeout: float = 120.0) -> str:
        """Run a program in a pod and return what it printed."""
        return self.kubectl("exec", "-n", self.namespace, pod, "--", *argv, timeout=timeout)

    def run(self, *argv: str, timeout: float = 120.0) -> str:
        """Run a Slurm command in the pod of a node, where users' commands find key and configuration."""
        return self.exec("slurmd-0", "env", "SLURM_CONF=/run/slurm/conf/slurm.conf", *argv, timeout=timeout)

    def pods(self) -> dict[str, dict[str, Any]]:
        """Return all pods by name."""
        listed = self.kubectl.get("pods", "--namespace", self.namespace)["items"]
        return {pod["metadata"]["name"]: pod for pod in listed}

    def delete(self) -> None:
        """Delete the namespace and wait until it is gone."""
        self.kubectl("delete", "namespace", self.namespace, "--ignore-not-found", "--wait", timeout=480)
