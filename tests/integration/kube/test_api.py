"""The facade against a real API server."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from slinky_operator.kube import errors
from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.cache.store import by_label
from slinky_operator.kube.calls.connection import Connection, NoCredentials
from slinky_operator.kube.calls.writing import Propagation
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.events import Recorder
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS, NAMESPACES, SERVICES, STATEFULSETS
from tests.support.control_plane import ControlPlane

pytestmark = pytest.mark.smoke


@pytest.fixture
async def connection(control_plane: ControlPlane) -> AsyncIterator[Connection]:
    async with await Connection.connect(control_plane.kubeconfig) as connection:
        yield connection


@pytest.fixture
async def client(connection: Connection) -> KubeClient:
    return KubeClient(connection, fence=OpenFence(), field_manager="ours")


@pytest.fixture
async def namespace(client: KubeClient) -> str:
    name = f"kube-{uuid.uuid4().hex[:8]}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    return name


def config(namespace: str, name: str = "a", **data: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "data": data}


async def test_apply_owns_its_fields_and_leaves_those_of_others(client: KubeClient, namespace: str) -> None:
    first = await client.apply(CONFIGMAPS, config(namespace, x="1", y="2"))
    await client.merge_patch(CONFIGMAPS, "a", {"data": {"foreign": "3"}}, namespace)
    second = await client.apply(CONFIGMAPS, config(namespace, x="9"))
    assert second["data"] == {"x": "9", "foreign": "3"}
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    assert (await client.get(CONFIGMAPS, "a", namespace)) == second


async def test_a_field_of_another_manager_is_a_conflict_unless_forced(client: KubeClient, namespace: str) -> None:
    await client.apply(CONFIGMAPS, config(namespace, x="1"), field_manager="theirs")
    with pytest.raises(errors.Conflict) as caught:
        await client.apply(CONFIGMAPS, config(namespace, x="2"), force=False)
    assert [(cause.field, cause.reason) for cause in caught.value.causes] == [(".data.x", "FieldManagerConflict")]
    assert (await client.apply(CONFIGMAPS, config(namespace, x="2")))["data"] == {"x": "2"}


async def test_apply_with_the_uid_of_a_predecessor_is_a_conflict(client: KubeClient, namespace: str) -> None:
    old = await client.create(CONFIGMAPS, config(namespace))
    await client.delete(CONFIGMAPS, "a", namespace, uid=old["metadata"]["uid"])
    await client.create(CONFIGMAPS, config(namespace))
    body = config(namespace, x="1")
    body["metadata"]["uid"] = old["metadata"]["uid"]
    with pytest.raises(errors.Conflict):
        await client.apply(CONFIGMAPS, body)
    with pytest.raises(errors.Conflict):
        await client.apply(CONFIGMAPS, {**body, "metadata": {**body["metadata"], "name": "nobody"}})


async def test_preconditions_protect_a_successor(client: KubeClient, namespace: str) -> None:
    old = await client.create(CONFIGMAPS, config(namespace))
    with pytest.raises(errors.AlreadyExists):
        await client.create(CONFIGMAPS, config(namespace))
    await client.delete(CONFIGMAPS, "a", namespace, uid=old["metadata"]["uid"])
    new = await client.create(CONFIGMAPS, config(namespace))
    with pytest.raises(errors.Conflict):
        await client.delete(CONFIGMAPS, "a", namespace, uid=old["metadata"]["uid"])
    with pytest.raises(errors.Conflict):
        await client.merge_patch(CONFIGMAPS, "a", {"data": {}}, namespace, uid=old["metadata"]["uid"])
    await client.merge_patch(CONFIGMAPS, "a", {"data": {"x": "1"}}, namespace)
    version = new["metadata"]["resourceVersion"]
    with pytest.raises(errors.Conflict):
        await client.merge_patch(CONFIGMAPS, "a", {"data": {"x": "2"}}, namespace, resource_version=version)
    with pytest.raises(errors.Conflict):
        await client.delete(CONFIGMAPS, "a", namespace, uid=new["metadata"]["uid"], resource_version=version)
    with pytest.raises(errors.Conflict):
        await client.replace(CONFIGMAPS, {**config(namespace), "metadata": new["metadata"]})
    await client.delete(CONFIGMAPS, "a", namespace, uid=new["metadata"]["uid"])
    with pytest.raises(errors.NotFound):
        await client.get(CONFIGMAPS, "a", namespace)


async def test_dry_runs_change_nothing(client: KubeClient, namespace: str) -> None:
    await client.create(CONFIGMAPS, config(namespace), dry_run=True)
    await client.apply(CONFIGMAPS, config(namespace, "b"), dry_run=True)
    kept = await client.create(CONFIGMAPS, config(namespace, "c"))
    await client.delete(CONFIGMAPS, "c", namespace, uid=kept["metadata"]["uid"], dry_run=True)
    names = [item["metadata"]["name"] for item in (await client.list(CONFIGMAPS, namespace)).items]
    assert names == ["c"]


async def test_a_refused_object_names_its_fields(client: KubeClient, namespace: str) -> None:
    body = {"metadata": {"name": "a", "namespace": namespace}, "spec": {"ports": [{"port": 99999}]}}
    with pytest.raises(errors.Invalid) as caught:
        await client.create(SERVICES, body)
    assert "spec.ports[0].port" in [cause.field for cause in caught.value.causes]


async def test_json_patch_and_its_tests(client: KubeClient, namespace: str) -> None:
    await client.create(CONFIGMAPS, config(namespace, x="1"))
    await client.json_patch(CONFIGMAPS, "a", [{"op": "add", "path": "/data/y", "value": "2"}], namespace)
    with pytest.raises(errors.Invalid):
        await client.json_patch(
            CONFIGMAPS,
            "a",
            [{"op": "test", "path": "/data/x", "value": "9"}, {"op": "remove", "path": "/data/x"}],
            namespace,
        )
    assert (await client.get(CONFIGMAPS, "a", namespace))["data"] == {"x": "1", "y": "2"}


async def test_scale_and_status(client: KubeClient, namespace: str) -> None:
    labels = {"app": "x"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "serviceName": "x", "template": template}
    await client.apply(STATEFULSETS, {"metadata": {"name": "s", "namespace": namespace}, "spec": spec})
    assert (await client.scale(STATEFULSETS, "s", namespace, 3))["spec"]["replicas"] == 3
    await client.patch_status(STATEFULSETS, "s", {"replicas": 2, "readyReplicas": 2}, namespace)
    await client.apply_status(
        STATEFULSETS, {"metadata": {"name": "s", "namespace": namespace}, "status": {"replicas": 2}}
    )
    scale = await client.get_scale(STATEFULSETS, "s", namespace)
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (3, 2)
    answer = await client.delete(
        STATEFULSETS, "s", namespace, uid=scale["metadata"]["uid"], propagation=Propagation.FOREGROUND
    )
    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]


async def test_pages_and_selectors(client: KubeClient, namespace: str) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(23):
            body = config(namespace, f"c{number}")
            body["metadata"]["labels"] = {"even": str(number % 2 == 0).lower()}
            _ = group.create_task(client.create(CONFIGMAPS, body))
    pages = [page async for page in client.pages(CONFIGMAPS, namespace, page_size=10)]
    assert [len(page.items) for page in pages] == [10, 10, 3]
    assert len({page.resource_version for page in pages}) == 1
    assert {(item["kind"], item["apiVersion"]) for page in pages for item in page.items} == {("ConfigMap", "v1")}
    even = await client.list(CONFIGMAPS, namespace, label_selector="even=true", page_size=5)
    assert len(even.items) == 12
    one = await client.list(CONFIGMAPS, namespace, field_selector="metadata.name=c7")
    assert [item["metadata"]["name"] for item in one.items] == ["c7"]


async def test_a_watch_resumes_where_it_left_off(client: KubeClient, namespace: str) -> None:
    start = (await client.list(CONFIGMAPS, namespace)).resource_version
    for number in range(3):
        await client.create(CONFIGMAPS, config(namespace, f"c{number}"))

    async def names(version: str, count: int) -> tuple[list[str], str]:
        seen: list[str] = []
        async for events in client.watch(CONFIGMAPS, namespace, resource_version=version):
            for event in events:
                if event.type == "BOOKMARK":
                    continue
                seen.append(event.object["metadata"]["name"])
                version = event.object["metadata"]["resourceVersion"]
                if len(seen) == count:
                    return seen, version
        raise AssertionError("the watch ended early")

    first, version = await names(start, 1)
    rest, _ = await names(version, 2)
    assert first + rest == ["c0", "c1", "c2"]


async def test_an_informer_follows_several_namespaces_with_a_selector(client: KubeClient, namespace: str) -> None:
    other, third = f"{namespace}-b", f"{namespace}-c"
    for name in (other, third):
        await client.create(NAMESPACES, {"metadata": {"name": name}})
    body = config(other, "early")
    body["metadata"]["labels"] = {"ours": "yes"}
    await client.create(CONFIGMAPS, body)
    informer = Informer(
        client, CONFIGMAPS, namespaces=[namespace, other], label_selector="ours", indexers={"ours": by_label("ours")}
    )
    changed = asyncio.Event()
    informer.add_handler(lambda _, __: changed.set())
    task = asyncio.create_task(informer.run())
    await informer.synced.wait()
    assert informer.store.keys() == [(other, "early")]
    for place in (namespace, third):
        for label in ("ours", "theirs"):
            body = config(place, label)
            body["metadata"]["labels"] = {label: "yes"}
            await client.create(CONFIGMAPS, body)
    while len(informer.store) < 2:
        changed.clear()
        await changed.wait()
    found = informer.store.get(namespace, "ours")
    assert found is not None
    assert "managedFields" not in found["metadata"]
    assert len(informer.store.find("ours", "yes")) == 2
    # A label taken off means gone, for us.
    await client.merge_patch(CONFIGMAPS, "early", {"metadata": {"labels": {"ours": None}}}, other)
    while (other, "early") in informer.store:
        changed.clear()
        await changed.wait()
    task.cancel()
    await asyncio.wait([task])


async def test_events_are_shown_by_kubectl_describe(
    client: KubeClient, namespace: str, control_plane: ControlPlane
) -> None:
    obj = await client.create(CONFIGMAPS, config(namespace))
    recorder = Recorder(client, component="slurm-operator", instance="test")
    for _ in range(3):
        recorder.warning({"kind": "ConfigMap", "apiVersion": "v1", **obj}, "Odd", "this is odd")
    await recorder.flush()
    assert recorder.dropped == 0
    shown = control_plane.kubectl("describe", "configmap", "a", "-n", namespace)
    line = next(line for line in shown.splitlines() if "this is odd" in line)
    kind, reason, *_ = line.split()
    assert (kind, reason) == ("Warning", "Odd")
    assert "x3 over" in line
    assert "slurm-operator" in line
    recorder.warning({"kind": "ConfigMap", "apiVersion": "v1", **obj}, "Odd", "this is odd")
    await recorder.flush()
    events = json.loads(control_plane.kubectl("get", "events", "-n", namespace, "-o", "json"))["items"]
    assert [(event["reason"], event["count"]) for event in events] == [("Odd", 4)]


async def test_a_missing_kubeconfig_is_named(tmp_path: Any) -> None:
    with pytest.raises(NoCredentials, match="nowhere"):
        await Connection.connect(tmp_path / "nowhere")
