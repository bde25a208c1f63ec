"""A bundle for the Operator Lifecycle Manager: what the chart renders, in the form that OLM installs.

OLM makes the Deployment, its ServiceAccount and its rights from a ClusterServiceVersion; a Service, and rights that
others get, lie beside it. NetworkPolicies are left out: not every OLM takes them. All namespaces are served, as by the
chart's own values.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from hack.packaging.kustomize import HELM_LABELS
from hack.packaging.render import OPERATOR_CHART, render
from hack.release.contents import charts
from hack.release.parameters import ROOT, Parameters

NAME: Final = "slurm-operator"
CHANNEL: Final = "alpha"
OLDEST_KUBERNETES: Final = "1.29.0"

_BUNDLE: Final = "operators.operatorframework.io.bundle"


def build(parameters: Parameters, target: Path, root: Path = ROOT) -> Path:
    """Write the bundle into a folder."""
    with tempfile.TemporaryDirectory(prefix="bundle-") as scratch:
        objects = render(charts.stage(root / OPERATOR_CHART.relative_to(ROOT), Path(scratch), parameters))
    for one in objects:
        for label in HELM_LABELS:
            one["metadata"]["labels"].pop(label)
    crds = [yaml.safe_load(path.read_text()) for path in sorted((root / "helm" / NAME / "crds").glob("*.yaml"))]
    manifests, metadata = target / "manifests", target / "metadata"
    for folder in (manifests, metadata):
        folder.mkdir(parents=True, exist_ok=True)
    for crd in crds:
        _write(manifests / f"{crd['metadata']['name']}.crd.yaml", crd)
    for one in _beside(objects):
        # OLM puts them into the namespace of the operator.
        one["metadata"].pop("namespace", None)
        _write(manifests / f"{one['metadata']['name']}.{one['kind'].lower()}.yaml", one)
    version = _cluster_service_version(parameters, objects, crds)
    _write(manifests / f"{NAME}.clusterserviceversion.yaml", version)
    _write(metadata / "annotations.yaml", {"annotations": _annotations()})
    _pack(target, target / f"{NAME}-olm-{parameters.version}.tar.gz", parameters.epoch)
    return target


def _pack(bundle: Path, archive: Path, epoch: int) -> None:
    """Write both folders of a bundle into one archive; the same bundle gives the same file."""
    with (
        archive.open("wb") as file,
        gzip.GzipFile(fileobj=file, mode="wb", mtime=epoch, filename="") as compressed,
        tarfile.open(fileobj=compressed, mode="w") as packed,
    ):
        for path in sorted(bundle.glob("*/*")):
            content = path.read_bytes()
            member = tarfile.TarInfo(str(path.relative_to(bundle)))
            member.size, member.mtime, member.mode = len(content), epoch, 0o644
            packed.addfile(member, io.BytesIO(content))


def _beside(objects: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Services, and roles of others than the operator with their bindings."""
    yield from (one for one in objects if one["kind"] == "Service")
    for binding in (one for one in objects if one["kind"].endswith("RoleBinding")):
        if not any(subject["kind"] == "ServiceAccount" for subject in binding["subjects"]):
            yield binding
            named = (binding["roleRef"]["kind"], binding["roleRef"]["name"])
            yield from (one for one in objects if (one["kind"], one["metadata"]["name"]) == named)


def _annotations() -> dict[str, str]:
    return {
        f"{_BUNDLE}.mediatype.v1": "registry+v1",
        f"{_BUNDLE}.manifests.v1": "manifests/",
        f"{_BUNDLE}.metadata.v1": "metadata/",
        f"{_BUNDLE}.package.v1": NAME,
        f"{_BUNDLE}.channels.v1": CHANNEL,
        f"{_BUNDLE}.channel.default.v1": CHANNEL,
    }


def _cluster_service_version(
    parameters: Parameters, objects: list[dict[str, Any]], crds: list[dict[str, Any]]
) -> dict[str, Any]:
    (deployment,) = (one for one in objects if one["kind"] == "Deployment")
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    link = [{"name": "source", "url": parameters.source}] if parameters.source else []
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": f"{NAME}.v{parameters.version}",
            "annotations": {
                "capabilities": "Deep Insights",
                "categories": "AI/Machine Learning, Big Data",
                "containerImage": image,
                "createdAt": parameters.created,
                "description": "Runs Slurm in Kubernetes; drains Slurm nodes before their pods are deleted",
                "alm-examples": "[]",
            },
        },
        "spec": {
            "displayName": "Slurm operator",
            "description": "Runs Slurm in Kubernetes: clusters and node sets that are drained before they are deleted.",
            "version": parameters.version,
            "maturity": CHANNEL,
            "minKubeVersion": OLDEST_KUBERNETES,
            "provider": {"name": NAME},
            "maintainers": [],
            "keywords": ["slurm", "hpc", "batch"],
            "links": link,
            "icon": [],
            "installModes": [
                {"type": mode, "supported": mode == "AllNamespaces"}
                for mode in ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
            ],
            "customresourcedefinitions": {"owned": list(_owned(crds))},
            "install": {
                "strategy": "deployment",
                "spec": {
                    "deployments": [
                        {
                            "name": deployment["metadata"]["name"],
                            "label": deployment["metadata"]["labels"],
                            "spec": deployment["spec"],
                        }
                    ],
                    "clusterPermissions": list(_permissions(objects, account, "ClusterRole")),
                    "permissions": list(_permissions(objects, account, "Role")),
                },
            },
        },
    }


def _owned(crds: list[dict[str, Any]]) -> Iterator[dict[str, str]]:
    for crd in crds:
        (version,) = crd["spec"]["versions"]
        kind = crd["spec"]["names"]["kind"]
        yield {
            "name": crd["metadata"]["name"],
            "version": version["name"],
            "kind": kind,
            "displayName": kind,
            "description": version["schema"]["openAPIV3Schema"]["description"].splitlines()[0],
        }


def _permissions(objects: list[dict[str, Any]], account: str, kind: str) -> Iterator[dict[str, Any]]:
    """The rules of the roles of a kind that are bound to the operator's account."""
    roles = {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}
    rules = [
        rule
        for one in objects
        if one["kind"] == f"{kind}Binding"
        and one["roleRef"]["kind"] == kind
        and any(subject.get("name") == account for subject in one["subjects"])
        for rule in roles[one["roleRef"]["name"]]["rules"]
    ]
    if rules:
        yield {"serviceAccountName": account, "rules": rules}


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(content, sort_keys=False, width=120), encoding="utf-8")
