"""Nodes outside Kubernetes that do not resolve: a Cluster with many of them works, and names them."""

from __future__ import annotations

import pytest

from hack.localkube.kubectl import wait_for
from slinky_operator.slurm.conf import parse
from tests.support.configuring import config_applied, edit, rendered, wait_live
from tests.support.slurm_in_kubernetes import PATIENCE, NewSlurm, SlurmInKubernetes

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("operator"), pytest.mark.full]

TOLD = "Processing Reconfiguration Request"

NODES = [
    # Looked up one after the other, ten seconds each, these would take longer than a start ever could.
    {"name": "nowhere-[01-35]", "config": "CPUs=4 RealMemory=1000"},
    # slurmctld's pod alone knows this one.
    {"name": "alias-1", "config": "CPUs=4 RealMemory=1000"},
    {"name": "address-1", "config": "CPUs=4 RealMemory=1000 NodeAddr=192.0.2.1"},
]
ALIASES = {"spec": {"hostAliases": [{"ip": "192.0.2.2", "hostnames": ["alias-1"]}]}}


@pytest.fixture(scope="module")
def slurm(new_slurm: NewSlurm) -> SlurmInKubernetes:
    """A Cluster that has had those nodes from its first day."""
    instance = new_slurm("nowhere")
    instance.create(
        controller={"image": instance.image("slurmctld"), "template": ALIASES},
        nodes=NODES,
        partitions=[{"name": "metal", "nodes": ["nowhere-[01-35]", "alias-1", "address-1"]}],
    )
    instance.wait_ready()
    return instance


def told(slurm: SlurmInKubernetes) -> int:
    """How often slurmctld was told to read its files; each time it says so once, or twice."""
    pod = f"{slurm.name}-controller-0"
    lines = slurm.kube("logs", pod, "--container=slurmctld", "--tail=-1").splitlines()
    return len({line.split("]")[0] for line in lines if TOLD in line and line.startswith("[")})


def is_future(slurm: SlurmInKubernetes, node: str) -> bool:
    """Whether slurmctld shall not look for a node yet."""
    (line,) = [line for key, line in parse(rendered(slurm)).nodes.items() if node in key.split(",")]
    return line.get("State") == "FUTURE"


def restarts(slurm: SlurmInKubernetes) -> int:
    statuses = slurm.get("pod", f"{slurm.name}-controller-0")["status"]["containerStatuses"]
    return sum(int(one["restartCount"]) for one in statuses)


def test_it_is_ready_with_the_others_and_says_which_have_no_address(slurm: SlurmInKubernetes) -> None:
    wait_for("the others", lambda: {"alias-1", "address-1"} <= slurm.states().keys(), PATIENCE)
    assert not [name for name in slurm.states() if name.startswith("nowhere-")]
    wait_for("the names", lambda: names_others(slurm, 25), PATIENCE)
    assert "nowhere-01, nowhere-02" in slurm.condition("cluster", slurm.name, "Degraded")["message"]
    wait_for("the Event", lambda: any("nowhere-01" in line for line in slurm.events(slurm.name)), PATIENCE)
    assert restarts(slurm) == 0


def names_others(slurm: SlurmInKubernetes, count: int) -> bool:
    """Whether the configuration is live, and the nodes without an address are named, this many beyond those shown."""
    degraded = slurm.condition("cluster", slurm.name, "Degraded")
    is_named = degraded["reason"] == "NodesWithoutAddress" and f"and {count} more" in degraded["message"]
    return is_named and config_applied(slurm)["status"] == "True"


def test_each_configuration_is_loaded_by_one_reconfigure(slurm: SlurmInKubernetes) -> None:
    before = told(slurm)
    wait_live(slurm, edit(slurm, extraConf="KillWait=17"))
    # What a daemon writes comes to its pod's log some time later.
    wait_for("the line of it", lambda: told(slurm) > before, PATIENCE)
    assert told(slurm) == before + 1
    assert restarts(slurm) == 0


def test_a_node_comes_when_its_name_has_an_address(slurm: SlurmInKubernetes) -> None:
    metadata = {"name": "nowhere-07", "namespace": slurm.namespace}
    spec = {"ports": [{"port": 6818}]}
    slurm.kubectl.apply([{"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}])
    wait_for("its node", lambda: "nowhere-07" in slurm.states(), PATIENCE)
    assert not is_future(slurm, "nowhere-07")
    assert is_future(slurm, "nowhere-08")
    wait_for("the others by name", lambda: names_others(slurm, 24), PATIENCE)
    # It has been live: whatever becomes of its name, it stays.
    slurm.kube("delete", "service", "nowhere-07")
    wait_live(slurm, edit(slurm, extraConf="KillWait=18"))
    assert not is_future(slurm, "nowhere-07")
