"""A rejection of one NodeSet's slurmd by the API server blocks no other; one of slurmctld's pod is reported."""

from __future__ import annotations

import asyncio
from typing import Any

from slinky_operator.kube.resources import CONFIGMAPS, NAMESPACES, Resource
from tests.integration.cluster.conftest import Bench

LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange")
PRIVILEGED = {"template": {"spec": {"containers": [{"name": "slurmd", "securityContext": {"privileged": True}}]}}}


def condition(status: dict[str, Any], kind: str) -> dict[str, Any]:
    return next((one for one in status.get("conditions", ()) if one["type"] == kind), {"status": "", "message": ""})


async def level(bench: Bench, enforced: str | None) -> None:
    labels = {"pod-security.kubernetes.io/enforce": enforced}
    await bench.kube.merge_patch(NAMESPACES, bench.namespace, {"metadata": {"labels": labels}})


async def test_a_slurmd_that_pod_security_refuses_is_left_out_by_name(bench: Bench) -> None:
    await level(bench, "baseline")
    await bench.create()
    async with bench.operator():
        await bench.serving()
        await bench.create_node_set("plain")
        await bench.create_node_set("mighty", PRIVILEGED)
        await bench.edit({"extraConf": "KillWait=7"})
        status = (await bench.until(lambda s: condition(s, "Degraded")["status"] == "True" and s["isReady"]))["status"]
        assert condition(status, "Degraded")["reason"] == "ConfigUntried"
        words = condition(status, "Degraded")["message"]
        assert words.startswith("NodeSet mighty: ")
        assert "violates PodSecurity" in words
        assert "NodeSet plain" not in words
        # What was tried without it becomes live.
        while True:
            files = (await bench.kube.get(CONFIGMAPS, "slurm-config", bench.namespace))["data"]
            if "KillWait=7" in files["slurm.conf"]:
                break
            await asyncio.sleep(0.02)
        await bench.no_preflights()


async def test_a_preflight_that_is_refused_without_slurmds_too_goes_no_further(bench: Bench) -> None:
    await bench.create()
    async with bench.operator():
        await bench.serving()
        limits = {"limits": [{"type": "Container", "min": {"memory": "1Gi"}}]}
        await bench.kube.create(LIMIT_RANGES, {"metadata": {"name": "big"}, "spec": limits}, bench.namespace)
        await bench.edit({"extraConf": "KillWait=7"})
        found = await bench.until(lambda s: condition(s, "ConfigApplied").get("reason") == "ConfigUntried")
        words = condition(found["status"], "ConfigApplied")["message"]
        assert words.startswith("preflight: its pod cannot be created: ")
        assert "minimum memory usage per Container is 1Gi" in words
        assert condition(found["status"], "Degraded")["status"] == "True"
        files = (await bench.kube.get(CONFIGMAPS, "slurm-config", bench.namespace))["data"]
        assert "KillWait=7" not in files["slurm.conf"]
