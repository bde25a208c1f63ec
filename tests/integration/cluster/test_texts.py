"""ConfigMaps that a Cluster names, on a real API server: changes are seen at once, and no others are read."""

from __future__ import annotations

from typing import Any

from slinky_operator.kube.resources import CLUSTERS, CONFIGMAPS
from tests.integration.cluster.conftest import Bench, wait_until

PROLOG = "#!/bin/sh\n"


def applied(status: dict[str, Any]) -> bool:
    config = status.get("config") or {}
    return bool(config.get("appliedHash")) and config["appliedHash"] == config["hash"]


def refused(word: str) -> Any:
    def holds(status: dict[str, Any]) -> bool:
        found = [one for one in status.get("conditions", ()) if one["type"] == "ConfigApplied"]
        return any(one["status"] == "False" and word in one["message"] for one in found)

    return holds


async def config(bench: Bench) -> dict[str, str]:
    found = await bench.kube.get(CONFIGMAPS, "slurm-config", bench.namespace)
    data: dict[str, str] = found["data"]
    return data


async def give(bench: Bench, name: str, data: dict[str, str]) -> None:
    await bench.kube.create(CONFIGMAPS, {"metadata": {"name": name}, "data": data}, bench.namespace)


async def test_a_config_map_is_followed_through_its_life(bench: Bench) -> None:
    await give(bench, "somebody-elses", {"gres.conf": "Name=gpu"})
    await bench.create({"configFileRefs": [{"name": "mine"}], "prologScriptRefs": [{"name": "scripts"}]})
    async with bench.operator() as operator:
        await bench.until(refused("spec.configFileRefs[0]: there is no ConfigMap mine"))
        await give(bench, "mine", {"gres.conf": "Name=gpu Count=1\n"})
        await bench.until(refused("spec.prologScriptRefs[0]: there is no ConfigMap scripts"))
        await give(bench, "scripts", {"hello": PROLOG})
        await bench.until(applied)
        first = await config(bench)
        assert first["gres.conf"] == "Name=gpu Count=1\n"
        assert first["prolog-hello"] == PROLOG
        assert operator.texts.watched == {(bench.namespace, "mine"), (bench.namespace, "scripts")}

        old = (await bench.cluster())["status"]["config"]["appliedHash"]
        await bench.kube.merge_patch(CONFIGMAPS, "mine", {"data": {"gres.conf": "Name=gpu Count=2\n"}}, bench.namespace)
        await bench.until(lambda status: applied(status) and status["config"]["hash"] != old)
        assert (await config(bench))["gres.conf"] == "Name=gpu Count=2\n"

        await bench.kube.merge_patch(CONFIGMAPS, "scripts", {"data": {"hello": "echo"}}, bench.namespace)
        await bench.until(refused("ConfigMap scripts: script hello must begin with a line #!"))
        await bench.kube.delete(CONFIGMAPS, "scripts", bench.namespace, uid=None)
        await bench.until(refused("there is no ConfigMap scripts"))
        assert (await config(bench))["prolog-hello"] == PROLOG

        await bench.kube.merge_patch(CLUSTERS, "slurm", {"spec": {"prologScriptRefs": None}}, bench.namespace)
        await bench.until(applied)
        assert "prolog-hello" not in await config(bench)
        assert operator.texts.watched == {(bench.namespace, "mine")}


async def test_a_config_map_is_watched_for_as_long_as_somebody_names_it(bench: Bench) -> None:
    await give(bench, "shared", {"gres.conf": ""})
    async with bench.operator() as operator:

        async def delete(name: str) -> None:
            await bench.kube.delete(CLUSTERS, name, bench.namespace, uid=None)
            await bench.gone(CLUSTERS, name)

        for name in ("one", "two"):
            await bench.create({"configFileRefs": [{"name": "shared"}]}, name)
            await bench.until(lambda status: status.get("config"), name)
        await delete("one")
        await bench.kube.delete(CONFIGMAPS, "shared", bench.namespace, uid=None)
        await bench.until(refused("there is no ConfigMap shared"), "two")
        await delete("two")
        await wait_until(lambda: not operator.texts.watched)
