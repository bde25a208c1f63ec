"""How slurmctld of both versions handles a slurmd that registers badly: the basis of `registration`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hack.images.rootfs import ensure
from slinky_operator.nodeset.slurm_nodes import drains, identity, registration
from slurm_client import MintedToken, SlurmClient, errors
from slurm_client.models import Node
from tests.support.daemons import DaemonError
from tests.support.slurm_host import SlurmHost

pytestmark = pytest.mark.timeout(300)

TAG = "ns/a"


@pytest.fixture(params=["24.11", "26.05"])
async def slurm(request: pytest.FixtureRequest) -> AsyncIterator[tuple[SlurmHost, SlurmClient]]:
    host = SlurmHost(ensure(request.param), extra_conf="GresTypes=gpu")
    with host:
        async with SlurmClient(host.url, MintedToken(host.jwt_key, "root")) as client:
            yield host, client


async def shown(client: SlurmClient, name: str) -> Node:
    return next(node for node in await client.nodes() if node.name == name)


def state(host: SlurmHost, name: str) -> str:
    return host.run("scontrol", "--oneliner", "show", "node", name).stdout.split("State=")[1].split()[0]


async def test_slurm_drains_and_nothing_but_a_good_registration_mends(slurm: tuple[SlurmHost, SlurmClient]) -> None:
    host, client = slurm
    host.add_node("big", memory=99999999, extra=TAG, wait=False)
    host.wait_for(lambda: "INVALID_REG" in host.run("scontrol", "show", "nodes").stdout, "big is rejected")
    big = await shown(client, "big")
    assert big.reason.startswith("Low RealMemory (reported:")
    assert registration.is_invalid(big)
    assert registration.is_slurms_drain(big)
    assert not drains.is_foreign(big)
    with pytest.raises(errors.SlurmError):
        await client.undrain_nodes(["big"])

    # Another slurmd under the same record is measured by what stands there.
    host.stop("big")
    host.add_node("big", extra=TAG, wait=False)
    host.wait_for(lambda: "NOT_RESPONDING" not in state(host, "big"), "it has registered")
    assert registration.is_invalid(await shown(client, "big"))
    host.stop("big")
    await client.delete_nodes(["big"])
    host.add_node("big", extra=TAG)
    assert (await shown(client, "big")).state.flags.isdisjoint({"DRAIN", "INVALID_REG"})


async def test_words_of_a_person_and_of_slurm_write_over_each_other_while_a_job_goes_on(
    slurm: tuple[SlurmHost, SlurmClient],
) -> None:
    host, client = slurm
    host.add_node("gpu", extra=TAG)
    job = host.sbatch("sleep 1000", "-w", "gpu")
    host.wait_for(lambda: host.job_state(job) == "RUNNING", "the job runs")
    host.run("scontrol", "update", "nodename=gpu", "gres=gpu:1")
    host.run("scontrol", "reconfigure")
    host.wait_for(lambda: "INVALID_REG" in state(host, "gpu"), "gpu is rejected")
    node = await shown(client, "gpu")
    assert node.reason == "gres/gpu count reported lower than configured (0 < 1)"
    assert registration.is_slurms_drain(node)
    assert not drains.is_drained(node, ())
    assert host.job_state(job) == "RUNNING"

    host.run("scontrol", "update", "nodename=gpu", "reason=bad board")
    assert drains.is_foreign(await shown(client, "gpu"))
    host.run("scontrol", "reconfigure")
    host.wait_for(lambda: "bad board" not in host.run("scontrol", "show", "node", "gpu").stdout, "Slurm says it again")
    assert registration.is_slurms_drain(await shown(client, "gpu"))

    host.run("scontrol", "update", "nodename=gpu", "gres=")
    host.run("scontrol", "reconfigure")
    host.wait_for(lambda: "INVALID_REG" not in state(host, "gpu"), "gpu is accepted")
    mended = await shown(client, "gpu")
    assert mended.is_drain
    assert registration.is_stale_drain(mended)
    await client.undrain_nodes(["gpu"])
    assert not (await shown(client, "gpu")).is_drain
    assert host.job_state(job) == "RUNNING"


async def test_a_static_node_keeps_a_pod_of_its_name_away(slurm: tuple[SlurmHost, SlurmClient]) -> None:
    """As in a slurm.conf that Google's Cluster Toolkit writes; and what the operator says to write instead."""
    host, client = slurm
    host.write_conf("GresTypes=gpu\nNodeName=gke-0 State=CLOUD CPUs=1 RealMemory=256")
    host.reconfigure()

    def start() -> None:
        host.add_node("gke-0", extra=TAG, configless=True, wait=False)
        host.wait_for(lambda: False, "slurmd ends")

    with pytest.raises(DaemonError, match="Duplicated NodeName gke-0"):
        start()
    record = await shown(client, "gke-0")
    assert (record.is_dynamic, record.extra) == (False, "")
    assert identity.bond(record, owner=TAG, pod_uid="u", slurmd_started_at=None) is identity.RecordOwnership.FOREIGN
    host.stop("gke-0")

    host.write_conf("GresTypes=gpu\nNodeSet=gke Feature=gke\nPartitionName=gke Nodes=gke")
    host.reconfigure()
    host.add_node("gke-0", extra=TAG, features=("gke",), configless=True)
    assert identity.is_tagged(await shown(client, "gke-0"), TAG)
    assert host.run("sinfo", "--noheader", "--partition=gke", "--format=%N").stdout.split() == ["gke-0"]
