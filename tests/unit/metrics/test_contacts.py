"""The client map and the caches, as a scrape shows them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from prometheus_client import CollectorRegistry

from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.cache.mirror import Mirror
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.resources import CLUSTERS, PODS, Resource
from slinky_operator.metrics.calls import SlurmCalls
from slinky_operator.metrics.contacts import Contacts, Watches
from slinky_operator.slurm.connection.clients import ClientMap
from slinky_operator.slurm.connection.contact import ContactState, Endpoint
from slurm_client import MintedToken
from slurm_client.testing import FakeSlurmrestd


@pytest.fixture
async def slurm() -> AsyncIterator[FakeSlurmrestd]:
    async with FakeSlurmrestd(key=b"k" * 32) as server:
        server.add_node("w-0", cpus=2, memory=256)
        server.add_node("kn-0", cpus=2, memory=256, state=["IDLE", "EXTERNAL"])
        server.add_node("kn-1", cpus=2, memory=256, state=["MIXED", "EXTERNAL", "DRAIN"])
        server.add_node("kn-2", cpus=2, memory=256, state=["IDLE", "EXTERNAL", "NOT_RESPONDING"])
        server.add_node("kn-3", cpus=2, memory=256, state=["ALLOCATED", "EXTERNAL"])
        yield server


async def test_a_slurm_that_answers_and_one_that_is_gone(slurm: FakeSlurmrestd) -> None:
    registry = CollectorRegistry()
    clients = ClientMap(OpenFence(), hook=SlurmCalls(registry))
    registry.register(Contacts(clients))
    where = {"namespace": "hpc", "cluster": "slurm"}

    def connected(trouble: str) -> float | None:
        return registry.get_sample_value("slurm_operator_slurm_connected", {**where, "trouble": trouble})

    states: asyncio.Queue[ContactState] = asyncio.Queue()
    clients.subscribe_contact(lambda _, contact: states.put_nowait(contact.state))
    try:
        await clients.put(
            "uid",
            "hpc",
            "slurm",
            endpoint=Endpoint(slurm.url, poll_interval=0.05, poll_interval_max=0.05),
            token=MintedToken(b"k" * 32, "root"),
            fingerprint="1",
        )
        assert await states.get() is ContactState.READY
        assert connected("") == 1
        assert registry.get_sample_value("slurm_operator_slurm_nodes", where) == 5
        for state in ("idle", "busy", "drained", "out"):
            assert registry.get_sample_value("slurm_operator_bridge_nodes", {**where, "state": state}) == 1
        age = registry.get_sample_value("slurm_operator_slurm_nodes_age_seconds", where)
        assert age is not None
        assert age >= 0
        queue = "slurm_operator_autoscaling_queue_age_seconds"
        assert registry.get_sample_value(queue, where) is None
        entry = clients.get("uid")
        assert entry is not None
        entry.queue_at = time.monotonic() - 5
        assert 5 <= (registry.get_sample_value(queue, where) or 0) < 300
        asked = {"operation": "get_nodes", "code": "200", "result": "ok"}
        assert registry.get_sample_value("slurm_operator_slurm_requests_total", asked)
        await slurm.stop()
        assert await states.get() is ContactState.UNREACHABLE
        assert connected("NoAnswer") == 0
    finally:
        await clients.close_all()


def test_caches_show_what_they_hold() -> None:
    class Client:
        """Never asked."""

    caches: dict[Resource, Mirror | Informer] = {
        PODS: Informer(Client(), PODS),  # type: ignore[arg-type]
        CLUSTERS: Mirror(Client(), CLUSTERS),  # type: ignore[arg-type]
    }
    caches[PODS].store.put({"metadata": {"name": "a", "namespace": "b", "resourceVersion": "1"}})
    registry = CollectorRegistry()
    registry.register(Watches(caches))
    assert registry.get_sample_value("slurm_operator_cache_objects", {"resource": str(PODS)}) == 1
    assert registry.get_sample_value("slurm_operator_cache_objects", {"resource": str(CLUSTERS)}) == 0
    # Before its first list a watch has heard nothing.
    assert registry.get_sample_value("slurm_operator_watch_silence_seconds", {"resource": str(PODS)}) is None
