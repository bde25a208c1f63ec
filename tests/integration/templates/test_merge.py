"""Templates are merged as in kubectl, and by the keys that the API server names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hack.documents.tables import merge_keys
from slinky_operator.slurm.pod_templates.templates import RefusedFragment, merge
from tests.support.control_plane import ControlPlane

BASE: dict[str, Any] = {
    "metadata": {"labels": {"app": "slurm", "gone": "x"}, "finalizers": ["a/b", "c/d"]},
    "spec": {
        "containers": [
            {
                "name": "slurmd",
                "image": "slurmd:1",
                "args": ["-D", "-Z"],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "ports": [{"name": "slurmd", "containerPort": 6818, "protocol": "TCP"}],
                "volumeMounts": [{"name": "run", "mountPath": "/run"}, {"name": "spool", "mountPath": "/spool"}],
                "securityContext": {"runAsUser": 0, "capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}},
                "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
            },
            {"name": "second", "image": "x"},
        ],
        "volumes": [{"name": "run", "emptyDir": {}}, {"name": "spool", "emptyDir": {}}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
        ],
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "nodeSelector": {"x": "y"},
        "terminationGracePeriodSeconds": 30,
    },
}


def spec(**fields: Any) -> dict[str, Any]:
    return {"spec": fields}


def slurmd(**fields: Any) -> dict[str, Any]:
    return spec(containers=[{"name": "slurmd", **fields}])


CASES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a field": slurmd(image="slurmd:2"),
    "a field gone": spec(terminationGracePeriodSeconds=None, nodeSelector=None),
    "labels": {"metadata": {"labels": {"gone": None, "new": "1"}}},
    "words": {"metadata": {"finalizers": ["c/d", "e/f"]}},
    "words gone": {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"]}},
    "arguments are replaced": slurmd(args=["-v"]),
    "tolerations are replaced": spec(tolerations=[{"operator": "Exists"}]),
    "capabilities are replaced": slurmd(securityContext={"capabilities": {"add": ["KILL"]}}),
    "a further container": spec(containers=[{"name": "third", "image": "y", "env": [{"name": "C", "value": None}]}]),
    "a container gone": spec(containers=[{"name": "second", "$patch": "delete"}]),
    "all containers replaced": spec(containers=[{"name": "slurmd", "image": "z"}, {"$patch": "replace"}]),
    "one container replaced": slurmd(**{"image": "z", "$patch": "replace"}),
    "a variable": slurmd(env=[{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]),
    "a variable gone": slurmd(env=[{"name": "A", "$patch": "delete"}]),
    "a mount": slurmd(volumeMounts=[{"name": "disk", "mountPath": "/spool"}, {"name": "etc", "mountPath": "/etc/x"}]),
    "a port": slurmd(ports=[{"containerPort": 6818, "hostPort": 1}, {"containerPort": 9, "protocol": "UDP"}]),
    "a volume": spec(volumes=[{"name": "disk", "hostPath": {"path": "/disk"}}]),
    "a volume with another source": spec(
        volumes=[{"name": "spool", "hostPath": {"path": "/x"}, "$retainKeys": ["name", "hostPath"]}]
    ),
    "a spread": spec(topologySpreadConstraints=[{"topologyKey": "kubernetes.io/hostname", "maxSkew": 2}]),
    "a map replaced": slurmd(resources={"$patch": "replace", "limits": {"cpu": "1"}}),
    "a map gone": slurmd(resources={"$patch": "delete"}),
    "init containers": spec(initContainers=[{"name": "i", "image": "x", "env": [{"name": "A", "value": "1"}]}]),
    "affinity": spec(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}}),
    "aliases": spec(hostAliases=[{"ip": "1.2.3.4", "hostnames": ["a"]}]),
    "secrets": spec(imagePullSecrets=[{"name": "one"}]),
}

REFUSED: dict[str, dict[str, Any]] = {
    "an item without its key": spec(containers=[{"image": "x"}]),
    "an unknown directive": slurmd(**{"$patch": "improve"}),
    "merging an item by name": slurmd(**{"$patch": "merge", "image": "x"}),
    "merging a map by name": slurmd(resources={"$patch": "merge", "limits": {"cpu": "1"}}),
}


def by_kubectl(control_plane: ControlPlane, fragment: dict[str, Any], folder: Path) -> dict[str, Any]:
    whole = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"}, "template": BASE}
    manifest = folder / "template.json"
    manifest.write_text(json.dumps(whole), encoding="utf-8")
    patch = json.dumps({"template": fragment})
    printed = control_plane.kubectl(
        "patch", "--local", "--type=strategic", f"--filename={manifest}", f"--patch={patch}", "--output=json"
    )
    template: dict[str, Any] = json.loads(printed)["template"]
    return template


def canonical(value: Any) -> Any:
    """Without the order of merged lists, which is ours, and without what kubectl fills in for empty structures."""
    if isinstance(value, dict):
        return {key: canonical(item) for key, item in value.items() if item is not None and item != {}}
    if isinstance(value, list):
        items = [canonical(item) for item in value]
        return (
            sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
            if items and isinstance(items[0], dict)
            else items
        )
    return value


@pytest.mark.parametrize("name", CASES)
def test_templates_are_merged_as_kubectl_merges_them(control_plane: ControlPlane, tmp_path: Path, name: str) -> None:
    assert canonical(merge(BASE, CASES[name])) == canonical(by_kubectl(control_plane, CASES[name], tmp_path))


@pytest.mark.parametrize("name", REFUSED)
def test_what_kubectl_refuses_is_refused(control_plane: ControlPlane, tmp_path: Path, name: str) -> None:
    with pytest.raises(Exception, match="error"):
        by_kubectl(control_plane, REFUSED[name], tmp_path)
    with pytest.raises(RefusedFragment):
        merge(BASE, REFUSED[name])


def test_the_tables_are_what_the_api_server_says(control_plane: ControlPlane) -> None:
    document = json.loads(control_plane.kubectl("get", "--raw", "/openapi/v2"))

    assert merge_keys.table(document) == json.loads(merge_keys.TABLE.read_text(encoding="utf-8"))
    assert merge_keys.shapes(document) == json.loads(merge_keys.SHAPES.read_text(encoding="utf-8"))
