"""LoginSets: what the entries of `spec.login` become. Pure.

A LoginSet has its own controller; this one creates it, keeps what its entry names, and deletes it with the entry or the
Cluster. The number of pods is left alone unless the entry names one: autoscalers write it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.fields import format_duration
from slinky_api.v1alpha1.login import Login
from slinky_operator.cluster.daemons import metadata
from slinky_operator.kube.resources import LOGINSETS
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming


def login_sets(cluster: Cluster) -> Iterator[Child]:
    """The LoginSets of a Cluster; none for one whose Slurm runs elsewhere."""
    if cluster.spec.external:
        return
    for login in cluster.spec.login:
        about = metadata(cluster, naming.login_set(cluster.name, login.name), naming.COMPONENT_LOGIN)
        yield Child(LOGINSETS, {"metadata": about, "spec": {"clusterName": cluster.name, **_spec(login)}})


def _spec(login: Login) -> dict[str, Any]:
    grace = login.session_grace_period
    parts = {
        "replicas": login.replicas,
        "image": login.image,
        "resources": None if login.resources is None else login.resources.to_dict(),
        "template": login.template,
        "service": None if login.service is None else login.service.to_dict(),
        "rootSshAuthorizedKeys": login.root_ssh_authorized_keys or None,
        "authorizedKeysRef": None if login.authorized_keys_ref is None else login.authorized_keys_ref.to_dict(),
        "extraSshdConfig": login.extra_sshd_config or None,
        "sshHostKeysRef": None if login.ssh_host_keys_ref is None else login.ssh_host_keys_ref.to_dict(),
        "sessionGracePeriod": None if grace is None else format_duration(grace),
    }
    return {field: value for field, value in parts.items() if value is not None}
