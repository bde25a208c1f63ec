"""Keys on a real API server: what happens to a lost or changed one, whenever the operator checks."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from functools import partial
from typing import Any

import pytest

from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import EVENTS, SECRETS, STATEFULSETS
from slinky_operator.pod_programs.joblogs.tokens import Grant, sign, verify
from slinky_operator.slurm import naming
from tests.integration.cluster.conftest import Bench, applied, live, message, ready, reason, wait_until
from tests.unit.cluster.parts.keys.key_model import key_set

SLURM, JWT, COPY, STAGED = (f"slurm-auth-{what}" for what in ("slurm", "jwt", "copy", "accepted"))
pytestmark = pytest.mark.long(95)

LOGS = naming.job_logs_key("slurm")


async def data(bench: Bench, name: str) -> dict[str, str]:
    found: dict[str, str] = (await bench.kube.get(SECRETS, name, bench.namespace))["data"]
    return found


async def delete(bench: Bench, *names: str) -> None:
    for name in names:
        found = await bench.kube.get(SECRETS, name, bench.namespace)
        await bench.kube.delete(SECRETS, name, bench.namespace, uid=found["metadata"]["uid"])


async def told(bench: Bench, word: str, count: int = 1) -> list[str]:
    """Wait for Events with a reason; returns what they say."""
    while True:
        found = (await bench.kube.list(EVENTS, bench.namespace)).items
        words = [f"{one['type']}: {one['message']}" for one in found if one["reason"] == word]
        if len(words) >= count:
            return words
        await asyncio.sleep(0.02)


def secret(name: str, **values: bytes) -> Object:
    encoded = {key.replace("_", "."): base64.b64encode(value).decode() for key, value in values.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": encoded}


async def test_lost_keys_are_back_before_any_configuration_is_loaded(bench: Bench) -> None:
    await bench.create()
    async with bench.operator():
        await bench.until(ready)
        before = [await data(bench, name) for name in (SLURM, JWT)]
        await delete(bench, SLURM, JWT)
        generation = await bench.edit({"extraConf": "KillWait=7"})
        await bench.until(partial(applied, generation))
        assert [await data(bench, name) for name in (SLURM, JWT)] == before
        words = await told(bench, "KeyRestored", 2)
        assert all(one.startswith("Warning: key of auth/") and "it is back" in one for one in words)


@pytest.mark.full
async def test_the_key_of_slurm_cannot_be_changed_in_place_and_one_in_its_place_is_told(bench: Bench) -> None:
    await bench.create()
    async with bench.operator():
        await bench.until(ready)
        before = await data(bench, SLURM)
        with pytest.raises(errors.Invalid, match="immutable"):
            await bench.kube.merge_patch(SECRETS, SLURM, {"data": secret("x", slurm_key=b"o")["data"]}, bench.namespace)
        await delete(bench, SLURM)
        await bench.kube.create(SECRETS, secret(SLURM, slurm_jwks=key_set("Other")), bench.namespace)
        await bench.until(reason("Degraded", "KeyChanged"))
        await told(bench, "KeyChanged")
        # What pods mount is another Secret, so that a configuration goes live beside it.
        generation = await bench.edit({"extraConf": "KillWait=7"})
        await bench.until(partial(live, generation))
        assert await data(bench, STAGED) == before
        await delete(bench, SLURM)
        await told(bench, "KeyRestored")
        await bench.until(ready)
        assert await data(bench, SLURM) == before


async def test_with_the_copy_lost_too_the_next_operator_says_what_to_do(bench: Bench) -> None:
    await bench.create()
    async with bench.operator():
        await bench.until(ready)
    before = {name: await data(bench, name) for name in (SLURM, JWT)}
    await delete(bench, SLURM, JWT, COPY, STAGED)
    async with bench.operator():
        status = (await bench.until(reason("Degraded", "KeyLost")))["status"]
        assert "kubectl -n" in message(status, "Degraded")
        for name in (SLURM, JWT, COPY, STAGED):
            with pytest.raises(errors.NotFound):
                await bench.kube.get(SECRETS, name, bench.namespace)
        for name, values in before.items():
            await bench.kube.create(SECRETS, {**secret(name), "data": values}, bench.namespace)
        # Whether daemons have the set is asked once more; those here are no daemons that prove it.
        await bench.until(lambda status: status.get("isReady") and reason("Degraded", "AsExpected")(status))
        copied = await data(bench, COPY)
        assert (copied["slurm.key"], copied["jwt.key"]) == (before[SLURM]["slurm.jwks"], before[JWT]["jwt.key"])


async def test_no_key_is_made_beside_a_slurmctld_that_no_cache_shows(bench: Bench) -> None:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "slurmctld", "image": "x"}], "volumes": [{"name": "v", "emptyDir": {}}]},
    }
    body: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "slurm-controller"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "serviceName": "x", "template": template},
    }
    await bench.kube.create(STATEFULSETS, body, bench.namespace)
    await bench.create()
    async with bench.operator():
        status = (await bench.until(lambda s: "StatefulSet slurm-controller is there already" in str(s)))["status"]
        assert status["isReady"] is False
        with pytest.raises(errors.NotFound):
            await bench.kube.get(SECRETS, SLURM, bench.namespace)


async def test_a_changed_jwt_key_locks_nobody_out(bench: Bench) -> None:
    made = await bench.create()
    async with bench.operator() as operator:
        await bench.until(ready)
        bench.slurm.key = base64.b64decode((await data(bench, JWT))["jwt.key"])
        new = b"n" * 32
        await bench.kube.merge_patch(SECRETS, JWT, {"data": secret("x", jwt_key=new)["data"]}, bench.namespace)
        await bench.edit({"extraConf": "KillWait=7"})
        status = (await bench.until(reason("Progressing", "KeyPending")))["status"]
        assert status["isReady"]
        assert "slurmctld is asked to read it" in message(status, "Progressing")
        reconfigured = bench.slurm.world.reconfigured
        await wait_until(lambda: bench.slurm.world.reconfigured > reconfigured)
        # That slurmctld has read it.
        bench.slurm.key = new
        await bench.until(ready)
        assert base64.b64decode((await data(bench, COPY))["jwt.key"]) == new
        client = operator.clients.get(made["metadata"]["uid"])
        assert client is not None
        assert await client.client.partitions()
        found = (await bench.kube.list(EVENTS, bench.namespace)).items
        assert "Unauthorized" not in {one["reason"] for one in found}


async def test_the_key_of_log_servers_is_made_for_the_first_nodeset_that_has_them(bench: Bench) -> None:
    made = await bench.create()
    async with bench.operator():
        await bench.until(ready)
        await bench.create_node_set("plain")
        await bench.until(lambda status: status["config"]["nodeSets"] == ["plain"])
        with pytest.raises(errors.NotFound):
            await bench.kube.get(SECRETS, LOGS, bench.namespace)
        await bench.create_node_set("logged", {"jobLogs": {}})
        while True:
            with contextlib.suppress(errors.NotFound):
                found = await bench.kube.get(SECRETS, LOGS, bench.namespace)
                break
            await asyncio.sleep(0.02)
        (owner,) = found["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Cluster", made["metadata"]["uid"])
        key = base64.b64decode(found["data"][naming.JOB_LOGS_KEY])
        grant = Grant("1", 1000, (1000,), f"{naming.JOB_OUTPUT_FOLDER}/1", 10)
        assert verify(sign(grant, key), key, now=0) == grant
        # Nothing makes it again, and nothing is wrong.
        await bench.until(lambda status: ready(status) and status["config"]["nodeSets"] == ["logged", "plain"])
        assert await bench.kube.get(SECRETS, LOGS, bench.namespace) == found
