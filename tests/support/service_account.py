"""Access to an API server as the chart's ServiceAccount, with the chart's rights and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from hack.localkube.kubectl import Kubectl

NAME = "slurm-operator"


def user_of(namespace: str) -> str:
    """The ServiceAccount's name among users."""
    return f"system:serviceaccount:{namespace}:{NAME}"


def kubeconfig_of(kubectl: Kubectl, kubeconfig: Path, namespace: str, file: Path) -> Path:
    """Write a kubeconfig with the ServiceAccount's token and nothing else.

    Parameters
    ----------
    kubeconfig
        That of an administrator, for the address.
    file
        Takes the new one.
    """
    config: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
    token = kubectl("create", "token", NAME, f"--namespace={namespace}").strip()
    config["users"][0]["user"] = {"token": token}
    file.write_text(yaml.safe_dump(config))
    return file
