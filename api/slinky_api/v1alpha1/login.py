"""Login pods: what a set of them is made of, in a kind of its own (`loginset`) and in `Cluster.spec.login`."""

from typing import Annotated, Final

from pydantic import Field

from slinky_api.v1alpha1.common import Component, SecretRef, ServiceFragment
from slinky_api.v1alpha1.fields import ConfText, Duration, ShortName
from slinky_api.v1alpha1.rules import Keywords, cel

__all__ = ["LONGEST_GRACE", "Login", "LoginPods"]

LONGEST_GRACE: Final = "24h"
"""Longest grace time of sessions: for so long a Node cannot be drained."""

Grace = Annotated[
    Duration,
    Keywords(
        {
            "x-kubernetes-validations": [
                cel(f"duration(self) <= duration('{LONGEST_GRACE}')", f"must be at most {LONGEST_GRACE}"),
            ]
        }
    ),
]
"""How long sessions may go on in a pod that is being removed."""


class LoginPods(Component):
    """What login pods are made of."""

    service: ServiceFragment | None = None
    """The Service in front of the SSH servers, for example spec with type LoadBalancer. Default: a ClusterIP on port
    22."""
    root_ssh_authorized_keys: Annotated[str, Field(max_length=65536)] = ""
    """Lines for root's authorized_keys. Without it, root cannot log in by SSH."""
    authorized_keys_ref: SecretRef | None = None
    """Secret with SSH keys of users: each key of the Secret is the name of a user, its value has the lines of
    authorized_keys. They are accepted beside those in a user's home."""
    extra_sshd_config: ConfText = ""
    """Lines for sshd_config, for example PasswordAuthentication yes, and Match blocks at the end. sshd checks them
    before a running pod reads them."""
    ssh_host_keys_ref: SecretRef | None = None
    """Secret with the SSH host keys (ssh_host_ed25519_key, ssh_host_rsa_key, ssh_host_ecdsa_key). Default: generated
    once, and kept."""
    session_grace_period: Grace | None = None
    """How long sessions may go on in a pod that is being removed, by a scale-in or a new image, for example 4h. Users
    get a note on their terminals; a pod without sessions goes at once. At most 24h. Default: 10m."""


class Login(LoginPods):
    """A set of login pods of a Cluster."""

    name: ShortName
    """Name of this set of login pods. Its LoginSet is named <cluster>-<name>."""
    replicas: Annotated[int, Field(ge=0, le=1000), Keywords({"format": "int32"})] | None = None
    """Number of pods. Default: what its LoginSet has, 1 at first: kubectl scale and autoscalers change it there."""
