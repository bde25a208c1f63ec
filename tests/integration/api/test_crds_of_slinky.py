"""The commands of docs/from-slinky.md about CRDs, run with the CRDs that Slinky's releases leave."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.localkube.kubectl import Kubectl, KubectlFailed, wait_for
from hack.localkube.paths import PROJECT
from hack.localkube.programs import build
from tests.support import control_plane as support
from tests.support import served
from tests.support.documents import Action, blocks
from tests.support.shell import Shell

PAGE = "docs/from-slinky.md"
IN_PLACE, REPLACED = "From 0.1, 0.2 and 0.3", "From 0.4 and 1.x"
NAME = "nodesets.slinky.slurm.net"


@pytest.fixture
def kubectl() -> Iterator[Kubectl]:
    """An API server of one's own: what others count on is missing or deleted here."""
    with support.running("slinky") as instance:
        yield instance.kubectl


def crd(plural: str, kind: str, version: str, required: str) -> dict[str, Any]:
    """A CRD in the shape of theirs: one version, a spec with one field that must be there, a status."""
    spec = {
        "type": "object",
        "properties": {required: {"x-kubernetes-preserve-unknown-fields": True}, "replicas": {"type": "integer"}},
        "required": [required],
        "x-kubernetes-preserve-unknown-fields": True,
    }
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.slinky.slurm.net",
            "annotations": {"controller-gen.kubebuilder.io/version": "v0.17.1"},
        },
        "spec": {
            "group": "slinky.slurm.net",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def install(kubectl: Kubectl, *crds: dict[str, Any]) -> None:
    kubectl.apply(crds)
    names = [one["metadata"]["name"] for one in crds]
    wait_for("they are served", lambda: kubectl("get", ",".join(names), "--ignore-not-found") == "", 120)


def nodeset(version: str, spec: dict[str, Any], *, finalizers: tuple[str, ...] = ()) -> dict[str, Any]:
    metadata = {"name": "compute", "namespace": "default", "finalizers": list(finalizers)}
    return {"apiVersion": f"slinky.slurm.net/{version}", "kind": "NodeSet", "metadata": metadata, "spec": spec}


def refusal(kubectl: Kubectl, *arguments: str) -> str:
    """What kubectl says as it fails; nothing if it does not."""
    try:
        kubectl(*arguments)
    except KubectlFailed as error:
        return error.stderr
    return ""


def follow(kubectl: Kubectl, folder: Path, heading: str) -> str:
    """Run the commands below a heading of the page, in their order, as a reader in the repository would."""
    bin_folder = build.tool("kubectl").parent
    environment = {
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "HOME": str(folder),
        "KUBECONFIG": str(kubectl.kubeconfig),
        "KUBECACHEDIR": str(folder / "cache"),
    }
    place = folder / "checkout"
    place.mkdir()
    (place / "config").symlink_to(PROJECT / "config")
    printed = ""
    with Shell(place, folder, environment) as shell:
        for block in blocks(PAGE):
            if block.heading == heading and block.action is Action.RUN:
                printed += shell.run(block.text, block.place, 120)
    return printed


def serves_ours(kubectl: Kubectl) -> None:
    served.wait_until_kinds_are_served(kubectl)
    for name in served.CRDS:
        assert kubectl.get("crd", name)["status"]["storedVersions"] == ["v1alpha1"]
    kubectl("create", "--filename=-", stdin=json.dumps(nodeset("v1alpha1", {"clusterName": "slurm", "replicas": 2})))
    assert kubectl.get(NAME, "compute")["spec"]["replicas"] == 2
    kubectl("delete", NAME, "compute")


def test_ours_go_over_those_of_0_1_to_0_3_and_objects_stay(kubectl: Kubectl, tmp_path: Path) -> None:
    install(
        kubectl,
        crd("clusters", "Cluster", "v1alpha1", "server"),
        crd("nodesets", "NodeSet", "v1alpha1", "clusterName"),
    )
    kubectl.apply([nodeset("v1alpha1", {"clusterName": "slurm", "replicas": 3, "serviceName": "slurm-compute"})])
    uid = kubectl.get(NAME, "compute")["metadata"]["uid"]

    follow(kubectl, tmp_path, IN_PLACE)

    served.wait_until_kinds_are_served(kubectl)
    kubectl("scale", f"{NAME}/compute", "--replicas=1")
    found = kubectl.get(NAME, "compute")
    assert (found["metadata"]["uid"], found["spec"]["replicas"]) == (uid, 1)
    kubectl("delete", NAME, "compute")
    serves_ours(kubectl)


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"], ids=["0.4", "1.x"])
def test_those_of_0_4_and_1_x_give_way_by_the_steps_of_the_page(kubectl: Kubectl, tmp_path: Path, version: str) -> None:
    install(
        kubectl,
        crd("controllers", "Controller", version, "clusterName"),
        crd("nodesets", "NodeSet", version, "controllerRef"),
        crd("tokens", "Token", version, "jwtKeyRef"),
    )
    theirs = nodeset(
        version, {"controllerRef": {"name": "slurm"}}, finalizers=("nodeset.slinky.slurm.net/reservation",)
    )
    kubectl.apply([theirs])

    # What the page says of ours over theirs.
    ours = PROJECT / "config/crd/slinky.slurm.net_nodesets.yaml"
    text = (PROJECT / PAGE).read_text(encoding="utf-8")
    apply = ("apply", "--server-side", "--force-conflicts", f"--filename={ours}")
    if version == "v1beta1":
        words = refusal(kubectl, *apply).strip()
        assert "status.storedVersions" in words
    else:
        words = "spec.clusterName: Required value"
        kubectl(*apply)
        scale = ("patch", NAME, "compute", "--type=merge", '--patch={"spec":{"replicas":0}}', "--dry-run=server")
        wait_for("ours is in effect", lambda: words in refusal(kubectl, *scale), 240)
        # What was stored is there again with their CRD.
        kubectl("replace", "--filename=-", stdin=json.dumps(crd("nodesets", "NodeSet", version, "controllerRef")))
        wait_for("theirs is in effect", lambda: "controllerRef" in kubectl.get(NAME, "compute")["spec"], 240)
    assert words in text

    printed = follow(kubectl, tmp_path, REPLACED)

    assert "nodeset.slinky.slurm.net/compute patched" in printed
    assert "controllerRef" in (tmp_path / "checkout/nodesets-of-slinky.yaml").read_text(encoding="utf-8")
    assert kubectl.get("crd", "controllers.slinky.slurm.net")["spec"]["versions"][0]["name"] == version
    serves_ours(kubectl)
