"""Objects of a Cluster that somebody has changed, with a real API server: an apply does not undo every change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.kube.resources import CONFIGMAPS, STATEFULSETS, Resource
from tests.integration.cluster.conftest import Bench, passes, ready

pytestmark = pytest.mark.long

ADDED = {"data": {"plugstack.conf": "required nothing.so\n"}}
SOMEBODY = {"metadata": {"labels": {labels.LABEL_APP_MANAGED_BY: "somebody"}}}


async def shows(bench: Bench, resource: Resource, name: str, holds: Callable[[Any], bool]) -> Any:
    """Wait until the API server shows an object as expected."""
    async with asyncio.timeout(120):
        while True:
            found = await bench.kube.get(resource, name, bench.namespace)
            if holds(found):
                return found
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("name", ["slurm-config", "slurm-config-good"])
async def test_a_file_that_somebody_adds_is_taken_out(bench: Bench, name: str) -> None:
    await bench.create()
    async with bench.operator() as operator:
        await bench.until(ready)
        before = (await bench.kube.get(CONFIGMAPS, name, bench.namespace))["data"]
        _ = await bench.kube.merge_patch(CONFIGMAPS, name, ADDED, bench.namespace)
        _ = await shows(bench, CONFIGMAPS, name, lambda found: found["data"] == before)
        status = (await bench.until(ready))["status"]
        assert status["config"]["hash"] == status["config"]["appliedHash"]
        # Then it rests.
        for _ in range(20):
            operator.requests.clear()
            await passes(operator, (bench.namespace, "slurm"), 5)
            if not operator.writes:
                break
        assert operator.writes == []


async def test_a_statefulset_that_no_cache_shows_gets_its_label_and_nothing_else(bench: Bench) -> None:
    await bench.create()
    name = "slurm-controller"
    async with bench.operator():
        await bench.until(ready)
        before = await bench.kube.get(STATEFULSETS, name, bench.namespace)
        _ = await bench.kube.merge_patch(STATEFULSETS, name, SOMEBODY, bench.namespace)
        own = before["metadata"]["labels"]
        found = await shows(bench, STATEFULSETS, name, lambda one: one["metadata"]["labels"] == own)
        assert found["metadata"]["generation"] == before["metadata"]["generation"]
        assert found["spec"] == before["spec"]
