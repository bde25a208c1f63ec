"""`kubectl slurm` as an ordinary editor of a namespace: the role `edit` of Kubernetes, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hack.localkube.kubectl import Kubectl
from hack.localkube.programs import build
from tests.support import served

ACCOUNT = "editor"


@dataclass(frozen=True, slots=True)
class Editor:
    """A ServiceAccount that may edit some namespaces, and its kubeconfig.

    Attributes
    ----------
    namespace
        Of the account, and of what the plugin is asked about.
    """

    namespace: str
    kubeconfig: Path

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run the plugin, and return what it prints; another exit code than this one fails."""
        environment = {**os.environ, "KUBECTL": str(build.tool("kubectl")), "PYTHONPATH": os.pathsep.join(sys.path)}
        environment.pop("SLURM_JWT", None)
        where = (f"--namespace={self.namespace}", f"--kubeconfig={self.kubeconfig}")
        command = [sys.executable, "-m", "kubectl_slurm", *arguments, *where]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


def editor(kubectl: Kubectl, folder: Path, namespace: str, *others: str) -> Editor:
    """Make an editor of namespaces that exist; the account is in the first one."""
    kubectl("create", "serviceaccount", ACCOUNT, f"--namespace={namespace}")
    for one in (namespace, *others):
        subject = f"--serviceaccount={namespace}:{ACCOUNT}"
        kubectl("create", "rolebinding", ACCOUNT, "--clusterrole=edit", subject, f"--namespace={one}")
    for verb, resource in (("create", "pods"), ("create", "tokens.slinky.slurm.net"), ("get", "services/proxy")):
        served.wait_until_allowed(kubectl, f"system:serviceaccount:{namespace}:{ACCOUNT}", verb, resource, namespace)
    config: dict[str, Any] = yaml.safe_load(kubectl.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": kubectl("create", "token", ACCOUNT, f"--namespace={namespace}").strip()}
    file = folder / "editor.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    file.chmod(0o600)
    return Editor(namespace, file)
