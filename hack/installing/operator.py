"""Build the operator's image, load it, and install the chart: what `make demo` and the end-to-end tests do."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.images import build as images
from hack.localkube.cluster import Cluster
from hack.localkube.errors import LocalKubeError
from hack.localkube.paths import PROJECT
from hack.localkube.programs import build
from hack.machine.progress import say

NAMESPACE = "slurm-operator"
RELEASE = "slurm-operator"
CHART = PROJECT / "helm" / "slurm-operator"
JOBS_CHART = PROJECT / "helm" / "slurm-jobs"
OLD_JOBS_CHART = PROJECT / "helm" / "slurm-sylabs-jobs"


class HelmFailed(LocalKubeError):
    """helm ended with an error; the text has its words."""


@dataclass(frozen=True, slots=True)
class Installation:
    """The operator in a local cluster, with SlurmJobs.

    Attributes
    ----------
    cluster
        The local cluster.
    replicas
        How many run; one leads.
    old_jobs
        Whether it runs the job kinds of sylabs' operators too.
    settings
        Further arguments of helm.
    """

    cluster: Cluster
    replicas: int = 1
    old_jobs: bool = False
    settings: tuple[str, ...] = ()

    def install(self) -> None:
        """Build and load the image, apply the CRDs, install or upgrade the release, and wait until it is ready."""
        archives = images.ensure(["operator"], say)["operator"]
        self.cluster.load_images(archives)
        # helm installs CRDs once and never upgrades them.
        for chart in (CHART, JOBS_CHART, *([OLD_JOBS_CHART] if self.old_jobs else [])):
            folder = chart / "crds"
            self.cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename", str(folder))
        self.helm(
            "upgrade",
            "--install",
            RELEASE,
            str(CHART),
            "--create-namespace",
            f"--set=replicas={self.replicas}",
            "--set=jobs.enabled=true",
            f"--set=jobs.sylabs={str(self.old_jobs).lower()}",
            *self.settings,
            # A new image under the same tag is a new Deployment revision.
            f"--set-string=podAnnotations.image={archives[0].parent.name}",
            "--wait",
            "--timeout=300s",
        )

    def helm(self, *arguments: str) -> str:
        """Run helm in the operator's namespace.

        Raises
        ------
        HelmFailed
            It ended with an error.
        """
        command = [
            str(build.tool("helm")),
            f"--kubeconfig={self.cluster.paths.kubeconfig}",
            f"--namespace={NAMESPACE}",
            *arguments,
        ]
        run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path.home())
        if run.returncode != 0:
            raise HelmFailed(f"`helm {' '.join(arguments)}` failed: {run.stderr.strip()}")
        return run.stdout

    def leader(self) -> str:
        """Return the pod that leads, from the Lease."""
        lease = self.cluster.kubectl.get("lease", RELEASE, "--namespace", NAMESPACE)
        return str(lease["spec"].get("holderIdentity", "")).split("_")[0]

    def pods(self) -> dict[str, dict[str, Any]]:
        """Return the operator's pods by name."""
        answer = self.cluster.kubectl.get(
            "pods", "--namespace", NAMESPACE, "--selector=app.kubernetes.io/name=slurm-operator"
        )
        return {pod["metadata"]["name"]: pod for pod in answer["items"]}

    def logs(self) -> str:
        """Return what the operator's pods have logged."""
        return self.cluster.kubectl(
            "logs",
            "--namespace",
            NAMESPACE,
            "--selector=app.kubernetes.io/name=slurm-operator",
            "--tail=-1",
            "--prefix",
        )

    def describe(self) -> str:
        """Return a line about the installation."""
        return json.dumps({"leader": self.leader(), "pods": sorted(self.pods())})
