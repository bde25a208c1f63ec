"""Hostile servers next to a healthy Cluster, with real HTTP and a real API server."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.kube.resources import SECRETS
from slurm_client.connection.intake import Intake
from tests.integration.cluster.conftest import Bench, applied, ready, wait_until
from tests.support.hostile import SECRET, WAYS, HostileServer

LIMIT = 256 * 1024
ONE_PIECE = 2 * 64 * 1024
LOOKS = 3
"""How often each of them is asked before the test is over."""


def unreachable(status: dict[str, Any]) -> bool:
    found = status.get("conditions") or ()
    return any(one["type"] == "ApiReachable" and one["status"] == "False" for one in found)


def asked(hostile: HostileServer, way: str, times: int) -> bool:
    return hostile.asked[way] >= times


@pytest.mark.slow_start
@pytest.mark.timeout(600)
@pytest.mark.full
async def test_hostile_servers_neither_hold_up_a_healthy_cluster_nor_show_what_they_say(bench: Bench) -> None:
    ways = [*WAYS, "ssh"]
    intake = Intake(LIMIT)
    async with HostileServer() as hostile, bench.operator(intake=intake) as operator:
        metadata = {"name": "mine", "annotations": {labels.ANNOTATION_SECRET_SERVER: hostile.url("")}}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"auth-token": "abc"}}
        await bench.kube.create(SECRETS, secret, bench.namespace)
        for way in ways:
            await bench.create({"server": hostile.url(way), "token": {"secretRef": "mine"}}, way)
        await bench.create()
        await bench.until(ready)
        for number, way in enumerate(ways):
            # The healthy one is changed again and again, and each change goes through.
            seen = hostile.asked[way]
            generation = await bench.edit({"extraConf": f"KillWait={30 + number}"})
            await bench.until(partial(applied, generation))
            # One that drips is asked again when the time for an answer is over.
            await wait_until(partial(asked, hostile, way, min(LOOKS, seen + 1)))
        for way in ways:
            await bench.until(unreachable, way)
            found = await bench.cluster(way)
            assert SECRET not in str(found["status"])
            entry = operator.clients.find(bench.namespace, way)
            assert entry is not None
            assert entry.client.bytes_received <= entry.client.calls * (LIMIT + ONE_PIECE)
        assert intake.taken <= intake.at_once
    assert intake.taken == 0
