"""The ConfigMap for nodes outside Kubernetes follows the address that a load balancer gets, with a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from slinky_operator.kube.resources import CONFIGMAPS, SERVICES
from tests.integration.cluster.conftest import Bench, ready

NAME = "slurm-controller-outside"
"""Of the Service and of the ConfigMap."""


def has_address(address: str, texts: Mapping[str, str]) -> bool:
    return texts.get("address") == address


async def until_told(bench: Bench, holds: Callable[[Mapping[str, str]], bool]) -> Mapping[str, str]:
    """Wait for texts of the ConfigMap."""
    async with asyncio.timeout(120):
        while True:
            found = (await bench.kube.list(CONFIGMAPS, bench.namespace)).items
            none: Mapping[str, str] = {}
            texts = next((one["data"] for one in found if one["metadata"]["name"] == NAME), none)
            if holds(texts):
                return texts
            await asyncio.sleep(0.05)


async def test_the_address_follows_the_load_balancer(bench: Bench) -> None:
    await bench.create({"controller": {"service": {"spec": {"type": "LoadBalancer"}}}})
    async with bench.operator():
        await bench.until(ready)
        texts = await until_told(bench, partial(has_address, "ADDRESS"))
        assert "the load balancer has no address yet" in texts["steps"]
        for ingress, shown in (
            ({"ip": "192.0.2.7"}, "192.0.2.7"),
            ({"hostname": "slurm.example.org"}, "ADDRESS"),
            ({"ip": "2001:db8::7"}, "2001:db8::7"),
        ):
            status = {"loadBalancer": {"ingress": [ingress]}}
            await bench.kube.patch_status(SERVICES, NAME, status, bench.namespace)
            texts = await until_told(bench, partial(has_address, next(iter(ingress.values()))))
            assert texts["hosts"].split()[0] == shown
        await bench.edit({"controller": None})
        await until_told(bench, lambda texts: not texts)
