"""slurmds of both releases outside Kubernetes, by the texts for their administrators: what joins, and what is said."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import suppress

import pytest

from hack.images.rootfs import ensure
from hack.machine import ports
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.parts.external_nodes import manifests as outside
from slinky_operator.slurm import naming
from tests.support.daemons import DaemonError, short_host_name
from tests.support.metal import Metal
from tests.support.slurm_host import SlurmHost

pytestmark = pytest.mark.timeout(600)

CLUSTER = Cluster.parse({"metadata": {"name": "slurm", "namespace": "site", "uid": "u"}, "spec": {}})
HOST = naming.controller_host(CLUSTER.name, CLUSTER.namespace)
NODE = "metal-1"


@pytest.fixture(params=["24.11", "26.05"])
def slurm(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    """slurmctld of each release, under a name that only it knows, with a node outside."""
    (port,) = ports.hold(1)
    host = SlurmHost(ensure(request.param), f"NodeName={NODE} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=64")
    conf = host.configuration / "slurm.conf"
    conf.write_text(conf.read_text().replace("(127.0.0.1)", f"({HOST})"))
    (host.folder / "etc" / "hosts").write_text(f"127.0.0.1 localhost {short_host_name()} {HOST}\n")
    try:
        host.start_slurmctld()
        yield host
    finally:
        host.close()


@pytest.fixture
def texts(slurm: SlurmHost) -> dict[str, str]:
    """What the administrator reads, but for the port, which is another one here."""
    service = {"spec": {"externalIPs": ["127.0.0.1"]}}
    data: dict[str, str] = outside.config_map(CLUSTER, service, "")["data"]
    port = f":{naming.SLURMCTLD_PORT}\n"
    assert data["slurmd"].endswith(port)
    return {**data, "slurmd": data["slurmd"].replace(port, f":{slurm.slurmctld_port}\n")}


@pytest.fixture
def metal(slurm: SlurmHost, texts: dict[str, str]) -> Iterator[Metal]:
    machine = Metal(slurm.root, texts["hosts"])
    yield machine
    machine.close()


def key(slurm: SlurmHost) -> bytes:
    return (slurm.configuration / naming.SLURM_KEY).read_bytes()


def has_registered(slurm: SlurmHost) -> bool:
    """Whether slurmd has reported its version; that slurmctld reaches it is not enough."""
    return " Version=" in slurm.run("scontrol", "--oneliner", "show", "node", NODE).stdout


def test_one_with_another_key_says_so_and_joins_once_it_has_the_right_one(
    slurm: SlurmHost, metal: Metal, texts: dict[str, str]
) -> None:
    metal.store_key(naming.SLURM_KEY, secrets.token_bytes(64))
    metal.start(NODE, texts["slurmd"])
    refused = "_fetch_child: failed to fetch remote configs: Protocol authentication error"
    metal.wait_for(lambda: refused in metal.said(), "slurmd says that the key is wrong")
    metal.wait_for(lambda: "failed to load configs. Retrying in 10 seconds." in metal.said(), "slurmd goes on")
    metal.store_key(naming.SLURM_KEY, key(slurm))
    metal.wait_for(lambda: has_registered(slurm), "slurmd joins", 240)
    job = slurm.sbatch("echo $SLURM_JOB_ID > /var/spool/ran", f"--nodelist={NODE}")
    slurm.wait_for(lambda: slurm.job_state(job) == "COMPLETED", "the job ends", 240)
    assert (metal.spool / "ran").read_text().strip() == str(job)


def test_one_that_does_not_know_slurmctld_by_name_says_so_and_does_not_register(
    slurm: SlurmHost, metal: Metal, texts: dict[str, str]
) -> None:
    metal.know("")
    metal.store_key(naming.SLURM_KEY, key(slurm))
    metal.start(NODE, texts["slurmd"].replace(HOST, "127.0.0.1"))
    metal.wait_for(lambda: f'slurm_set_addr: Unable to resolve "{HOST}"' in metal.said(), "slurmd says it", 240)
    assert not has_registered(slurm)


def test_one_without_a_node_of_its_name_says_so(slurm: SlurmHost, metal: Metal, texts: dict[str, str]) -> None:
    metal.store_key(naming.SLURM_KEY, key(slurm))
    command = texts["slurmd"].replace('"$(hostname -s)"', "metal-9")
    # It may have ended before anybody sees that it runs.
    with suppress(DaemonError):
        metal.start("metal-9", command)
    words = 'lookup failure for node "metal-9"'
    # Asked of the others: this one may end.
    slurm.wait_for(lambda: words in metal.said(), "slurmd says that nobody knows its node", 240)
