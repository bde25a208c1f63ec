"""The Cluster controller with a real API server and a fake Slurm."""

from __future__ import annotations

import asyncio
import base64
from functools import partial

import pytest

from slinky_api import labels
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
)
from tests.integration.cluster.conftest import Bench, applied, message, passes, ready, reason, wait_until
from tests.integration.cluster.harness import DiesAfter, Running

pytestmark = pytest.mark.long


async def test_an_empty_spec_becomes_a_ready_cluster_and_then_rests(bench: Bench) -> None:
    await bench.create()
    async with bench.operator() as operator:
        status = (await bench.until(lambda s: ready(s) and s.get("jobs")))["status"]
        assert status["slurmVersion"] == "26.05.5"
        assert status["config"]["hash"] == status["config"]["appliedHash"]
        assert status["observedGeneration"] == 1
        for resource, name in (
            (STATEFULSETS, "slurm-controller"),
            (DEPLOYMENTS, "slurm-restapi"),
            (SERVICES, "slurm-nodes"),
            (PODDISRUPTIONBUDGETS, "slurm-jobs"),
        ):
            child = await bench.kube.get(resource, name, bench.namespace)
            assert "ownerReferences" not in child["metadata"]
        secret = await bench.kube.get(SECRETS, "slurm-auth-jwt", bench.namespace)
        assert len(base64.b64decode(secret["data"]["jwt.key"])) == 32
        # Nothing has changed, so passes write nothing, once the answers to the last writes and Events have come.
        for _ in range(20):
            operator.requests.clear()
            await passes(operator, (bench.namespace, "slurm"), 5)
            if not operator.writes:
                break
        assert operator.writes == []


async def test_another_operator_writes_nothing_to_a_cluster_that_is_as_it_should_be(bench: Bench) -> None:
    await bench.create()
    async with bench.operator():
        before = await bench.until(ready)
    keys = await bench.kube.get(SECRETS, "slurm-auth-slurm", bench.namespace)
    async with bench.operator() as operator:
        await wait_until(lambda: operator.clients.get(before["metadata"]["uid"]))
        await bench.until(ready)
        assert {one[1] for one in operator.writes} <= {"clusters.slinky.slurm.net", "events"}
    assert await bench.kube.get(SECRETS, "slurm-auth-slurm", bench.namespace) == keys
    assert bench.slurm.world.reconfigured == 1


async def test_a_node_set_is_listed_and_leaves_again(bench: Bench) -> None:
    await bench.create()
    async with bench.operator():
        await bench.until(ready)
        await bench.create_node_set("compute")
        await bench.until(lambda status: status["config"]["nodeSets"] == ["compute"])
        found = await bench.kube.get(NODESETS, "compute", bench.namespace)
        assert found["metadata"]["finalizers"] == [labels.FINALIZER_NODESET_CONFIG]
        assert "compute" in bench.slurm.world.partitions
        await bench.kube.delete(NODESETS, "compute", bench.namespace, uid=found["metadata"]["uid"])
        await wait_until(lambda: "compute" not in bench.slurm.world.partitions)
        await bench.gone(NODESETS, "compute")
        status = (await bench.cluster())["status"]
        assert status["config"]["nodeSets"] == []


async def test_a_node_set_stays_out_while_nothing_is_mounted(bench: Bench) -> None:
    await bench.create()
    async with bench.operator():
        await bench.until(ready)
        bench.kubelet.mounts = False
        await bench.create_node_set("compute")
        status = (await bench.until(lambda s: "mounted" in message(s, "ConfigApplied")))["status"]
        assert status["config"]["nodeSets"] == []
        assert bench.slurm.world.reconfigured == 1
        bench.kubelet.mounts = True
        await bench.until(lambda status: status["config"]["nodeSets"] == ["compute"])


def rollouts(running: Running) -> float:
    """How many configurations have been applied after a change of the spec, by the operator's metrics."""
    found = running.metrics.get_sample_value("slurm_operator_config_rollout_duration_seconds_count")
    assert found is not None
    return found


async def test_what_a_preflight_refuses_changes_nothing_and_leaves_nothing(bench: Bench) -> None:
    await bench.create()
    async with bench.operator() as running:
        await bench.until(ready)
        before = (await bench.kube.get(CONFIGMAPS, "slurm-config", bench.namespace))["data"]
        reconfigured = bench.slurm.world.reconfigured
        applied_before = rollouts(running)
        await bench.edit({"extraConf": "Bogus=1"})
        status = (await bench.until(reason("ConfigApplied", "ConfigRefused")))["status"]
        words = message(status, "ConfigApplied")
        assert words == "slurmctld refuses it: fatal: Parsing error at unrecognized key: Bogus"
        assert status["config"]["hash"] != status["config"]["appliedHash"]
        assert (await bench.kube.get(CONFIGMAPS, "slurm-config", bench.namespace))["data"] == before
        assert bench.slurm.world.reconfigured == reconfigured
        assert rollouts(running) == applied_before
        await bench.edit({"extraConf": "KillWait=7"})
        await bench.until(ready)
        after = (await bench.kube.get(CONFIGMAPS, "slurm-config", bench.namespace))["data"]["slurm.conf"]
        assert "KillWait=7" in after
        assert rollouts(running) == applied_before + 1
        await bench.no_preflights()


async def test_an_error_without_a_slurmctld_behind_it_is_no_refusal(bench: Bench) -> None:
    await bench.create()
    async with bench.operator():
        await bench.until(ready)
        bench.slurm.faults.add("reconfigure", times=1, status=500, body={"errors": [{"description": "ended"}]})
        bench.slurm.faults.add("partitions", times=3, status=500, body={"errors": [{"description": "gone"}]})
        generation = await bench.edit({"extraConf": "KillWait=7"})
        found = await bench.until(partial(applied, generation))
        names = [one["reason"] for one in (await bench.kube.list(EVENTS, bench.namespace)).items]
        assert found["status"]["isReady"]
        assert "ConfigRolledBack" not in names


async def test_what_slurmctld_does_not_take_is_put_back(bench: Bench) -> None:
    await bench.create()
    async with bench.operator():
        await bench.until(ready)
        words = {
            "errors": [{"error_number": -1, "error": "Unspecified error", "description": "slurm_reconfigure() failed"}]
        }
        bench.slurm.faults.add("reconfigure", times=2, status=500, body=words)
        await bench.create_node_set("compute")
        status = (await bench.until(reason("ConfigApplied", "ConfigRolledBack")))["status"]
        assert "slurm_reconfigure() failed" in message(status, "ConfigApplied")
        assert status["config"]["nodeSets"] == []
        data = (await bench.kube.get(CONFIGMAPS, "slurm-config", bench.namespace))["data"]
        assert "compute" not in data["slurm.conf"]
        await bench.edit({"extraConf": "KillWait=7"})
        await bench.until(lambda status: status["config"]["nodeSets"] == ["compute"])


@pytest.mark.timeout(900)
@pytest.mark.full
async def test_an_operator_that_dies_between_any_two_writes_leaves_what_the_next_one_completes(bench: Bench) -> None:
    await bench.create()
    async with bench.operator():
        await bench.until(ready)
    uid = (await bench.cluster())["metadata"]["uid"]
    writes, done = 0, False
    while not done:
        wanted = {"extraConf": f"KillWait={10 + writes}"}
        fence = DiesAfter(writes)
        async with bench.operator(fence=fence) as mortal:
            await wait_until(partial(mortal.clients.get, uid))
            began = len(mortal.writes)
            fence.writes = partial(lambda running, before: len(running.writes) - before, mortal, began)
            generation = await bench.edit(wanted)
            finished = asyncio.ensure_future(bench.until(partial(applied, generation)))
            died = asyncio.ensure_future(fence.died.wait())
            _ = await asyncio.wait({finished, died}, return_when=asyncio.FIRST_COMPLETED)
            done = finished.done()
            for task in (finished, died):
                task.cancel()
        async with bench.operator():
            await bench.until(partial(applied, generation))
            data = (await bench.kube.get(CONFIGMAPS, "slurm-config", bench.namespace))["data"]["slurm.conf"]
            assert wanted["extraConf"] in data
            await bench.no_preflights()
        writes += 1
    assert writes > 6


async def test_lost_contact_is_told_and_found_again(bench: Bench) -> None:
    await bench.create()
    async with bench.operator():
        await bench.until(ready)
        await bench.slurm.stop()
        status = (await bench.until(reason("Ready", "SlurmUnreachable")))["status"]
        assert status["isReady"] is False
        assert status["lastContact"]
        await bench.slurm.start()
        await bench.until(ready)


async def test_objects_of_others_are_named_and_left_alone(bench: Bench) -> None:
    theirs = {"metadata": {"name": "slurm-restapi"}, "spec": {"ports": [{"port": 1}], "selector": {"a": "b"}}}
    made = await bench.kube.create(SERVICES, {"apiVersion": "v1", "kind": "Service", **theirs}, bench.namespace)
    await bench.create()
    async with bench.operator():
        status = (await bench.until(reason("Degraded", "ChildRefused")))["status"]
        assert "Service slurm-restapi" in message(status, "Degraded")
        assert await bench.kube.get(SERVICES, "slurm-restapi", bench.namespace) == made


async def test_what_the_api_server_refuses_is_told(bench: Bench) -> None:
    template = {"spec": {"containers": [{"name": "slurmrestd", "ports": [{"containerPort": 99999}]}]}}
    await bench.create({"restapi": {"template": template}})
    async with bench.operator():
        status = (await bench.until(reason("Degraded", "ChildRefused")))["status"]
        assert "Deployment slurm-restapi" in message(status, "Degraded")
        assert "99999" in message(status, "Degraded")
        await bench.kube.merge_patch(CLUSTERS, "slurm", {"spec": {"restapi": None}}, bench.namespace)
        await bench.until(ready)


async def test_deletion_waits_for_slurmd_pods_and_takes_everything_along(bench: Bench) -> None:
    made = await bench.create()
    uid = made["metadata"]["uid"]
    async with bench.operator() as operator:
        await bench.until(ready)
        await bench.create_node_set("compute")
        await bench.until(lambda status: status["config"]["nodeSets"] == ["compute"])
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "compute-0",
                "labels": {labels.LABEL_CLUSTER_UID: uid, labels.LABEL_CLUSTER_NAME: "slurm"},
            },
            "spec": {"containers": [{"name": "slurmd", "image": "x"}], "automountServiceAccountToken": False},
        }
        found = await bench.kube.create(PODS, pod, bench.namespace)
        await bench.kube.delete(CLUSTERS, "slurm", bench.namespace, uid=uid)
        status = (await bench.until(reason("Deleting", "Deleting")))["status"]
        assert "compute-0" in message(status, "Deleting")
        assert await bench.kube.get(STATEFULSETS, "slurm-controller", bench.namespace)
        await bench.kube.delete(PODS, "compute-0", bench.namespace, uid=found["metadata"]["uid"], grace_seconds=0)
        await bench.gone(CLUSTERS, "slurm")
        for resource, name in (
            (STATEFULSETS, "slurm-controller"),
            (DEPLOYMENTS, "slurm-restapi"),
            (CONFIGMAPS, "slurm-config"),
            (SECRETS, "slurm-auth-slurm"),
            (SECRETS, "slurm-auth-jwt"),
        ):
            await bench.gone(resource, name)
        node_set = await bench.kube.get(NODESETS, "compute", bench.namespace)
        assert "finalizers" not in node_set["metadata"]
        assert operator.clients.get(uid) is None


async def test_a_slurmd_pod_keeps_its_life_and_its_cluster_whatever_its_labels_say(bench: Bench) -> None:
    made = await bench.create()
    uid = made["metadata"]["uid"]
    async with bench.operator() as operator:
        await bench.until(ready)
        node_set = await bench.create_node_set("compute")
        await bench.until(lambda status: status["config"]["nodeSets"] == ["compute"])
        for component in ("preflight", "restapi", "controller"):
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"slurm-{component}-0000000001",
                    "labels": {
                        "app.kubernetes.io/name": "slurm",
                        "app.kubernetes.io/component": component,
                        labels.LABEL_CLUSTER_NAME: "slurm",
                    },
                    "ownerReferences": [
                        {
                            "apiVersion": "slinky.slurm.net/v1alpha1",
                            "kind": "NodeSet",
                            "name": "compute",
                            "uid": node_set["metadata"]["uid"],
                        }
                    ],
                },
                "spec": {"containers": [{"name": "slurmd", "image": "x"}], "automountServiceAccountToken": False},
            }
            await bench.kube.create(PODS, pod, bench.namespace)
        # A whole change of the configuration, with a preflight and what is tidied up after it.
        generation = await bench.edit({"extraConf": "KillWait=7"})
        await bench.until(partial(applied, generation))
        await bench.no_preflights_but("slurm-preflight-0000000001")
        # Without any label of ours no cache shows them.
        for component in ("preflight", "restapi", "controller"):
            body = {"metadata": {"labels": None}}
            await bench.kube.merge_patch(PODS, f"slurm-{component}-0000000001", body, bench.namespace)
        await wait_until(lambda: not operator.caches.pods.find("unmarked", f"{bench.namespace}/slurm")[1:])
        await bench.kube.delete(CLUSTERS, "slurm", bench.namespace, uid=uid)
        names = [f"slurm-{component}-0000000001" for component in ("controller", "preflight", "restapi")]
        await bench.until(reason("Deleting", "Deleting"))
        await bench.until(lambda s: all(name in message(s, "Deleting") for name in names))
        assert await bench.kube.get(STATEFULSETS, "slurm-controller", bench.namespace)
        for name in names:
            found = await bench.kube.get(PODS, name, bench.namespace)
            await bench.kube.delete(PODS, name, bench.namespace, uid=found["metadata"]["uid"], grace_seconds=0)
        await bench.gone(CLUSTERS, "slurm")


async def test_a_namesake_starts_clean(bench: Bench) -> None:
    first = await bench.create()
    async with bench.operator() as operator:
        await bench.until(ready)
        await bench.kube.delete(CLUSTERS, "slurm", bench.namespace, uid=first["metadata"]["uid"])
        await bench.gone(CLUSTERS, "slurm")
        second = await bench.create()
        await bench.until(ready)
        assert operator.clients.get(first["metadata"]["uid"]) is None
        assert operator.clients.get(second["metadata"]["uid"]) is not None


async def test_a_cluster_elsewhere_follows_its_token(bench: Bench) -> None:
    await bench.create({"server": bench.slurm.url, "token": {"secretRef": "mine"}})
    async with bench.operator():
        await bench.until(reason("TokenValid", "SecretNotFound"))
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"}, "stringData": {"token": "abc"}}
        made = await bench.kube.create(SECRETS, body, bench.namespace)
        await bench.until(reason("TokenValid", "SecretKeyNotFound"))
        await bench.kube.merge_patch(SECRETS, "mine", {"stringData": {"auth-token": "abc"}}, bench.namespace)
        assert made
        # Users who may edit Clusters need not be allowed to read Secrets: this one must say that it is for that.
        status = (await bench.until(reason("TokenValid", "SecretNotAllowed")))["status"]
        told = f"--namespace {bench.namespace} {labels.ANNOTATION_SECRET_SERVER}={bench.slurm.url}"
        assert message(status, "TokenValid").endswith(told)
        assert not bench.slurm.requests
        notes = {"metadata": {"annotations": {labels.ANNOTATION_SECRET_SERVER: bench.slurm.url}}}
        await bench.kube.merge_patch(SECRETS, "mine", notes, bench.namespace)
        await bench.until(ready)


async def test_events_tell_a_node_set_why_it_is_left_out(bench: Bench) -> None:
    await bench.create()
    async with bench.operator():
        await bench.until(ready)
        await bench.create_node_set("bad", {"partition": {"config": "MaxTime 60"}})
        while True:
            found = (await bench.kube.list(EVENTS, bench.namespace)).items
            words = [one["message"] for one in found if one["involvedObject"]["name"] == "bad"]
            if words:
                break
            await asyncio.sleep(0.02)
        assert words[0].startswith("spec.partition.config: ")
