"""Waits until an API server acts on accepted objects: for some of them only a moment after its answer.

A CRD is reported as established before its objects are served and found by kind, and a role counts once the authorizer
has seen it. Tests that continue at once wait here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from hack.localkube.kubectl import Kubectl, KubectlFailed, wait_for
from hack.packaging.render import ROOT
from slinky_api.v1alpha1 import KINDS

CRDS = tuple(f"{kind.plural}.{kind.group}" for kind, _ in KINDS)

JOB_CRD = "slurmjobs.slinky.slurm.net"


def apply_crds(kubectl: Kubectl) -> None:
    """Apply the CRDs as they are committed, and wait until they are of use."""
    kubectl("apply", f"--kustomize={ROOT / 'config/crd'}")
    wait_until_kinds_are_served(kubectl)


def apply_job_crds(kubectl: Kubectl) -> None:
    """Apply the CRD of SlurmJobs, and wait until they are served."""
    kubectl("apply", f"--kustomize={ROOT / 'config/crd/jobs'}")

    def listed() -> bool:
        try:
            _ = kubectl.get(JOB_CRD, "--all-namespaces")
        except KubectlFailed:
            return False
        return True

    wait_for("SlurmJobs are served", listed, 120)


def wait_until_kinds_are_served(kubectl: Kubectl) -> None:
    """Wait until objects of our kinds can be made and asked for.

    Not by ``kubectl wait``: of a CRD that was created a moment ago, and has no conditions yet, it says an error.
    """

    def listed() -> bool:
        kubectl("get", ",".join(CRDS), "--all-namespaces", "--ignore-not-found")
        # kubectl may know the kinds from before; the overview of all groups shows a new one some time later.
        _ = kubectl.get(",".join(CRDS), "--all-namespaces")
        return True

    wait_for("objects of our kinds are served", listed, 120)


@contextmanager
def any_name(kubectl: Kubectl, like: str) -> Iterator[None]:
    """Serve NodeSets whose names are not looked at, as Slinky's CRD does; afterwards ours again.

    Parameters
    ----------
    like
        A name that ours refuses.
    """
    file = ROOT / "config/crd/slinky.slurm.net_nodesets.yaml"
    theirs: dict[str, Any] = yaml.safe_load(file.read_text())
    del theirs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"]
    kubectl("replace", "--filename=-", stdin=json.dumps(theirs))
    wait_for("any name is taken", lambda: _takes(kubectl, like), 60)
    try:
        yield
    finally:
        kubectl("replace", f"--filename={file}")
        wait_for("names are looked at again", lambda: not _takes(kubectl, like), 60)


def _takes(kubectl: Kubectl, name: str) -> bool:
    obj = {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "NodeSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"clusterName": "c"},
    }
    try:
        kubectl("create", "--dry-run=server", "--filename=-", stdin=json.dumps(obj))
    except KubectlFailed:
        return False
    return True


def wait_until_allowed(kubectl: Kubectl, user: str, verb: str, resource: str, namespace: str) -> None:
    """Wait until a user may do something, that is until a role and its binding count."""

    def allowed() -> bool:
        return kubectl("auth", "can-i", verb, resource, f"--as={user}", f"--namespace={namespace}").strip() == "yes"

    wait_for(f"{user} may {verb} {resource}", allowed, 60)
