"""Logins to login pods by SSH, as users make them: with a key, and the host key that they know."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.localkube.kubectl import wait_for
from hack.localkube.programs import debian
from slinky_operator.loginset.bodies.sshd_config import PORT
from tests.support.port_forward import port_forward
from tests.support.slurm_in_kubernetes import PATIENCE, SlurmInKubernetes

PODS = "--selector=app.kubernetes.io/component=login"


@dataclass(frozen=True, slots=True)
class Visitor:
    """A user with a key, and the login pods of a Cluster's entry `front`."""

    slurm: SlurmInKubernetes
    folder: Path
    user: str

    @property
    def loginset(self) -> str:
        """Name of the LoginSet."""
        return f"{self.slurm.name}-front"

    @property
    def deployment(self) -> str:
        """Name of the Deployment of its pods."""
        return f"{self.loginset}-login"

    @property
    def public_key(self) -> str:
        """The line for authorized_keys."""
        return (self.folder / "key.pub").read_text().strip()

    def ssh(self, port: int, *options: str) -> list[str]:
        """The command for a session with the pod behind a local port."""
        known = (f"UserKnownHostsFile={self.folder}/known", "HostKeyAlias=front", "BatchMode=yes", *options)
        words = [word for one in known for word in ("-o", one)]
        return ["ssh", "-F", "none", "-i", str(self.folder / "key"), *words, "-p", str(port), f"{self.user}@127.0.0.1"]

    def attempt(self, command: str, *options: str, checked: str = "yes") -> subprocess.CompletedProcess[str]:
        """Run a command in a session of its own; the host key has to be the known one."""
        place = self.slurm.kubectl, self.slurm.namespace, f"deployment/{self.deployment}"
        with port_forward(*place, PORT) as port:
            words = [*self.ssh(port, f"StrictHostKeyChecking={checked}"), *options, command]
            return subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    def say(self, command: str, *options: str, checked: str = "yes") -> str:
        """The same, which has to succeed; returns what it prints."""
        run = self.attempt(command, *options, checked=checked)
        if run.returncode:
            raise AssertionError(f"{command}: {run.stdout}{run.stderr}")
        return run.stdout

    def wait_ready(self) -> None:
        """Wait until the login pods are as the spec asks."""

        def ready() -> bool:
            found = self.slurm.get("loginset", self.loginset)
            seen: bool = found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"]
            return seen and self.slurm.condition("loginset", self.loginset, "Ready")["status"] == "True"

        wait_for("login pods", ready, PATIENCE)

    def pods(self) -> dict[str, dict[str, Any]]:
        """Login pods by uid, those that are being removed too."""
        return {str(one["metadata"]["uid"]): one for one in self.slurm.get("pods", PODS)["items"]}

    @contextmanager
    def session(self, name: str) -> Iterator[Path]:
        """Hold a session on a terminal, which starts a job before it ends; yields the file with what it shows."""
        shown = self.folder / name
        loop = f"echo begun; until [ -e /tmp/end-{name} ]; do sleep 0.5; done; srun hostname; echo over"
        (pod,) = (str(one["metadata"]["name"]) for one in self.pods().values())
        place = self.slurm.kubectl, self.slurm.namespace, f"pod/{pod}"
        with port_forward(*place, PORT) as port, shown.open("w") as out:
            words = [*self.ssh(port, "StrictHostKeyChecking=yes"), "-tt", loop]
            process = subprocess.Popen(words, stdout=out, stderr=out, stdin=subprocess.PIPE)
            try:
                wait_for(f"session {name}", lambda: "begun" in shown.read_text(), PATIENCE)
                yield shown
                assert "over" not in shown.read_text()
                self.slurm.kube("exec", pod, "--container=login", "--", "touch", f"/tmp/end-{name}")
                wait_for(f"the end of session {name}", lambda: "over" in shown.read_text(), PATIENCE)
                assert "compute-" in shown.read_text(), shown.read_text()
            finally:
                process.terminate()
                process.communicate()


def visitor(slurm: SlurmInKubernetes, folder: Path, user: str) -> Visitor:
    """Return somebody with a new key in a folder of their own."""
    debian.ensure({"ssh": "openssh-client"})
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")], check=True)
    return Visitor(slurm, folder, user)


def keys_of_users(slurm: SlurmInKubernetes, **keys: str) -> dict[str, Any]:
    """Return the Secret `people` with lines of authorized_keys by user."""
    metadata = {"name": "people", "namespace": slurm.namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": keys}
