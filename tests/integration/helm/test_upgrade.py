"""Releases of earlier charts become releases of these: nothing of a running Slurm is changed or replaced."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hack.packaging.render import OPERATOR_CHART, SLURM_CHART
from tests.integration.helm.helm_commands import EARLIER, refused, run_helm
from tests.support.control_plane import ControlPlane
from tests.support.served import wait_until_kinds_are_served

NAMESPACE = "upgraded"
VALUES: dict[str, Any] = {
    "cluster": {
        "extraConf": "SchedulerParameters=bf_continue",
        "login": [{"name": "front", "replicas": 1}],
        "partitions": [{"name": "all-nodes", "nodeSets": ["ALL"], "config": "Default=YES"}],
    },
    "nodesets": {"cpu": {"replicas": 2, "features": ["amd"]}, "gpu": {"replicas": 1, "gres": "gpu:8"}},
}


def kept(control_plane: ControlPlane) -> dict[tuple[str, str], tuple[str, int]]:
    """Each Cluster and NodeSet, with its identity and the number of changes of its spec."""
    kinds = "clusters.slinky.slurm.net,nodesets.slinky.slurm.net"
    items = control_plane.kubectl.get(kinds, f"--namespace={NAMESPACE}")["items"]
    return {
        (one["kind"], one["metadata"]["name"]): (one["metadata"]["uid"], one["metadata"]["generation"]) for one in items
    }


@pytest.mark.parametrize("reuse", ["--reuse-values", "--reset-then-reuse-values"])
def test_an_upgrade_changes_nothing_of_a_running_slurm(control_plane: ControlPlane, reuse: str) -> None:
    kubectl, where = control_plane.kubectl, (f"--namespace={NAMESPACE}", "--create-namespace")
    run_helm(control_plane, "install", "slurm-operator", str(EARLIER / "slurm-operator-0.1.0.tgz"), *where)
    wait_until_kinds_are_served(kubectl)
    run_helm(control_plane, "install", "slurm", str(EARLIER / "slurm-0.1.0.tgz"), *where, values=VALUES)
    kubectl("scale", "nodesets.slinky.slurm.net", "cpu", "--replicas=5", f"--namespace={NAMESPACE}")
    before = kept(control_plane)
    assert {name for _, name in before} == {"slurm", "cpu", "gpu"}

    kubectl("apply", "--server-side", "--force-conflicts", "--filename", str(OPERATOR_CHART / "crds"))
    for release, chart in (("slurm-operator", OPERATOR_CHART), ("slurm", SLURM_CHART)):
        run_helm(control_plane, "upgrade", release, str(chart), *where, reuse)
    assert kept(control_plane) == before

    # Uninstalled and installed again, in the other order.
    run_helm(control_plane, "uninstall", "slurm-operator", f"--namespace={NAMESPACE}")
    assert kept(control_plane) == before
    run_helm(control_plane, "install", "slurm-operator", str(OPERATOR_CHART), *where)
    assert kept(control_plane) == before
    for release in ("slurm", "slurm-operator"):
        run_helm(control_plane, "uninstall", release, f"--namespace={NAMESPACE}")
    assert not kept(control_plane)


FIELD = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/"


def test_crds_that_lack_fields_are_named_and_helm_upgrades_them_if_it_is_to(control_plane: ControlPlane) -> None:
    kubectl, where = control_plane.kubectl, ("--namespace=crds-upgraded", "--create-namespace")
    kubectl("apply", "--server-side", "--force-conflicts", "--filename", str(OPERATOR_CHART / "crds"))
    release = ("slurm-operator", str(OPERATOR_CHART), *where)
    run_helm(control_plane, "install", *release)
    for crd, field in (("clusters", "jobs"), ("nodesets", "weight")):
        patch = json.dumps([{"op": "remove", "path": FIELD + field}])
        kubectl("patch", "crd", f"{crd}.slinky.slurm.net", "--type=json", f"--patch={patch}")

    said = refused(control_plane, "upgrade", *release)
    assert "the CRDs in the cluster are older than this chart, and lack these fields:" in said
    assert "  clusters.slinky.slurm.net: spec.jobs\n  nodesets.slinky.slurm.net: spec.weight\n" in said
    assert "kubectl apply --server-side --force-conflicts -f crds/" in said
    # Who serves some namespaces may have no right to read CRDs.
    run_helm(control_plane, "upgrade", *release, "--dry-run=server", "--set=watchNamespaces={default}")

    upgraded = ("upgrade", *release, "--set=crds.upgrade=true")
    assert "--take-ownership" in said
    assert "cannot be imported into the current release" in refused(control_plane, *upgraded)
    assert "Helm upgrades the CRDs" in run_helm(control_plane, *upgraded, "--take-ownership")
    assert "jobs" in _fields(control_plane, "clusters")
    assert "weight" in _fields(control_plane, "nodesets")

    uids = {one["metadata"]["name"]: one["metadata"]["uid"] for one in kubectl.get("crd")["items"]}
    run_helm(control_plane, "uninstall", "slurm-operator", where[0])
    assert {one["metadata"]["name"]: one["metadata"]["uid"] for one in kubectl.get("crd")["items"]} == uids
    # They still have the marks of this release.
    run_helm(control_plane, "install", *release, "--set=crds.upgrade=true")
    run_helm(control_plane, "uninstall", "slurm-operator", where[0])


def _fields(control_plane: ControlPlane, plural: str) -> set[str]:
    crd = control_plane.kubectl.get("crd", f"{plural}.slinky.slurm.net")
    return set(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])
