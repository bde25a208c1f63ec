"""A recreated Cluster takes over what the former one of its name has left, on a real API server."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

import pytest

from hack.localkube.kubectl import KubectlFailed
from slinky_api import labels
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    CLUSTERS,
    CONFIGMAPS,
    DEPLOYMENTS,
    EVENTS,
    NODESETS,
    PODDISRUPTIONBUDGETS,
    PODS,
    SECRETS,
    SERVICES,
    STATEFULSETS,
    Resource,
)
from slinky_operator.slurm import naming
from tests.integration.cluster.conftest import KIND, Bench, message, passes, ready, reason, wait_until
from tests.integration.cluster.harness import DiesAfter
from tests.support.control_plane import ControlPlane

LEFT: list[tuple[Resource, str]] = [
    (STATEFULSETS, "slurm-controller"),
    (DEPLOYMENTS, "slurm-restapi"),
    (SERVICES, "slurm-controller"),
    (SERVICES, "slurm-restapi"),
    (SERVICES, "slurm-nodes"),
    (PODDISRUPTIONBUDGETS, "slurm-jobs"),
    (CONFIGMAPS, "slurm-config"),
    (CONFIGMAPS, "slurm-config-good"),
    (SECRETS, "slurm-auth-slurm"),
    (SECRETS, "slurm-auth-jwt"),
]
FOR_PODS = LEFT[4:6]


async def slurmd_pod(bench: Bench, uid: str) -> Object:
    """A pod as the NodeSet controller makes it for a Cluster; it runs, as far as the API server knows."""
    own = {
        **naming.slurmd_labels("slurm"),
        labels.LABEL_CLUSTER_UID: uid,
        labels.LABEL_NODESET_UID: "some",
        labels.LABEL_POD_PROTECT: "true",
    }
    spec = {"containers": [{"name": "slurmd", "image": "x"}], "automountServiceAccountToken": False}
    body = {"metadata": {"name": "compute-0", "labels": own}, "spec": spec}
    made = await bench.kube.create(PODS, body, bench.namespace)
    await bench.kube.patch_status(PODS, "compute-0", {"phase": "Running"}, bench.namespace)
    return made


def evicted(bench: Bench, control_plane: ControlPlane) -> bool:
    """Whether the API server would evict the pod, as for `kubectl drain`."""
    about = {"name": "compute-0", "namespace": bench.namespace}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": about, "deleteOptions": {"dryRun": ["All"]}}
    path = f"/api/v1/namespaces/{bench.namespace}/pods/compute-0/eviction"
    try:
        control_plane.kubectl("create", f"--raw={path}", "--filename=-", stdin=json.dumps(body))
    except KubectlFailed as error:
        assert "disruption budget" in str(error)  # noqa: PT017 - any other refusal says nothing
        return False
    return True


async def take_finalizer_off(bench: Bench) -> None:
    """Delete the Cluster as a person does who will not wait for its pods."""
    await bench.kube.delete(CLUSTERS, "slurm", bench.namespace, uid=None)
    await bench.until(reason("Deleting", "Deleting"))
    await bench.kube.merge_patch(CLUSTERS, "slurm", {"metadata": {"finalizers": None}}, bench.namespace)
    await bench.gone(CLUSTERS, "slurm")


async def seen(bench: Bench) -> dict[tuple[str, str], tuple[str, str]]:
    """Uid and Cluster's uid of everything that there is to take over."""
    found = {}
    for resource, name in LEFT:
        metadata = (await bench.kube.get(resource, name, bench.namespace))["metadata"]
        found[resource.kind, name] = metadata["uid"], metadata["labels"][labels.LABEL_CLUSTER_UID]
    return found


async def told(bench: Bench, names: set[str]) -> None:
    """Wait until Events report that all of these were taken over: they are written in the background."""
    while True:
        events = (await bench.kube.list(EVENTS, bench.namespace)).items
        words = [one["message"] for one in events if one["reason"] == "Adopted"]
        if names <= {name for one in words for name in one.partition(": ")[2].split(", ")}:
            return
        await asyncio.sleep(0.02)


async def test_a_cluster_whose_finalizer_was_taken_off_is_followed_by_the_next(
    bench: Bench, control_plane: ControlPlane
) -> None:
    first = (await bench.create())["metadata"]["uid"]
    async with bench.operator() as operator:
        await bench.until(ready)
        await bench.create_node_set("compute")
        await bench.until(lambda status: status["config"]["nodeSets"] == ["compute"])
        await slurmd_pod(bench, first)
        before = await seen(bench)
        keys = (await bench.kube.get(SECRETS, "slurm-auth-slurm", bench.namespace))["data"]
        slurmctld = (await bench.kube.get(PODS, "slurm-controller-0", bench.namespace))["metadata"]["uid"]
        await take_finalizer_off(bench)
        assert not evicted(bench, control_plane)
        await wait_until(lambda: operator.clients.get(first) is None)
        assert await seen(bench) == before

        second = (await bench.create())["metadata"]["uid"]
        await bench.until(lambda status: ready(status) and status["config"]["nodeSets"] == ["compute"])
        after = await seen(bench)
        assert {one: uid for one, (uid, _) in after.items()} == {one: uid for one, (uid, _) in before.items()}
        assert {owner for _, owner in after.values()} == {second}
        assert (await bench.kube.get(SECRETS, "slurm-auth-slurm", bench.namespace))["data"] == keys
        assert (await bench.kube.get(PODS, "slurm-controller-0", bench.namespace))["metadata"]["uid"] == slurmctld
        assert not evicted(bench, control_plane)
        await told(bench, {f"{resource.kind} {name}" for resource, name in LEFT})

        # The pod was made for the first, and the second waits for it all the same.
        await bench.kube.delete(CLUSTERS, "slurm", bench.namespace, uid=second)
        assert "compute-0" in message((await bench.until(reason("Deleting", "Deleting")))["status"], "Deleting")
        await bench.kube.delete(PODS, "compute-0", bench.namespace, uid=None, grace_seconds=0)
        await bench.gone(CLUSTERS, "slurm")
        for resource, name in LEFT:
            await bench.gone(resource, name)


async def test_a_refused_spec_of_the_next_cluster_changes_nothing_that_runs(bench: Bench) -> None:
    uid = (await bench.create())["metadata"]["uid"]
    async with bench.operator():
        await bench.until(ready)
        await bench.create_node_set("compute")
        await bench.until(lambda status: status["config"]["nodeSets"] == ["compute"])
        await slurmd_pod(bench, uid)
        await take_finalizer_off(bench)
        data = (await bench.kube.get(CONFIGMAPS, "slurm-config", bench.namespace))["data"]

        await bench.create({"extraConf": "Bogus=1"})
        status = (await bench.until(reason("ConfigApplied", "ConfigRefused")))["status"]
        assert "unrecognized key: Bogus" in message(status, "ConfigApplied")
        assert (await bench.kube.get(CONFIGMAPS, "slurm-config", bench.namespace))["data"] == data
        # What slurmctld still runs is known: NodeSets in it may have pods.
        await bench.until(lambda status: status["config"]["nodeSets"] == ["compute"])


@pytest.mark.timeout(900)
@pytest.mark.full
async def test_an_operator_that_dies_while_it_takes_over_is_followed_by_one_that_completes_it(
    bench: Bench, control_plane: ControlPlane
) -> None:
    uid = (await bench.create())["metadata"]["uid"]
    async with bench.operator():
        await bench.until(ready)
        await bench.create_node_set("compute")
        await bench.until(lambda status: status["config"]["nodeSets"] == ["compute"])
    await slurmd_pod(bench, uid)
    before = await seen(bench)
    writes, done = 0, False
    while not done:
        # As a backup is restored: everything is there, with labels of a Cluster that is not.
        await bench.kube.delete(CLUSTERS, "slurm", bench.namespace, uid=None)
        await bench.kube.merge_patch(CLUSTERS, "slurm", {"metadata": {"finalizers": None}}, bench.namespace)
        await bench.gone(CLUSTERS, "slurm")
        uid = (await bench.create())["metadata"]["uid"]
        fence = DiesAfter(writes)
        async with bench.operator(fence=fence) as mortal:
            fence.writes = partial(lambda running: len(running.writes), mortal)
            finished = asyncio.ensure_future(bench.until(ready))
            died = asyncio.ensure_future(fence.died.wait())
            _ = await asyncio.wait({finished, died}, return_when=asyncio.FIRST_COMPLETED)
            done = finished.done()
            for task in (finished, died):
                task.cancel()
        assert not evicted(bench, control_plane)
        async with bench.operator():
            await bench.until(lambda status: ready(status) and status["config"]["nodeSets"] == ["compute"])
            after = await seen(bench)
            assert {one: uid for one, (uid, _) in after.items()} == {one: uid for one, (uid, _) in before.items()}
            assert {owner for _, owner in after.values()} == {uid}
        writes += 1
    assert writes > len(LEFT)


async def test_what_belongs_to_somebody_else_is_refused_whatever_of_our_labels_it_has(bench: Bench) -> None:
    ours: dict[str, Any] = {labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY, labels.LABEL_CLUSTER_UID: "former"}
    spec = {"ports": [{"port": 80}], "selector": {"mine": "yes"}}
    made = []
    for name, own in (
        ("slurm-nodes", {**ours, labels.LABEL_CLUSTER_NAME: "slurm-2"}),
        ("slurm-restapi", {labels.LABEL_CLUSTER_NAME: "slurm", labels.LABEL_CLUSTER_UID: "former"}),
        ("slurm-controller", {}),
    ):
        body = {"metadata": {"name": name, "labels": own}, "spec": spec}
        made.append(await bench.kube.create(SERVICES, body, bench.namespace))
    await bench.create()
    async with bench.operator():
        await bench.until(reason("Degraded", "ChildRefused"))
        for one in made:
            name = one["metadata"]["name"]
            await bench.until(lambda status, name=name: f"Service {name}" in message(status, "Degraded"))
            assert await bench.kube.get(SERVICES, name, bench.namespace) == one
        assert "delete" not in message((await bench.cluster())["status"], "Degraded")


async def test_an_object_that_has_lost_its_labels_is_handed_over_by_the_command_in_the_message(bench: Bench) -> None:
    uid = (await bench.create())["metadata"]["uid"]
    async with bench.operator():
        await bench.serving()
        before = (await bench.kube.get(SERVICES, "slurm-restapi", bench.namespace))["metadata"]
        stripped = {"metadata": {"labels": {labels.LABEL_CLUSTER_UID: None, labels.LABEL_APP_MANAGED_BY: None}}}
        await bench.kube.merge_patch(SERVICES, "slurm-restapi", stripped, bench.namespace)
        status = (await bench.until(reason("Degraded", "ChildRefused")))["status"]
        words = f"label --overwrite services slurm-restapi {labels.LABEL_APP_MANAGED_BY}={labels.MANAGED_BY}"
        marks = f"{labels.LABEL_CLUSTER_NAME}=slurm {labels.LABEL_CLUSTER_UID}={uid}."
        assert f"{words} {marks}" in message(status, "Degraded")
        labelled = {labels.LABEL_APP_MANAGED_BY: labels.MANAGED_BY, labels.LABEL_CLUSTER_UID: uid}
        await bench.kube.merge_patch(SERVICES, "slurm-restapi", {"metadata": {"labels": labelled}}, bench.namespace)
        await bench.until(reason("Degraded", "AsExpected"))
        after = (await bench.kube.get(SERVICES, "slurm-restapi", bench.namespace))["metadata"]
        assert (after["uid"], after["labels"]) == (before["uid"], before["labels"])


async def test_a_cluster_elsewhere_leaves_its_budget_to_its_pods_and_nothing_else(
    bench: Bench, control_plane: ControlPlane
) -> None:
    about = {"name": "mine", "annotations": {labels.ANNOTATION_SECRET_SERVER: bench.slurm.url}}
    token = {"metadata": about, "stringData": {"auth-token": "abc"}}
    await bench.kube.create(SECRETS, token, bench.namespace)
    spec = {"server": bench.slurm.url, "token": {"secretRef": "mine"}}
    first = (await bench.create(spec))["metadata"]["uid"]
    async with bench.operator() as operator:
        await bench.serving()
        await bench.create_node_set("compute")
        await slurmd_pod(bench, first)

        async def delete() -> None:
            uid = (await bench.cluster())["metadata"]["uid"]
            await bench.kube.delete(CLUSTERS, "slurm", bench.namespace, uid=uid)
            await wait_until(lambda: operator.clients.get(uid) is None)

        await delete()
        assert not evicted(bench, control_plane)
        second = (await bench.create(spec))["metadata"]["uid"]
        await bench.serving()
        for resource, name in FOR_PODS:
            found = await bench.kube.get(resource, name, bench.namespace)
            assert found["metadata"]["labels"][labels.LABEL_CLUSTER_UID] == second
        assert not evicted(bench, control_plane)

        await delete()
        await bench.kube.delete(PODS, "compute-0", bench.namespace, uid=None, grace_seconds=0)
        await wait_until(lambda: not operator.caches.pods.items(bench.namespace))
        # The next Cluster may have pods for this one at once.
        await passes(operator, (bench.namespace, "slurm"), 3)
        for resource, name in FOR_PODS:
            assert await bench.kube.get(resource, name, bench.namespace)
        await bench.kube.delete(NODESETS, "compute", bench.namespace, uid=None)
        for resource, name in FOR_PODS:
            await bench.gone(resource, name)


async def test_a_late_cache_takes_nothing_from_the_cluster_there_is(bench: Bench) -> None:
    await bench.create()
    async with bench.operator():
        await bench.until(ready)
    old = await bench.cluster()
    await bench.kube.merge_patch(CLUSTERS, "slurm", {"metadata": {"finalizers": None}}, bench.namespace)
    await bench.kube.delete(CLUSTERS, "slurm", bench.namespace, uid=None)
    await bench.gone(CLUSTERS, "slurm")
    await bench.create()
    async with bench.operator():
        await bench.until(ready)
    before = await seen(bench)
    async with bench.operator() as operator:
        await bench.until(ready)
        known = len(operator.writes)
        operator.caches.clusters._objects[bench.namespace, "slurm"] = {**old, **KIND}
        await passes(operator, (bench.namespace, "slurm"), 3)
        assert await seen(bench) == before
        # Its own status the Cluster that is there may have got a moment before.
        assert {one[1] for one in operator.writes[known:]} <= {"clusters.slinky.slurm.net", "events"}
