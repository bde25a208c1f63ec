"""A slurmd outside Kubernetes, on a machine with nothing but what the operator tells its administrator."""

from __future__ import annotations

import base64
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hack.images import rootfs
from hack.installing.operator import Installation
from hack.localkube.kubectl import wait_for
from hack.machine.progress import say
from tests.support.metal import Metal, network
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(600), pytest.mark.full]

NODE = "metal-1"
OUTSIDE = "slurm-controller-outside"
FORWARDER = "192.0.2.1"
"""An address at which the site forwards slurmctld's port to that of the NodePort (RFC 5737: nobody's)."""


@dataclass(frozen=True)
class Site:
    """A Cluster, and a machine beside it."""

    slurm: SlurmInKubernetes
    process: int
    """In whose network the machine is."""
    machine: Metal


@pytest.fixture(scope="module")
def site(new_slurm: NewSlurm, operator: Installation) -> Iterator[Site]:
    """A Cluster with a node in a pod and one outside, in one partition."""
    slurm = new_slurm("metal")
    addresses = slurm.kubectl.get("nodes")["items"][0]["status"]["addresses"]
    kubernetes = next(one["address"] for one in addresses if one["type"] == "InternalIP")
    with network(NODE) as process:
        address = operator.cluster.plug_in("metal", process)
        slurm.create(
            controller={
                "image": slurm.image("slurmctld"),
                "service": {"spec": {"type": "NodePort", "externalIPs": [kubernetes]}},
            },
            nodes=[{"name": NODE, "config": f"NodeAddr={address} CPUs=1 RealMemory=64"}],
            partitions=[{"name": "both", "nodeSets": ["compute"], "nodes": [NODE]}],
        )
        slurm.nodeset("compute", 1)
        slurm.wait_ready()
        wait_for("what is to be known outside", lambda: "version" in texts(slurm), PATIENCE)
        told = texts(slurm)
        words = shlex.split(told["key"])
        assert (words[0], words[-5:-1]) == ("kubectl", ["|", "base64", "-d", ">"])
        machine = Metal(rootfs.ensure(slurm.slurm, say), told["hosts"], process=process, host_name=NODE)
        try:
            machine.store_key(words[-1], base64.b64decode(slurm.kubectl(*words[1:-5])))
            yield Site(slurm, process, machine)
        finally:
            machine.close()


def texts(slurm: SlurmInKubernetes) -> dict[str, str]:
    """What the ConfigMap for administrators of nodes outside says; nothing before it is there."""
    items = slurm.get("configmaps")["items"]
    found = [one["data"] for one in items if one["metadata"]["name"] == OUTSIDE]
    return dict(found[0]) if found else {}


def joins(site: Site) -> None:
    """Start slurmd on the machine, and wait until slurmctld knows it and reaches it."""
    slurm = site.slurm
    site.machine.start_here(texts(slurm)["slurmd"])
    wait_for("its registration", lambda: slurm.node(NODE).get("Version", "").startswith(slurm.slurm), PATIENCE)
    slurm.wait_idle_nodes(NODE, "compute-0")


def test_it_joins_and_runs_steps_together_with_a_pod(site: Site) -> None:
    joins(site)
    slurm = site.slurm
    shown = slurm.run("srun", "-p", "both", "-N2", "-n2", "hostname", pod="compute-0")
    assert sorted(shown.split()) == ["compute-0", NODE]
    options = ("--parsable", "--output=/dev/null", "--chdir=/tmp", "--partition=both", f"--nodelist={NODE}")
    job = slurm.control("sbatch", *options, "--wrap=echo $SLURM_JOB_ID > /var/spool/ran").strip()
    slurm.wait_job(job, "COMPLETED")
    assert slurm.job(job)["BatchHost"] == NODE
    assert (site.machine.spool / "ran").read_text().strip() == job


def test_the_operator_leaves_it_alone(site: Site) -> None:
    slurm = site.slurm
    slurm.wait_seen("compute", readyReplicas=1, desired=1)
    slurm.scale("compute", 0)
    slurm.wait_gone("compute-0")
    assert slurm.states() == {NODE: "idle"}
    assert slurm.get("nodeset", "compute")["status"]["nodes"]["drained"] == 0
    slurm.scale("compute", 1)
    slurm.wait_idle_nodes("compute-0", NODE)


def test_it_joins_through_a_forwarded_node_port_too(site: Site) -> None:
    slurm = site.slurm
    service = slurm.get("service", OUTSIDE)["spec"]
    port = next(one["nodePort"] for one in service["ports"])
    known = texts(slurm)["hosts"]
    node, _, names = known.strip().partition(" ")
    forward = ["iptables", "-t", "nat", "-A", "OUTPUT", "-p", "tcp", "-d", FORWARDER, "--dport", "6817"]
    forward += ["-j", "DNAT", "--to-destination", f"{node}:{port}"]
    subprocess.run(["nsenter", "--target", str(site.process), "--net", "--", *forward], check=True)
    site.machine.stop("slurmd")
    site.machine.know(f"{FORWARDER} {names}\n")
    site.machine.start_here(texts(slurm)["slurmd"])
    slurm.wait_idle_nodes(NODE)
    options = ("--parsable", "--output=/dev/null", "--chdir=/tmp", "--partition=both", f"--nodelist={NODE}")
    job = slurm.control("sbatch", *options, "--wrap=true").strip()
    slurm.wait_job(job, "COMPLETED")


def test_a_deleted_cluster_waits_for_its_job(site: Site) -> None:
    slurm = site.slurm
    options = ("--parsable", "--output=/dev/null", "--chdir=/tmp", "--partition=both", f"--nodelist={NODE}")
    runs = "until [ -e /var/spool/may-end ]; do sleep 0.2; done; echo $SLURM_JOB_ID > /var/spool/ended"
    job = slurm.control("sbatch", *options, f"--wrap={runs}").strip()
    slurm.wait_job(job, "RUNNING")
    slurm.kube("delete", "cluster", slurm.name, "--wait=false")
    slurm.wait_gone("compute-0")
    wait_for(
        "the job's name in the condition",
        lambda: f"job {job} may run on" in slurm.condition("cluster", slurm.name, "Deleting").get("message", ""),
        PATIENCE,
    )
    assert slurm.get("cluster", slurm.name)["status"]["summary"] == "Deleting, jobs outside Kubernetes"
    assert slurm.job_state(job) == "RUNNING"
    (site.machine.spool / "may-end").touch()
    wait_for("the Cluster's end", lambda: not slurm.get("clusters")["items"], PATIENCE)
    assert (site.machine.spool / "ended").read_text().strip() == job
