"""``make demo``: from a bare machine to Slurm in a real Kubernetes, run by the operator, each step shown.

Idempotent: a second run finds the cluster, the images and Slurm there and goes straight to the jobs. ``--plain`` runs
Slurm from plain manifests instead, without the operator, which tells a broken ground from a broken operator.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

from hack.images import build as images
from hack.images.errors import ImagesError
from hack.installing.operator import Installation
from hack.installing.plain.deploy import NODES, PlainSlurm
from hack.localkube.cluster import Cluster, check_host
from hack.localkube.errors import LocalKubeError
from hack.localkube.kubectl import Kubectl, wait_for
from hack.localkube.paths import PROJECT
from hack.localkube.programs import build, debian
from hack.machine import neutral_start
from hack.machine.progress import say, step
from hack.testing.preparing import Build, Preparation

SLURM = "26.05"
STAGES = ("Kubernetes", "Slurm", "operator")
NAMESPACE = "slurm"
SAMPLES = PROJECT / "config" / "samples"
SAMPLES_NEED = ("mariadb",)
"""Sets of images that samples use beside Slurm's."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return 0, or 1 after saying what went wrong."""
    parser = argparse.ArgumentParser(prog="demo", description="Slurm in a real Kubernetes on this machine.")
    parser.add_argument("--plain", action="store_true", help="plain manifests, without the operator")
    options = parser.parse_args(arguments)
    start = time.monotonic()
    try:
        check_host()
        cluster = Cluster("local")
        with Preparation(lanes(operated=not options.plain), STAGES) as preparation:
            say("1. A real Kubernetes on this machine: a control plane and two Nodes")
            preparation.wait_for("Kubernetes")
            cluster.up(nodes=2)
            say(f"2. Container images of Slurm {SLURM}")
            preparation.wait_for("Slurm")
            archives = images.ensure([f"slurm-{SLURM}"], say)[f"slurm-{SLURM}"]
            with step("load them into both Nodes"):
                cluster.load_images(archives)
            preparation.wait_for("operator")
            if not options.plain:
                with step("load what samples need, too"):
                    for archives in images.ensure(SAMPLES_NEED, say).values():
                        cluster.load_images(archives)
        if options.plain:
            _plain(cluster)
        else:
            _operated(cluster)
        say(f"Done after {time.monotonic() - start:.0f} s. To go on:")
        say('  eval "$(.venv/bin/python -m hack.localkube env)"   # kubectl for this cluster')
        if not options.plain:
            say("  kubectl get slurm -A                       # every object of the operator, with its status")
            say(f"  kubectl get pods -n {NAMESPACE}")
            say(f"  kubectl exec -n {NAMESPACE} compute-0 -- env SLURM_CONF=/run/slurm/conf/slurm.conf srun hostname")
            say(f"  kubectl scale -n {NAMESPACE} nodeset/compute --replicas=3")
            say(f"  kubectl describe -n {NAMESPACE} nodeset/compute       # why a pod waits")
        say("  make status; make demo-down")
    except (LocalKubeError, ImagesError, OSError) as error:
        say(f"demo: {error}")
        return 1
    return 0


def lanes(*, operated: bool) -> list[list[tuple[str, Build]]]:
    """Return what is built side by side, with the stage of the demo that needs it.

    The compiler keeps the processors busy for minutes, in which images mostly wait for the network. A lane per Debian
    suite; the packages of the Nodes come from the same place as those of the images.
    """
    debian_13: list[tuple[str, Build]] = [
        ("Kubernetes", debian.ensure),
        ("Kubernetes", lambda: images.ensure(["busybox"], say)),
    ]
    if operated:
        debian_13.append(("operator", lambda: images.ensure(["operator"], say)))
        debian_13.append(("operator", lambda: images.ensure(SAMPLES_NEED, say)))
    return [
        [("Kubernetes", lambda: build.ensure(build.KUBERNETES, build.HELM, build.PROVISIONER))],
        [("Slurm", lambda: images.ensure([f"slurm-{SLURM}"], say))],
        debian_13,
    ]


class Shown:
    """kubectl in the demo's namespace, with every command printed before it runs."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl

    def __call__(self, *arguments: str) -> str:
        """Show a command and what it prints."""
        say(f"$ kubectl {' '.join(arguments)}")
        output = self.quietly(*arguments)
        for line in output.rstrip().splitlines():
            say(f"  {line}")
        return output

    def quietly(self, *arguments: str) -> str:
        """Run a command without showing it."""
        return self._kubectl("--namespace", NAMESPACE, *arguments)

    def slurm(self, *arguments: str) -> str:
        """Show a Slurm command, run in the pod of the first node, and what it prints."""
        say(f"$ {' '.join(arguments)}")
        output = self.in_slurm(*arguments)
        for line in output.rstrip().splitlines():
            say(f"  {line}")
        return output

    def in_slurm(self, *arguments: str) -> str:
        """Run a Slurm command without showing it."""
        return self.quietly("exec", "compute-0", "--", "env", "SLURM_CONF=/run/slurm/conf/slurm.conf", *arguments)

    def wait(self, what: str, ready: Callable[[], bool], timeout: float = 180.0) -> None:
        """Wait, with the step shown."""
        with step(f"wait: {what}"):
            wait_for(what, ready, timeout)

    def idle(self) -> set[str]:
        """Return the nodes that Slurm calls idle."""
        lines = self.in_slurm("sinfo", "--noheader", "--Node", "--format=%N %T").splitlines()
        return {name for name, state in (line.split() for line in lines) if state == "idle"}

    def job(self, job: str) -> str:
        """Return what Slurm shows of a job."""
        return self.in_slurm("scontrol", "--oneliner", "show", "job", job)


def _operated(cluster: Cluster) -> None:
    say("3. The operator, by its chart")
    with step("build and load its image, helm install slurm-operator"):
        Installation(cluster).install()
    kubectl = cluster.kubectl
    kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
    shown = Shown(kubectl)
    say("4. A Cluster and a NodeSet of two nodes")
    shown("apply", "-f", str(SAMPLES / "cluster.yaml"), "-f", str(SAMPLES / "nodeset-compute.yaml"))
    shown.quietly("scale", "nodeset/compute", "--replicas=2")
    shown.wait("compute-0 and compute-1 are idle", lambda: shown.idle() >= {"compute-0", "compute-1"})
    shown("get", "clusters.slinky.slurm.net,nodesets")
    shown.slurm("sinfo")
    say("5. Jobs")
    shown.slurm("srun", "-N2", "hostname")
    job = _submit(shown, "sleep 1; hostname")
    shown.wait(f"job {job} is COMPLETED", lambda: "JobState=COMPLETED" in shown.job(job))
    say("6. A second NodeSet; nothing is restarted for it")
    shown("apply", "-f", str(SAMPLES / "nodeset-burst.yaml"))
    shown.wait("burst-0 is idle", lambda: "burst-0" in shown.idle())
    say("7. Two nodes more")
    shown("scale", "nodeset/compute", "--replicas=4")
    shown.wait("four nodes are idle", lambda: shown.idle() >= {f"compute-{n}" for n in range(4)})
    say("8. Down to one node, while jobs run on the first and the last: idle ones go, then the one with less to lose")
    _submit(shown, "sleep 30", "-w", "compute-0")
    job = _submit(shown, "sleep 12", "-w", "compute-3")
    shown.wait(f"job {job} runs", lambda: "JobState=RUNNING" in shown.job(job))
    shown("scale", "nodeset/compute", "--replicas=1")
    shown.wait("compute-1 and compute-2 are gone", lambda: not {"compute-1", "compute-2"} & set(_pods(shown)))
    say("   compute-3 waits for its job, and says so:")
    condition = "jsonpath={.status.conditions[?(@.type=='Draining')].message}"
    shown("get", "nodeset/compute", "-o", condition)
    shown.slurm("sinfo", "--list-reasons")
    shown.wait(f"job {job} is COMPLETED", lambda: "JobState=COMPLETED" in shown.job(job))
    shown.wait("compute-3 is gone", lambda: "compute-3" not in _pods(shown))
    shown("get", "nodesets,pods")


def _submit(shown: Shown, wrap: str, *options: str) -> str:
    return shown.slurm("sbatch", "--parsable", "--output=/tmp/%j.out", *options, f"--wrap={wrap}").strip()


def _pods(shown: Shown) -> list[str]:
    return shown.quietly("get", "pods", "-o", "name").replace("pod/", "").split()


def _plain(cluster: Cluster) -> None:
    say("3. slurmctld, slurmrestd and three slurmd pods")
    slurm = PlainSlurm(cluster.kubectl, SLURM)
    with step("apply the manifests"):
        slurm.apply()
    with step(f"wait until {', '.join(NODES)} are idle"):
        slurm.wait()
    say("4. Jobs")
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
    neutral_start.begin()
    sys.exit(main())
