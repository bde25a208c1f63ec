"""The objects of a LoginSet: Deployment, Service, PodDisruptionBudget, ConfigMap and Secret. Pure.

The LoginSet owns them: they go with it, and its pods with the grace time of their sessions.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.loginset import LoginSet
from slinky_operator.identity import pod as identity
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS, DEPLOYMENTS, LOGINSETS, PODDISRUPTIONBUDGETS, SERVICES
from slinky_operator.loginset import names
from slinky_operator.loginset.bodies.slurm_access import Slurm
from slinky_operator.loginset.bodies.sshd_config import PORT
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.reconcile.writes.parts import owner_reference
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import home_folders
from slinky_operator.slurm.releases import is_newer_patch, is_within

ANNOTATION_IMAGE_FROM: Final = labels.LOGINSET_PREFIX + "image-from"
"""On the Deployment: `default` if the operator's settings have named the image, else `spec`."""

_OF_A_PORT: Final[Mapping[str, type]] = {"port": int, "nodePort": int, "appProtocol": str}
"""What is taken of the first port of a user's Service, and of which type it is."""

ANNOTATION_INPUTS: Final = labels.LOGINSET_PREFIX + "inputs"
"""On the Deployment: digest of what its pods were made from. While it is the same, they stay: a new version of the
operator that makes pods differently ends no session."""

_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+)?([-_+].*)?", re.ASCII)


def metadata(loginset: LoginSet, name: str, annotations: Mapping[str, str] | None = None) -> Object:
    """Name, labels and owner of an object."""
    body: Object = {
        "name": name,
        "namespace": loginset.namespace,
        "labels": {
            labels.LABEL_APP_NAME: "slurm",
            labels.LABEL_APP_PART_OF: "slurm",
            labels.LABEL_APP_COMPONENT: names.COMPONENT,
            labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY,
            **names.labels_of(loginset),
        },
        "ownerReferences": [owner_reference(LOGINSETS, loginset)],
    }
    if annotations:
        body["annotations"] = dict(annotations)
    return body


def image_of(loginset: LoginSet, cluster: Cluster, live: Object | None, default: str, policy: str) -> dict[str, str]:
    """Image and pull policy of login pods.

    A set without an image has at first the default, in the version that the Cluster's slurmds have, and keeps it, but
    for newer patch releases that slurmctld runs: Slurm's commands must not be newer.
    """
    if loginset.spec.image is not None:
        return {"image": loginset.spec.image}
    about = (live or {}).get("metadata") or {}
    tag = (cluster.status.slurmd_image or "").rpartition(":")[2]
    place, colon, own = default.rpartition(":")
    if colon and _VERSION.fullmatch(tag) and _VERSION.fullmatch(own):
        default = f"{place}:{tag}"
    if live is not None and (about.get("annotations") or {}).get(ANNOTATION_IMAGE_FROM) == "default":
        containers = live["spec"]["template"]["spec"].get("containers") or ()
        runs = next((container["image"] for container in containers if container["name"] == names.LOGIN), default)
        if not (is_newer_patch(default, runs) and is_within(default, cluster.status.slurm_version or "")):
            default = runs
    return {"image": default, **({"imagePullPolicy": policy} if policy else {})}


def inputs(loginset: LoginSet, cluster: Cluster, slurm: Slurm, image: Mapping[str, str]) -> str:
    """Digest of everything that pods depend on."""
    named = naming.slurm_key(cluster) or slurm.key
    # Whose key set the operator has accepted is nothing to pods, which mount the accepted one.
    is_set = naming.SLURM_JWKS in {named.file, slurm.key.file} and not cluster.spec.external
    return _digest(loginset, cluster, slurm, image, slurm.key if is_set else named)


def inputs_before(loginset: LoginSet, cluster: Cluster, slurm: Slurm, image: Mapping[str, str]) -> str:
    """The same of earlier operators, whose pods may mount the user's own Secret: another one replaces them."""
    named = naming.slurm_key(cluster) or slurm.key
    return _digest(loginset, cluster, slurm, image, named if named.file == slurm.key.file else slurm.key)


def _digest(loginset: LoginSet, cluster: Cluster, slurm: Slurm, image: Mapping[str, str], key: naming.KeySource) -> str:
    spec = loginset.spec
    parts = [
        dict(image),
        slurm.server,
        f"{key.secret}/{key.key}",
        identity.of_nodes(cluster),
        spec.template,
        None if spec.resources is None else spec.resources.to_dict(),
        None if spec.authorized_keys_ref is None else spec.authorized_keys_ref.name,
        None if spec.ssh_host_keys_ref is None else spec.ssh_host_keys_ref.name,
        None if spec.session_grace_period is None else spec.session_grace_period.total_seconds(),
    ]
    homes = None if cluster.spec.identity is None else cluster.spec.identity.homes
    if homes is not None and homes.create is not None:
        parts.append(homes.create)
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def deployment(loginset: LoginSet, template: Mapping[str, Any], notes: Mapping[str, str]) -> Child:
    """The Deployment: a new pod is ready before an old one goes.

    Parameters
    ----------
    template
        Of its pods.
    notes
        Its annotations.
    """
    body = {
        "metadata": metadata(loginset, names.workload(loginset.name), notes),
        "spec": {
            "replicas": loginset.spec.replicas,
            "revisionHistoryLimit": 2,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "selector": {"matchLabels": names.selector(loginset)},
            "template": template,
        },
    }
    return Child(DEPLOYMENTS, body)


def service(loginset: LoginSet) -> Child:
    """The Service, with the user's fields except selector and ports; of their first port some fields are taken over."""
    body = metadata(loginset, names.workload(loginset.name))
    port: dict[str, Any] = {"name": "ssh", "port": 22, "targetPort": PORT, "protocol": "TCP"}
    spec: dict[str, Any] = {}
    fragment = loginset.spec.service
    if fragment is not None:
        body["labels"] = {**fragment.labels, **body["labels"]}
        if fragment.annotations:
            body["annotations"] = dict(fragment.annotations)
        spec = dict(fragment.spec)
        given = spec.get("ports")
        first = given[0] if isinstance(given, list) and given and isinstance(given[0], dict) else {}
        port |= {field: first[field] for field, kind in _OF_A_PORT.items() if isinstance(first.get(field), kind)}
    return Child(SERVICES, {"metadata": body, "spec": {**spec, "selector": names.selector(loginset), "ports": [port]}})


def budget(loginset: LoginSet) -> Child:
    """The PodDisruptionBudget of several login pods: they are evicted one at a time, each after its sessions.

    A single pod has none: it could only forbid to drain its Node. An eviction tells its users and waits for them.
    """
    spec = {
        "maxUnavailable": 1,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": names.selector(loginset)},
    }
    return Child(PODDISRUPTIONBUDGETS, {"metadata": metadata(loginset, names.workload(loginset.name)), "spec": spec})


def config_map(loginset: LoginSet, text: str, notes: Mapping[str, str], homes: str) -> Child:
    """The ConfigMap: what sshd reads, and the scripts.

    Parameters
    ----------
    text
        sshd_config.
    notes
        Its annotations.
    homes
        Folder in which home folders are made; empty if none are.
    """
    data = {
        "sshd_config": text,
        "root_authorized_keys": loginset.spec.root_ssh_authorized_keys,
        **{name: _script(name) for name in names.SCRIPTS},
        # Always there, since pods that were made while homes were created mount it: without a folder it does nothing.
        names.MAKE_HOME: home_folders.program(homes),
    }
    return Child(CONFIGMAPS, {"metadata": metadata(loginset, names.workload(loginset.name), notes), "data": data})


@cache
def _script(name: str) -> str:
    return resources.files("slinky_operator.loginset").joinpath("scripts", name).read_text(encoding="utf-8")
