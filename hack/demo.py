"""``make demo``: from a bare machine to a real job on real Slurm in a real Kubernetes, each step shown.

Idempotent: a second run finds the cluster, the images and Slurm there and goes straight to the jobs.
"""

from __future__ import annotations

import sys
import time

from hack.images import build as images
from hack.images.errors import ImagesError
from hack.localkube.cluster import Cluster
from hack.localkube.errors import LocalKubeError
from hack.localkube.kubectl import wait_for
from hack.localkube.progress import say, step
from hack.plain.deploy import NODES, PlainSlurm

SLURM = "26.05"


def main() -> int:
    """Run the demo; return 0, or 1 after saying what went wrong."""
    start = time.monotonic()
    try:
        cluster = Cluster("local")
        say("1. A real Kubernetes on this machine: a control plane and two Nodes")
        cluster.up(nodes=2)
        say(f"2. Container images of Slurm {SLURM}")
        archives = images.ensure([f"slurm-{SLURM}"], say)[f"slurm-{SLURM}"]
        with step("load them into both Nodes"):
            cluster.load_images(archives)
        say("3. slurmctld, slurmrestd and three slurmd pods")
        slurm = PlainSlurm(cluster.kubectl, SLURM)
        with step("apply the manifests"):
            slurm.apply()
        with step(f"wait until {', '.join(NODES)} are idle"):
            slurm.wait()
        say("4. Jobs")
        _show_jobs(slurm)
        say(f"Done after {time.monotonic() - start:.0f} s. To go on:")
        say('  eval "$(.venv/bin/python -m hack.localkube env)"   # kubectl for this cluster')
        say(f"  kubectl get pods -n {slurm.namespace} -o wide")
        say(f"  kubectl exec -n {slurm.namespace} slurmctld-0 -- sinfo")
        say("  make status; make demo-down")
    except (LocalKubeError, ImagesError) as error:
        say(f"demo: {error}")
        return 1
    return 0


def _show_jobs(slurm: PlainSlurm) -> None:
    say(f"$ srun -N{len(NODES)} hostname")
    say(slurm.run("srun", f"-N{len(NODES)}", "hostname").rstrip())
    say("$ sbatch --wrap='sleep 2; hostname'")
    job = slurm.run("sbatch", "--parsable", "--output=/tmp/%j.out", "--wrap=sleep 2; hostname").strip()
    with step(f"wait until job {job} is COMPLETED"):
        wait_for(
            f"job {job} COMPLETED",
            lambda: "JobState=COMPLETED" in slurm.run("scontrol", "show", "job", job),
            timeout=60,
        )
    say("$ sinfo")
    say(slurm.run("sinfo").rstrip())


if __name__ == "__main__":
    sys.exit(main())
