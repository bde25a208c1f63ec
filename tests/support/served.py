"""When an API server acts on what it has taken: some of it only a moment after it has answered.

A CRD is said to be established before its objects are served and found by kind, and a role counts once the authorizer
has heard of it. Tests that go on at once wait here.
"""

from __future__ import annotations

from hack.localkube.kubectl import Kubectl, wait_for
from hack.packaging.render import ROOT

CRDS = ("clusters.slinky.slurm.net", "nodesets.slinky.slurm.net")


def apply_crds(kubectl: Kubectl) -> None:
    """Apply both CRDs as they are committed, and wait until they are of use."""
    kubectl("apply", f"--kustomize={ROOT / 'config/crd'}")
    wait_until_kinds_are_served(kubectl)


def wait_until_kinds_are_served(kubectl: Kubectl) -> None:
    """Wait until objects of both kinds can be made and asked for."""
    kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", *CRDS)

    def listed() -> bool:
        kubectl("get", ",".join(CRDS), "--all-namespaces", "--ignore-not-found")
        return True

    wait_for("objects of our kinds are served", listed, 60)


def wait_until_allowed(kubectl: Kubectl, user: str, verb: str, resource: str, namespace: str) -> None:
    """Wait until a user may do something, that is until a role and its binding count."""

    def allowed() -> bool:
        return kubectl("auth", "can-i", verb, resource, f"--as={user}", f"--namespace={namespace}").strip() == "yes"

    wait_for(f"{user} may {verb} {resource}", allowed, 60)
