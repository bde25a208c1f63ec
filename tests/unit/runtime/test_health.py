"""What is reported to the kubelet and Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from slinky_operator.metrics.process import Metrics
from slinky_operator.runtime.health import HealthServer


@pytest.fixture
async def server() -> AsyncIterator[tuple[HealthServer, Metrics]]:
    metrics = Metrics()
    server = HealthServer(metrics.registry, host="127.0.0.1", port=0)
    await server.start()
    yield server, metrics
    await server.stop()


async def get(server: HealthServer, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{server.port}{path}") as answer:
        return answer.status, await answer.text()


async def test_readiness_waits_for_caches_and_liveness_does_not(server: tuple[HealthServer, Metrics]) -> None:
    health, _ = server
    synced = asyncio.Event()
    health.add_readiness("pods", synced)
    health.add_liveness("workers", lambda: None)
    assert await get(health, "/readyz") == (503, "[+]workers ok\n[-]pods failed: not yet\nfailed\n")
    assert (await get(health, "/livez"))[0] == 200
    synced.set()
    assert await get(health, "/readyz") == (200, "[+]workers ok\n[+]pods ok\nok\n")


async def test_dead_workers_and_broken_checks_fail_liveness(server: tuple[HealthServer, Metrics]) -> None:
    health, _ = server

    def broken() -> str | None:
        raise KeyError("x")

    health.add_liveness("workers", lambda: "2 of 4 have ended")
    health.add_liveness("broken", broken)
    for path in ("/livez", "/healthz"):
        status, text = await get(health, path)
        assert status == 503
        assert "[-]workers failed: 2 of 4 have ended" in text
        assert "[-]broken failed: KeyError: 'x'" in text


async def test_metrics_tell_of_controllers_requests_and_leadership(server: tuple[HealthServer, Metrics]) -> None:
    health, metrics = server
    figures = metrics.controller("nodeset")
    figures.reconciled("ok", 0.02)
    figures.depth(3)
    figures.waited(0.5)
    figures.retried()
    figures.workers(2)
    metrics.kubernetes_calls("create", "pods", "Fenced", 0.02)
    metrics.leader.set(1)
    metrics.loop_lag.observe(0.001)
    status, text = await get(health, "/metrics")
    assert status == 200
    for line in (
        'slurm_operator_reconcile_total{controller="nodeset",outcome="ok"} 1.0',
        'slurm_operator_reconcile_total{controller="nodeset",outcome="error"} 0.0',
        'slurm_operator_queue_depth{controller="nodeset"} 3.0',
        'slurm_operator_queue_retries_total{controller="nodeset"} 1.0',
        'slurm_operator_workers_busy{controller="nodeset"} 2.0',
        'slurm_operator_kubernetes_requests_total{outcome="Fenced",resource="pods",verb="create"} 1.0',
        'slurm_operator_kubernetes_request_duration_seconds_bucket{le="0.025",verb="create"} 1.0',
        "slurm_operator_leader 1.0",
        "slurm_operator_event_loop_lag_seconds_count 1.0",
    ):
        assert line in text
