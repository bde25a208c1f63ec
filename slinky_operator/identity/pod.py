"""What a daemon's pod needs to resolve the Cluster's users. Pure.

passwd and group are mounted where libnss-extrausers of the images reads them; the kubelet refreshes them in running
pods. SSSD runs beside the daemon, as root without any capability (Debian builds it for no other user), and answers
through sockets in a shared folder. The daemon itself stays as it is: it only gets mounts.

SSSD starts before the daemon, so that the daemon finds its users from the first look on; it waits neither for a
directory nor for a configuration. Volumes that may be missing are optional for the same reason: no source of users may
keep slurmctld from starting.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.cluster.parts import Identity, Sssd
from slinky_operator.identity import homes, users
from slinky_operator.slurm import naming

SSSD: Final = "sssd"
"""Name of the sidecar."""

VOLUMES: Final = frozenset({"identity-users", "identity-sockets", "identity-cache", "identity-conf", "identity-run"})
"""Names of the volumes; preflights leave them out."""

_USERS, _SOCKETS, _CACHE, _CONF, _RUN = (
    "identity-users",
    "identity-sockets",
    "identity-cache",
    "identity-conf",
    "identity-run",
)
_USERS_FOLDER: Final = "/var/lib/extrausers"
_CONF_FOLDER: Final = "/config"
_SSS_FOLDER: Final = "/var/lib/sss"
_SOCKETS_FOLDER: Final = "/var/lib/sss/pipes"
OFFLINE: Final = f"{_SOCKETS_FOLDER}/offline"
"""The file in which the sidecar keeps which domains SSSD cannot reach."""

_TRIED: Final = "/run/tried"
"""Written by the sidecar's entrypoint as soon as somebody may ask."""

_SMALL: Final[Mapping[str, Any]] = {"requests": {"cpu": "10m", "memory": "96Mi"}}


@dataclass(frozen=True, slots=True)
class SssdImage:
    """The sidecar's image if a Cluster names none."""

    name: str
    pull_policy: str = ""


def attached(
    spec: Mapping[str, Any], cluster: Cluster, containers: Collection[str], image: SssdImage
) -> dict[str, Any]:
    """Add to a pod's spec what some of its containers need to resolve users; the same spec without a source.

    Parameters
    ----------
    spec
        Generated, with `containers` and `volumes`; it is not changed.
    containers
        Names of those that resolve users.
    image
        The operator's setting.
    """
    identity = cluster.spec.identity
    if identity is None or (identity.sssd is None and identity.passwd is None):
        return dict(spec)
    volumes = [_users_volume(cluster, identity)]
    mounts = [{"name": _USERS, "mountPath": _USERS_FOLDER, "readOnly": True}]
    more: dict[str, Any] = {}
    if identity.sssd is not None:
        volumes += _sssd_volumes(identity.sssd)
        mounts.append(sockets_mount())
        more["initContainers"] = [_sidecar(identity.sssd, image), *(spec.get("initContainers") or ())]
    return {
        **spec,
        **more,
        "containers": [
            {**one, "volumeMounts": [*(one.get("volumeMounts") or ()), *mounts]} if one["name"] in containers else one
            for one in spec["containers"]
        ],
        "volumes": [*(spec.get("volumes") or ()), *volumes],
    }


def has_sssd(cluster: Cluster) -> bool:
    """Whether the users are in a directory."""
    return cluster.spec.identity is not None and cluster.spec.identity.sssd is not None


def sockets_mount() -> dict[str, Any]:
    """The mount of SSSD's sockets, and of `OFFLINE`, in another container of a pod with the sidecar."""
    return {"name": _SOCKETS, "mountPath": _SOCKETS_FOLDER, "readOnly": True}


def of_nodes(cluster: Cluster | None) -> dict[str, Any]:
    """The part of a Cluster's identity that slurmd pods are created from; empty if there is none.

    The name of the ConfigMap with passwd and group is not in it: pods mount the operator's copy.
    """
    identity = None if cluster is None else cluster.spec.identity
    if identity is None:
        return {}
    found = {}
    if identity.passwd is not None:
        found["passwd"] = {"configMapRef": {"name": _USERS}}
    for name, part in (("sssd", identity.sssd), ("homes", identity.homes)):
        if part is not None:
            found[name] = part.model_dump(mode="json", by_alias=True, exclude_unset=True)
    # Homes are made by a prolog, which reaches running nodes.
    found.get("homes", {}).pop("create", None)
    return found


def with_nodes(cluster: Cluster, recorded: Mapping[str, Any]) -> Cluster:
    """The Cluster with the identity that slurmd pods were created from; see `of_nodes`."""
    identity = Identity.model_validate(recorded) if recorded else None
    return cluster.model_copy(update={"spec": cluster.spec.model_copy(update={"identity": identity})})


def on_node(spec: Mapping[str, Any], cluster: Cluster, container: str, image: SssdImage) -> dict[str, Any]:
    """Add to the spec of a pod in which users work what they need: names, and their home folders."""
    return homes.attached(attached(spec, cluster, (container,), image), cluster, (container,))


def _users_volume(cluster: Cluster, identity: Identity) -> dict[str, Any]:
    """Users from files; with SSSD an empty folder over the image's, which has a user whose number a site may use."""
    if identity.passwd is None:
        return {"name": _USERS, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
    source = {"name": naming.users(cluster.name), "defaultMode": 0o444, "optional": True}
    return {"name": _USERS, "configMap": source}


def _sssd_volumes(sssd: Sssd) -> list[dict[str, Any]]:
    secret = {"secretName": sssd.conf_ref.name, "defaultMode": 0o400, "optional": True}
    return [
        {"name": _CONF, "secret": secret},
        {"name": _SOCKETS, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        # What it knows outlives its container, so that users stay while the directory is away.
        {"name": _CACHE, "emptyDir": {}},
        {"name": _RUN, "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
    ]


def _sidecar(sssd: Sssd, image: SssdImage) -> dict[str, Any]:
    chosen: dict[str, Any] = {"image": sssd.image or image.name}
    if sssd.image is None and image.pull_policy:
        chosen["imagePullPolicy"] = image.pull_policy
    return {
        "name": SSSD,
        **chosen,
        # An init container that is restarted is a sidecar: it runs before the daemon, and ends after it.
        "restartPolicy": "Always",
        "env": [{"name": "SSSD_CONF", "value": f"{_CONF_FOLDER}/{users.conf_key(sssd)}"}],
        "startupProbe": {
            "exec": {"command": ["test", "-e", _TRIED]},
            "periodSeconds": 1,
            "timeoutSeconds": 5,
            "failureThreshold": 300,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": dict(_SMALL) if sssd.resources is None else sssd.resources.to_dict(),
        "securityContext": {
            "runAsUser": 0,
            "runAsGroup": 0,
            "runAsNonRoot": False,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": _CONF, "mountPath": _CONF_FOLDER, "readOnly": True},
            {"name": _CACHE, "mountPath": _SSS_FOLDER},
            {"name": _SOCKETS, "mountPath": _SOCKETS_FOLDER},
            {"name": _RUN, "mountPath": "/run"},
            {"name": _RUN, "mountPath": "/etc/sssd", "subPath": "conf"},
            {"name": _RUN, "mountPath": "/var/log/sssd", "subPath": "log"},
        ],
    }
