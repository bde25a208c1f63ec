"""The operator, run as the chart's ServiceAccount with the chart's flags, is never denied anything."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.localkube.kubectl import wait_for
from hack.packaging.render import render
from tests.support import audit, deployed_operator, service_account
from tests.support.control_plane import ControlPlane
from tests.support.deployed_operator import fetch
from tests.support.served import apply_crds, apply_job_crds, wait_until_allowed

FILES = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "files"}, "data": {"gres.conf": ""}}
CLUSTER: dict[str, Any] = {
    "apiVersion": "slinky.slurm.net/v1alpha1",
    "kind": "Cluster",
    "metadata": {"name": "slurm"},
    "spec": {
        "configFileRefs": [{"name": "files"}],
        "login": [{"name": "users"}],
        "metrics": {"exporter": {"enabled": True}},
    },
}
NODESET = {
    "apiVersion": "slinky.slurm.net/v1alpha1",
    "kind": "NodeSet",
    "metadata": {"name": "compute"},
    "spec": {"clusterName": "slurm", "replicas": 1},
}
TOKEN = {
    "apiVersion": "slinky.slurm.net/v1alpha1",
    "kind": "Token",
    "metadata": {"name": "portal"},
    "spec": {"clusterRef": {"name": "slurm"}},
}
JOB = {
    "apiVersion": "slinky.slurm.net/v1alpha1",
    "kind": "SlurmJob",
    "metadata": {"name": "hello"},
    "spec": {"clusterName": "slurm", "script": "#!/bin/sh\n", "logs": {}},
}

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "labelled"}}
NODE_LABELS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "slurm-config"},
    "data": {"config": "labelled: {labels: {gpu: a100}, resources: {gpu: 4}}"},
}

TOKENS = ("portal", "slurm-exporter")
"""Those of users, and that of the Cluster's exporter."""

PATIENCE = 240

RARE = {
    ("secrets", "patch"): "a key is adopted, or made immutable",
    ("persistentvolumeclaims", "create"): "a pod has claims",
    ("persistentvolumeclaims", "patch"): "a claim is marked for its retention",
    ("persistentvolumeclaims", "delete"): "a claim goes with its pod",
    ("pods", "create"): "a preflight, or a slurmd pod",
    ("pods", "delete"): "the same",
    ("controllerrevisions", "patch"): "an older spec is applied again",
    ("controllerrevisions", "delete"): "the history is longer than its limit",
    ("nodesets/finalizers", "update"): "asked for by admission, because of dependents that block their owner",
    ("pods", "patch"): "slurmctld's pod is touched, a slurmd pod labelled",
    ("pods/status", "patch"): "a slurmd pod has registered",
    ("subjectaccessreviews", "create"): "another release says that it serves the same namespaces",
    ("localsubjectaccessreviews", "create"): "the same",
    ("slurmjobs", "patch"): "a SlurmJob is submitted",
    ("slurmjobs", "delete"): "it has ended, and is to go after some time",
}
"""Rights that need a running Slurm or a rare event: what for. Their calls are looked for by tests/unit/helm."""

CLASHING = {**NODESET, "metadata": {"name": "compute-0"}}
"""Named like the first node of the other: refused with an Event, whether a Slurm runs or not."""


def with_tenants(namespace: str, *, by_labels: bool) -> dict[str, Any]:
    """The Cluster, with the namespace as a tenant: found by its name, or by its labels, which takes another right."""
    found = (
        {"namespaceLabels": {"kubernetes.io/metadata.name": namespace}} if by_labels else {"namespaces": [namespace]}
    )
    return {**CLUSTER, "spec": {**CLUSTER["spec"], "jobs": {"tenants": [{**found, "user": "alice"}]}}}


def writes_of(objects: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """What the operator's own roles let it write: pairs of resource and verb."""
    return {
        (resource, verb)
        for role in objects
        if role["kind"] in {"Role", "ClusterRole"}
        and not any("aggregate" in label for label in role["metadata"]["labels"])
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb not in {"get", "list", "watch"}
    }


def created_by_apply(asked: list[audit.Write]) -> set[tuple[str, str]]:
    """Rights to create that server-side applies have needed."""
    return {(one.resource, "create") for one in asked if one.verb == "patch" and one.code == 201}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("scope", ["all namespaces", "one namespace"])
def test_nothing_is_refused(control_plane: ControlPlane, tmp_path: Path, scope: str) -> None:
    kubectl = control_plane.kubectl
    name = f"rights-{uuid.uuid4().hex[:10]}"
    served = f"{name}-served"
    for namespace in (name, served):
        kubectl("create", "namespace", namespace)
    apply_crds(kubectl)
    apply_job_crds(kubectl)
    everywhere = scope == "all namespaces"
    scoped = (
        {"nodeLabels": {"enabled": True, "fromSlurm": True, "clusters": ["*"]}}
        if everywhere
        # The Lease of a release that is not there may not be read, and is said to be missing.
        else {"watchNamespaces": [served], "otherOperators": []}
    )
    values: dict[str, Any] = {**scoped, "jobs": {"enabled": True}}
    objects = render(values=values, namespace=name)
    kubectl.apply(objects)
    arguments = deployed_operator.arguments_of(objects)
    kubeconfig = service_account.kubeconfig_of(kubectl, control_plane.kubeconfig, name, tmp_path / "kubeconfig")
    log = tmp_path / "operator.log"
    # A role that does not count yet is no right that is missing.
    user = service_account.user_of(name)
    wait_until_allowed(kubectl, user, "create", "pods", served)
    wait_until_allowed(kubectl, user, "create", "leases.coordination.k8s.io", name)

    with deployed_operator.running(arguments, kubeconfig, name, log) as url:
        wait_for("the operator ready", lambda: fetch(f"{url}/readyz").rstrip().endswith("\nok"), timeout=PATIENCE)
        manifests = yaml.safe_dump_all([FILES, with_tenants(served, by_labels=everywhere), NODESET, TOKEN, JOB])
        kubectl("apply", f"--namespace={served}", "--filename=-", stdin=manifests)

        if everywhere:
            manifests = yaml.safe_dump_all([NODE, NODE_LABELS])
            kubectl("apply", f"--namespace={name}", "--filename=-", stdin=manifests)
            wait_for(
                "labels and resources of a Node",
                lambda: (
                    {"slurm.sylabs.io/gpu": "4"}.items()
                    <= kubectl.get("node", "labelled")["status"].get("capacity", {}).items()
                    and kubectl.get("node", "labelled")["metadata"]["labels"]["slurm.sylabs.io/gpu"] == "a100"
                ),
                timeout=PATIENCE,
            )

        def children() -> set[str]:
            found = kubectl("get", "statefulsets,deployments,services,configmaps,secrets", "-n", served, "-o", "name")
            return {line.split("/")[0] for line in found.splitlines() if "/slurm-" in line}

        wait_for(
            "children of every kind",
            lambda: children() == {"statefulset.apps", "deployment.apps", "service", "configmap", "secret"},
            timeout=PATIENCE,
        )
        wait_for(
            "a token of each Token",
            lambda: (
                len(kubectl("get", "secret", *TOKENS, "-n", served, "--ignore-not-found", "-o", "name").split()) == 2
            ),
            timeout=PATIENCE,
        )
        wait_for(
            "conditions of all",
            lambda: all(
                kubectl.get(kind, obj, f"--namespace={served}", "--ignore-not-found")
                .get("status", {})
                .get("conditions")
                for kind, obj in (
                    ("clusters.slinky.slurm.net", "slurm"),
                    ("nodesets.slinky.slurm.net", "compute"),
                    ("loginsets.slinky.slurm.net", "slurm-users"),
                    ("slurmjobs.slinky.slurm.net", "hello"),
                )
            ),
            timeout=PATIENCE,
        )
        kubectl("apply", f"--namespace={served}", "--filename=-", stdin=yaml.safe_dump(CLASHING))
        wait_for("Events", lambda: bool(kubectl.get("events", f"--namespace={served}")["items"]), timeout=PATIENCE)
        everything = (
            ("nodesets.slinky.slurm.net", "compute-0"),
            ("nodesets.slinky.slurm.net", "compute"),
            ("clusters.slinky.slurm.net", "slurm"),
        )
        for kind, obj in everything:
            kubectl("delete", kind, obj, f"--namespace={served}", "--wait=false")
        wait_for(
            "the end of both",
            lambda: (
                not kubectl("get", "clusters.slinky.slurm.net,nodesets.slinky.slurm.net", "-n", served, "-o", "name")
            ),
            timeout=PATIENCE,
        )
        # Watches that began late, those of ConfigMaps among them, end in good order with the process.
        kubectl("apply", f"--namespace={served}", "--filename=-", stdin=yaml.safe_dump(CLUSTER))
        wait_for(
            "a Cluster that is left",
            lambda: bool(kubectl.get("clusters.slinky.slurm.net", "slurm", f"--namespace={served}").get("status")),
            timeout=PATIENCE,
        )
        figures = fetch(f"{url}/metrics")

    refused = re.findall(r"^slurm_operator_kubernetes_requests_total\{.*Forbidden.*$", figures, re.MULTILINE)
    assert not refused, log.read_text()
    asked = [one for one in audit.writes(control_plane.audit_log) if one.user == user]
    assert not [one for one in asked if one.code == 403]
    used = {(one.resource, one.verb) for one in asked}
    granted = writes_of(objects)
    # An apply that makes the object needs the right to create it; the audit log calls it a patch.
    # It does not keep Events.
    unused = granted - used - created_by_apply(asked) - {("events", "create"), ("events", "patch")}
    assert unused - RARE.keys() == set()
    assert used <= granted
    assert "slurm_operator_kubernetes_requests_total" in figures
    assert "orbidden" not in log.read_text()
