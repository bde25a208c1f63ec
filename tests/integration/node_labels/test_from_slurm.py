"""Labels of Nodes by what a real Slurm shows of its nodes there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from hack.images.rootfs import ensure
from hack.machine import ports
from slinky_api import labels
from slinky_operator.kube.resources import NODES, PODS, SERVICEACCOUNTS
from slinky_operator.slurm.connection.contact import Endpoint
from slurm_client import MintedToken
from tests.integration.node_labels.conftest import PREFIX, Site
from tests.support.slurm_host import SlurmHost

CLUSTER = "uid-of-the-cluster"
WITH_GRES = "GresTypes=licence\nPartitionName=short Nodes=ALL"


@pytest.fixture(scope="module", params=["24.11", "26.05"])
def host(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    """One Slurm with one node that has GRES."""
    (port,) = ports.hold(1)
    slurm = SlurmHost(ensure(request.param), extra_conf=WITH_GRES)
    slurm.write_file("gres.conf", "Name=licence Type=big Count=4\n")
    with slurm as cluster:
        line = f"Port={port} CPUs=1 RealMemory=256 Features=all,avx Gres=licence:big:4"
        command = ["slurmd", "-D", "-Z", "-N", "compute-0", "-f", "/etc/slurm/slurm.conf", "--conf", line]
        cluster.start_slurmd("compute-0", command)
        yield cluster


@pytest.fixture
async def on_slurm(site: Site, host: SlurmHost) -> AsyncIterator[Site]:
    """The same with a connection to it."""
    pod = {
        "metadata": {
            "name": "compute-0",
            "labels": {
                labels.LABEL_NODESET_UID: "uid-of-the-nodeset",
                labels.LABEL_CLUSTER_UID: CLUSTER,
                labels.LABEL_CLUSTER_NAME: "slurm",
            },
        },
        "spec": {
            "nodeName": site.nodes[0],
            "automountServiceAccountToken": False,
            "containers": [{"name": "slurmd", "image": "none"}],
        },
    }
    _ = await site.kube.apply(SERVICEACCOUNTS, {"metadata": {"name": "default", "namespace": site.namespace}})
    _ = await site.kube.create(PODS, pod, site.namespace)
    await connect(site, host)
    yield site
    await set_features(host, "all,avx")


async def set_features(host: SlurmHost, words: str) -> None:
    given = f"availablefeatures={words}", f"activefeatures={words}"
    _ = await asyncio.to_thread(host.run, "scontrol", "update", "nodename=compute-0", *given)


async def connect(site: Site, host: SlurmHost) -> None:
    endpoint = Endpoint(host.url, timeout=120.0, poll_interval=0.1, poll_interval_max=0.5)
    token = MintedToken(host.jwt_key, "slurm")
    _ = await site.slurm.put(CLUSTER, site.namespace, "slurm", endpoint=endpoint, token=token, fingerprint="1")


SHOWN = {
    "workload-manager": "slurm",
    "node": "compute-0",
    "node.compute-0": "true",
    "partition.all": "true",
    "partition.short": "true",
    "feature.all": "true",
    "feature.avx": "true",
    "gres.licence": "4",
    "gres.licence.big": "4",
}


async def test_labels_follow_slurm_and_go_with_the_pod(on_slurm: Site, host: SlurmHost) -> None:
    site = on_slurm
    await site.until(SHOWN, {})
    await set_features(host, "all,k8s/zone=a")
    fewer = {name: value for name, value in SHOWN.items() if name != "feature.avx"}
    await site.until(fewer, {})
    _, reason, message = await site.until_told(lambda told: told[0] == "ConfigMap slurm-config")
    assert reason == "NodeLabelsLeftOut"
    assert "feature k8s/zone=a" in message
    assert await site.has(1) == ({}, {})

    _ = await site.kube.delete(PODS, "compute-0", site.namespace, uid=None, grace_seconds=0)
    await site.until({}, {})


async def test_what_slurm_has_shown_stays_while_it_is_not_connected(on_slurm: Site, host: SlurmHost) -> None:
    site = on_slurm
    await site.until(SHOWN, {})
    await site.slurm.close(CLUSTER)
    # The labels are there after a pass that sees no Slurm, and after another one.
    await site.config_map(f"{site.nodes[0]}: {{labels: {{rack: r1}}}}")
    await site.until({**SHOWN, "rack": "r1"}, {})
    _ = await site.kube.merge_patch(NODES, site.nodes[0], {"metadata": {"labels": {f"{PREFIX}rack": None}}})
    await site.until({**SHOWN, "rack": "r1"}, {})
    await connect(site, host)
    await site.config_map("")
    await site.until(SHOWN, {})
