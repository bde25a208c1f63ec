"""The operator's sudden end, and a new leader after it: for tests of what a crash at a certain point does."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from hack.localkube.kubectl import Kubectl, wait_for
from hack.operator_install import NAMESPACE, RELEASE, Installation
from tests.support import processes

PROCESS = "slurm-operator"
"""What the operator's command line holds."""


@contextmanager
def dead(operator: Installation, kubectl: Kubectl) -> Iterator[None]:
    """Kill all replicas, let the body run while nobody leads, and wait until a replacement leads.

    The pods are deleted after the kill, since a kubelet restarts a container that is killed again and again in ever
    longer pauses; new pods it starts at once. Nobody leads before the Lease goes: its holder is dead and it has not
    run out.
    """
    pods = operator.pods()
    for pod in pods.values():
        processes.send(pod, PROCESS, signal.SIGKILL)
    killed_at = datetime.now(UTC)
    kubectl("delete", "pod", "--namespace", NAMESPACE, "--wait=false", "--ignore-not-found", *pods)
    yield
    lease = kubectl.get("lease", RELEASE, "--namespace", NAMESPACE)["spec"]
    assert lease["holderIdentity"].split("_")[0] in pods
    assert datetime.fromisoformat(lease["renewTime"]) < killed_at
    kubectl("delete", "lease", RELEASE, "--namespace", NAMESPACE)
    wait_for("a new leader", lambda: operator.leader() not in {"", *pods}, 120)
