"""A ServiceMonitor is written where the API server serves that kind; where it does not, the Cluster says so."""

from __future__ import annotations

from typing import Any

from slinky_operator.cluster.parts.monitoring.writes import NOT_SERVED
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CUSTOMRESOURCEDEFINITIONS, SERVICEMONITORS, SERVICES
from tests.integration.cluster.conftest import Bench, message, passes, reason
from tests.integration.cluster.harness import Running

NAME = "slurm-controller-metrics"
SPEC = {"metrics": {"enabled": True, "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}}}
DEFINITION: Object = {
    "metadata": {"name": str(SERVICEMONITORS)},
    "spec": {
        "group": SERVICEMONITORS.group,
        "names": {"kind": SERVICEMONITORS.kind, "plural": SERVICEMONITORS.plural},
        "scope": "Namespaced",
        "versions": [
            {
                "name": SERVICEMONITORS.version,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}
"""As much of the kind as it takes to store one."""


def is_degraded(status: dict[str, Any], why: str) -> bool:
    return reason("Degraded", "ChildRefused")(status) and why in message(status, "Degraded")


def attempts(operator: Running) -> int:
    """How often a ServiceMonitor was written, or tried to be."""
    return sum("servicemonitors" in resource for _, resource, _ in operator.writes)


async def is_left_alone(operator: Running, key: tuple[str, str]) -> bool:
    """Whether passes after the one that is under way write it no more."""
    await passes(operator, key, 1)
    before = attempts(operator)
    await passes(operator, key, 5)
    return attempts(operator) == before


async def test_a_monitor_is_written_once_its_kind_is_served(bench: Bench, kube: KubeClient) -> None:
    await bench.create(SPEC)
    key = (bench.namespace, "slurm")
    async with bench.operator() as operator:
        await bench.serving()
        status = (await bench.until(lambda status: is_degraded(status, NOT_SERVED)))["status"]
        assert message(status, "Degraded") == f"ServiceMonitor {NAME}: {NOT_SERVED}"
        assert await is_left_alone(operator, key)
        made = await kube.create(CUSTOMRESOURCEDEFINITIONS, DEFINITION)
    try:
        # An operator that has just started knows nothing of the earlier attempt.
        async with bench.operator() as operator:
            await bench.until(reason("Degraded", "AsExpected"))
            found = await kube.get(SERVICEMONITORS, NAME, bench.namespace)
            owner = await kube.get(SERVICES, NAME, bench.namespace)
            assert found["metadata"]["labels"]["release"] == "prometheus"
            assert [one["uid"] for one in found["metadata"]["ownerReferences"]] == [owner["metadata"]["uid"]]
            await bench.edit({"metrics": {"serviceMonitor": {"interval": "15s"}}})
            while found["spec"]["endpoints"][0].get("interval") != "15s":
                found = await kube.get(SERVICEMONITORS, NAME, bench.namespace)
            assert await is_left_alone(operator, key)
    finally:
        await kube.delete(CUSTOMRESOURCEDEFINITIONS, str(SERVICEMONITORS), uid=made["metadata"]["uid"])
