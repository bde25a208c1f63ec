"""What the current kubeconfig shows: Clusters, Nodes, an operator that runs already.

Any Kubernetes will do. kubectl is that of the PATH, else the one that the local Kubernetes has built.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any, Final

from hack.developing.errors import DevelopingError, KubectlFailed, NoKinds, OperatorDeployed
from hack.localkube.programs import build

NAMESPACE: Final = "slurm-operator"
DEPLOYMENT: Final = "slurm-operator"
CLUSTERS: Final = "clusters.slinky.slurm.net"


@dataclass(frozen=True, slots=True, order=True)
class SlurmCluster:
    """A Cluster whose slurmrestd is in this Kubernetes."""

    namespace: str
    name: str

    @property
    def service(self) -> str:
        """The Service of its slurmrestd."""
        return f"{self.name}-restapi"


def program(name: str) -> str:
    """Return the path of kubectl or helm.

    Raises
    ------
    DevelopingError
        There is none.
    """
    built = build.tool(name)
    found = shutil.which(name) or (str(built) if built.exists() else None)
    if found is None:
        raise DevelopingError(f"{name} is neither on the PATH nor built: install it, or run `make up`")
    return found


def kubectl(*arguments: str) -> str:
    """Run kubectl and return what it printed.

    Raises
    ------
    KubectlFailed
        It ended with an error.
    """
    run = subprocess.run(
        [program("kubectl"), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if run.returncode != 0:
        raise KubectlFailed(arguments, run.stderr)
    return run.stdout


def items(*arguments: str) -> list[dict[str, Any]]:
    """Return the objects that ``kubectl get`` lists."""
    found: list[dict[str, Any]] = json.loads(kubectl("get", *arguments, "--output=json"))["items"]
    return found


def check() -> None:
    """Check that an operator can begin here: its kinds exist, and no other one runs.

    Raises
    ------
    NoKinds
        The CRDs are not installed.
    OperatorDeployed
        The chart's Deployment has replicas.
    """
    if CLUSTERS not in kubectl("get", "customresourcedefinitions", "--output=name"):
        raise NoKinds
    for deployment in items("deployments", f"--namespace={NAMESPACE}", f"--field-selector=metadata.name={DEPLOYMENT}"):
        if deployment["spec"].get("replicas", 1):
            raise OperatorDeployed(NAMESPACE, DEPLOYMENT)


def make_namespace() -> None:
    """Make the namespace of the Lease, unless it is there."""
    if not items("namespaces", f"--field-selector=metadata.name={NAMESPACE}"):
        kubectl("create", "namespace", NAMESPACE)


def slurm_clusters() -> set[SlurmCluster]:
    """Return the Clusters whose Slurm runs here; one with ``server`` is reached as it says."""
    return {
        SlurmCluster(one["metadata"]["namespace"], one["metadata"]["name"])
        for one in items(CLUSTERS, "--all-namespaces")
        if not one.get("spec", {}).get("server")
    }
