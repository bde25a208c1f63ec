"""The control plane alone: several side by side, replaced and ended cleanly."""

from __future__ import annotations

import os

import pytest

from hack.localkube import cli, control_plane_only
from hack.localkube.host import machine
from hack.localkube.kubectl import Kubectl, KubectlFailed, wait_for
from hack.localkube.paths import ClusterPaths, state_root
from tests.support import control_plane as support
from tests.support.control_plane import ControlPlane
from tests.support.served import wait_until_allowed


def test_two_run_side_by_side_and_share_nothing(control_plane: ControlPlane) -> None:
    with support.running("second") as second:
        control_plane.kubectl("create", "namespace", "only-in-the-first")
        assert "only-in-the-first" in control_plane.kubectl("get", "namespaces")
        assert "only-in-the-first" not in second.kubectl("get", "namespaces")


def test_a_start_replaces_what_a_crashed_one_left() -> None:
    name = f"replaced-{os.getpid()}"
    first = control_plane_only.up(name)
    try:
        Kubectl(first.kubeconfig)("create", "namespace", "of-the-first")
        second = control_plane_only.up(name)
        assert "of-the-first" not in Kubectl(second.kubeconfig)("get", "namespaces")
        assert len(machine.find(second.root)) == 1
    finally:
        control_plane_only.down(name)
    assert not ClusterPaths(name).root.exists()
    assert machine.find(ClusterPaths(name).root) == {}


def test_its_status_is_shown(control_plane: ControlPlane, capsys: pytest.CaptureFixture[str]) -> None:
    name = control_plane.kubeconfig.relative_to(state_root()).parts[0]
    assert cli.main(["--name", name, "status"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"cluster {name}, ")
    assert "kube-apiserver" in shown


def test_the_audit_log_says_who_wrote_what(control_plane: ControlPlane) -> None:
    control_plane.kubectl("create", "configmap", "seen-by-audit", "--from-literal=a=b")
    # It is written when the answer has gone.
    wait_for("the line", lambda: bool(seen(control_plane, "seen-by-audit")), 240)
    assert '"username":"admin"' in seen(control_plane, "seen-by-audit")[0]


def seen(control_plane: ControlPlane, name: str) -> list[str]:
    """Whole lines of the audit log about an object."""
    whole, _, _ = control_plane.audit_log.read_text().rpartition("\n")
    return [line for line in whole.split("\n") if name in line]


def test_owner_references_that_block_deletion_need_permission_on_finalizers(control_plane: ControlPlane) -> None:
    kubectl = control_plane.kubectl
    kubectl("create", "configmap", "owner")
    uid = kubectl.get("configmap", "owner")["metadata"]["uid"]
    kubectl("create", "clusterrole", "writer", "--verb=create,get", "--resource=configmaps")
    kubectl("create", "clusterrolebinding", "writer", "--clusterrole=writer", "--user=mallory")
    wait_until_allowed(kubectl, "mallory", "create", "configmaps", "default")
    child = f"""
apiVersion: v1
kind: ConfigMap
metadata:
  name: child
  namespace: default
  ownerReferences:
  - {{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}, blockOwnerDeletion: true}}
"""
    with pytest.raises(KubectlFailed, match="cannot set blockOwnerDeletion"):
        kubectl("create", "--as=mallory", "--filename=-", stdin=child)
