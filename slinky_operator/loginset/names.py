"""Names and labels of what belongs to a LoginSet."""

from __future__ import annotations

from typing import Final

from slinky_api import labels
from slinky_api.v1alpha1.loginset import LoginSet
from slinky_operator.slurm import naming

COMPONENT: Final = naming.COMPONENT_LOGIN
COMPONENT_TRIAL: Final = "login-trial"
"""Values of `app.kubernetes.io/component`."""

LOGIN: Final = "login"
SACKD: Final = "sackd"
KEY_PROOF: Final = naming.KEY_PROOF_CONTAINER
TRIAL: Final = "sshd"
PAM: Final = "pam"
"""Containers."""

SCRIPTS: Final = ("serve.sh", "drain.sh", "sackd.sh", "pam.sh")
MAKE_HOME: Final = "make-home.sh"
"""Key of the ConfigMap with the program that makes home folders."""


def workload(name: str) -> str:
    """Name of the Deployment of a LoginSet, of its Service and of its ConfigMap."""
    return f"{name}-login"


def has_address(loginset: LoginSet) -> bool:
    """Whether the name of its Service has one address, at which only sshd listens. Its pods have that host name then.

    slurmctld looks up the host of an srun when it signals or ends its step: for ten seconds if the name does not exist,
    in which it answers nobody. What it then sends must not reach the srun of another pod on the same port, as it could
    at the addresses of a Service that has none of its own.
    """
    fragment = loginset.spec.service
    spec = {} if fragment is None else fragment.spec
    return spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName"


def host_keys(name: str) -> str:
    """Name of the Secret with generated SSH host keys."""
    return f"{name}{naming.HOST_KEYS_SUFFIX}"


def trial(name: str, digest: str) -> str:
    """Name of the pod that tries a configuration of sshd."""
    return f"{name}-sshd-trial-{digest}"


def selector(loginset: LoginSet) -> dict[str, str]:
    """What login pods are selected by; it cannot be changed later."""
    return {labels.LABEL_APP_COMPONENT: COMPONENT, labels.LABEL_LOGINSET_NAME: loginset.name}


def labels_of(loginset: LoginSet) -> dict[str, str]:
    """Labels that say whose an object is."""
    return {labels.LABEL_LOGINSET_NAME: loginset.name, labels.LABEL_LOGINSET_UID: loginset.uid}
