"""SlurmJobs in a namespace: created, looked at and waited for as a person would, with kubectl."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hack.localkube.kubectl import Kubectl, wait_for
from tests.support.slurm_in_kubernetes import PATIENCE, SlurmInKubernetes

OUTPUT = "/tmp/%x.out"
"""Where jobs write that name no other place, on the node."""


@dataclass(frozen=True)
class JobNamespace:
    """A namespace with SlurmJobs.

    Attributes
    ----------
    slurm
        The Slurm, and the name and namespace of its Cluster.
    namespace
        Its name.
    """

    slurm: SlurmInKubernetes
    namespace: str

    @property
    def kubectl(self) -> Kubectl:
        """Access to Kubernetes."""
        return self.slurm.kubectl

    def kube(self, *arguments: str, timeout: float = 120.0) -> str:
        """Run kubectl in the namespace."""
        return self.kubectl("--namespace", self.namespace, *arguments, timeout=timeout)

    def submit(self, name: str, script: str, **spec: Any) -> None:
        """Create a SlurmJob."""
        self.submit_all({name: script}, **spec)

    def submit_all(self, scripts: dict[str, str], **spec: Any) -> None:
        """Create SlurmJobs from scripts by name; a field that is None is left out."""
        about = {"clusterName": self.slurm.name, "clusterNamespace": self.slurm.namespace, "output": OUTPUT}
        self.kubectl.apply(
            [
                {
                    "apiVersion": "slinky.slurm.net/v1alpha1",
                    "kind": "SlurmJob",
                    "metadata": {"name": name, "namespace": self.namespace},
                    "spec": {
                        key: value for key, value in {**about, "script": script, **spec}.items() if value is not None
                    },
                }
                for name, script in scripts.items()
            ]
        )

    def status(self, name: str) -> dict[str, Any]:
        """Return the status of a SlurmJob."""
        found: dict[str, Any] = self.kubectl.get("--namespace", self.namespace, "slurmjob", name).get("status") or {}
        return found

    def wait(self, name: str, **wanted: Any) -> dict[str, Any]:
        """Wait until the status has these values, and return it."""

        def shown() -> bool:
            status = self.status(name)
            return all(status.get(key) == value for key, value in wanted.items())

        wait_for(f"SlurmJob {name} with {wanted}", shown, PATIENCE)
        return self.status(name)

    def condition(self, name: str, kind: str) -> tuple[str, str, str]:
        """Return status, reason and message of a condition; empty texts if there is none."""
        found = [one for one in self.status(name).get("conditions") or () if one["type"] == kind]
        return (found[0]["status"], found[0]["reason"], found[0]["message"]) if found else ("", "", "")
