"""Kills the operator and waits for a new leader: for tests of a crash at a certain point."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from hack.installing.operator import NAMESPACE, RELEASE, Installation
from hack.localkube.kubectl import Kubectl, wait_for
from tests.support import processes
from tests.support.slurm_in_kubernetes import PATIENCE

PROCESS = "slurm-operator"
"""What the operator's command line holds."""

NOBODY = "nobody"
"""Who holds the Lease while the operator is dead."""

LEASE = ("lease", RELEASE, "--namespace", NAMESPACE)


@contextmanager
def dead(operator: Installation, kubectl: Kubectl) -> Iterator[None]:
    """Kill all replicas, let the body run while nobody leads, and wait until others are up and one of them leads.

    The pods are deleted after the kill, since a kubelet restarts a container that is killed again and again in ever
    longer pauses; new pods it starts at once. They do not lead before the body is over, however long it takes: the
    Lease has a holder that does not exist. A new process waits for the whole time of a Lease that it finds, so the
    dead leader's lasts until then.
    """
    wait_whole(operator)
    pods = operator.pods()
    for pod in pods.values():
        processes.send(pod, PROCESS, signal.SIGKILL)
    kubectl("delete", "pod", "--namespace", NAMESPACE, "--wait=false", "--grace-period=1", "--ignore-not-found", *pods)
    held = {"spec": {"holderIdentity": NOBODY, "leaseDurationSeconds": 3600}}
    kubectl("patch", *LEASE, "--type=merge", f"--patch={json.dumps(held)}")
    yield
    assert operator.leader() == NOBODY
    kubectl("delete", *LEASE)
    wait_for("a new leader", lambda: operator.leader() not in {"", NOBODY, *pods}, PATIENCE)
    wait_whole(operator)


def wait_whole(operator: Installation) -> None:
    """Wait until all replicas are ready, and none is left of those before them."""

    def whole() -> bool:
        pods = operator.pods().values()
        said = [one for pod in pods for one in pod["status"].get("containerStatuses", ())]
        ending = [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]
        return len(pods) == len(said) == operator.replicas and not ending and all(one["ready"] for one in said)

    wait_for("all replicas of the operator", whole, PATIENCE)
