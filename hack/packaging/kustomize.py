"""The kustomize base of the operator: what the chart renders with its own values, in files.

Namespace and names are those of a plain install. Labels that only helm understands are left out, so that helm does not
take the objects for its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from hack.packaging.render import OPERATOR_NAMESPACE, render

HEADER = "# Generated from helm/slurm-operator by 'python -m hack.packaging write'. Do not edit.\n"

FOLDERS = {
    "ServiceAccount": "rbac",
    "ClusterRole": "rbac",
    "ClusterRoleBinding": "rbac",
    "Role": "rbac",
    "RoleBinding": "rbac",
    "FlowSchema": "rbac",
    "Service": "manager",
    "Deployment": "manager",
    "NetworkPolicy": "manager",
}
"""Where objects of a kind go; a kind that is not named here needs a decision."""

HELM_LABELS = ("helm.sh/chart", "app.kubernetes.io/managed-by")

NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {
        "name": OPERATOR_NAMESPACE,
        "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
    },
}


def files() -> dict[str, str]:
    """Content by path from the root of the repository."""
    objects: dict[str, list[dict[str, Any]]] = {}
    for obj in render():
        labels = obj["metadata"]["labels"]
        for label in HELM_LABELS:
            labels.pop(label)
        objects.setdefault(f"{FOLDERS[obj['kind']]}/{_file_name(obj['kind'])}", []).append(obj)
    written = {f"config/{path}": _text(found) for path, found in objects.items()}
    for folder in sorted(set(FOLDERS.values())):
        names = sorted(path.split("/")[1] for path in objects if path.startswith(f"{folder}/"))
        written[f"config/{folder}/kustomization.yaml"] = _kustomization(names)
    written["config/default/namespace.yaml"] = _text([NAMESPACE])
    written["config/default/kustomization.yaml"] = _kustomization(["namespace.yaml", "../crd", "../rbac", "../manager"])
    return written


def _file_name(kind: str) -> str:
    words = "".join(f"_{char.lower()}" if char.isupper() else char for char in kind).lstrip("_")
    return f"{words}.yaml"


def _kustomization(resources: Sequence[str]) -> str:
    body = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": list(resources)}
    return _text([body])


def _text(objects: list[dict[str, Any]]) -> str:
    return HEADER + yaml.safe_dump_all(objects, sort_keys=False, width=120)
