"""How slurmctld is told to read its files, on a real one that is slow to answer."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hack.images import rootfs
from slinky_operator.cluster.actions import Reload
from slinky_operator.cluster.asking import reload
from slinky_operator.slurm.clients import ClusterClient
from slurm_client import MintedToken, SlurmClient
from tests.support.slurm_host import SlurmHost

STARTED = "Running as primary controller"


def starts(host: SlurmHost) -> int:
    """How often slurmctld has started; it tells it twice, to its log and to its standard error, which are one here."""
    return host.logs(10_000).count(STARTED) // 2


@pytest.mark.timeout(600)
@pytest.mark.parametrize("series", ["24.11", "26.05"])
async def test_a_slurmctld_that_looks_for_names_of_nodes_is_told_once_and_waited_for(series: str) -> None:
    with SlurmHost(rootfs.ensure(series)) as host:
        async with SlurmClient(host.url, token=MintedToken(host.jwt_key)) as slurm:
            client = cast("ClusterClient", SimpleNamespace(client=slurm, hurry=lambda: None))
            host.write_conf("NodeName=nowhere-0 CPUs=1\nPartitionName=late Nodes=ALL State=UP\n")
            wanted: dict[str, Any] = {"pod_uid": "pod", "change": "1", "partitions": {"all": "ALL", "late": "ALL"}}
            host.wait_for(lambda: starts(host) == 1, "its start is told")
            said = await reload(client, Reload(**wanted), time.monotonic)
            first = said
            while not said.proven:
                assert said.lost, said.why
                said = await reload(client, Reload(**wanted, since=said.answered), time.monotonic)
            assert first.proven or first.answered is not None
            host.wait_for(lambda: starts(host) > 1, "its second start is told")
            assert starts(host) == 2
