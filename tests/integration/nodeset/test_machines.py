"""Machines of bad Nodes are rebooted or deleted once nothing runs there; on a real API server, machines are played."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from slinky_api import labels
from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CUSTOMRESOURCEDEFINITIONS, MACHINES, NODES, PODS
from slinky_operator.nodeset.model.machines import MachineRules
from tests.integration.nodeset.conftest import Site, reason
from tests.integration.nodeset.machines import Machines
from tests.integration.nodeset.test_health import RULE, say, told

KEY = "example.com/reboot"
MACHINE = MACHINES[1]
OPEN: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "machines.cluster.x-k8s.io"},
    "spec": {
        "group": MACHINE.group,
        "scope": "Namespaced",
        "names": {"plural": "machines", "kind": "Machine"},
        "versions": [
            {
                "name": MACHINE.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": OPEN, "status": OPEN}}},
            }
        ],
    },
}
"""A Cluster API before 1.11."""


async def allow(site: Site, **given: Any) -> None:
    """Start the operator with other settings."""
    await site.crash()
    site.machine_rules = MachineRules(frozenset({site.namespace}), **given)
    await site.start()


async def boot(site: Site, host: str, boot_id: str) -> None:
    """What a kubelet writes after a start of its machine."""
    required = """architecture containerRuntimeVersion kernelVersion kubeletVersion kubeProxyVersion machineID
        operatingSystem osImage systemUUID"""
    info = dict.fromkeys(required.split(), "")
    await site.kube.patch_status(NODES, host, {"nodeInfo": {**info, "bootID": boot_id}})


def shown(site: Site, host: str, cordoned: bool, asked: bool) -> Callable[[], Awaitable[bool]]:
    """Whether a Node is cordoned, and its daemon asked for a reboot."""

    async def is_so() -> bool:
        node = await site.kube.get(NODES, host)
        found = bool(node["spec"].get("unschedulable")), KEY in node["metadata"].get("annotations", {})
        return found == (cordoned, asked)

    return is_so


async def test_a_bad_node_is_cordoned_waited_for_and_rebooted_once(site: Site, machines: Machines) -> None:
    (host,) = machines.hosts = [await site.add_host("bad")]
    await boot(site, host, "first")
    await allow(site, reboot_by=KEY)
    health = {"nodeConditions": [{**RULE, "forSeconds": 0}], "maxUnhealthy": 2, "clearSeconds": 0}
    await site.apply(2, health={**health, "replace": {"policy": "Reboot"}})
    await site.until(lambda: site.ready(2), "two nodes are ready")
    machines.silent.add("other")
    container = {"name": "main", "image": "x"}
    other = {"metadata": {"name": "other"}, "spec": {"nodeName": host, "containers": [container]}}
    await site.kube.create(PODS, {"apiVersion": "v1", "kind": "Pod", **other}, site.namespace)
    job = site.slurm.add_job(nodes=["a-1"])

    await say(site, host, "True")
    await site.until(shown(site, host, cordoned=True, asked=False), "the Node is cordoned")
    await site.until(lambda: told(site, "ReplacementFailed", "False ReplacementWaits", "/other"), "it waits for others")
    await site.kube.delete(PODS, "other", site.namespace, uid=None, grace_seconds=0)
    await site.until(lambda: told(site, "ReplacementFailed", "ReplacementWaits", f"holds jobs {job.id}"), "for a job")
    assert await shown(site, host, cordoned=True, asked=False)()

    site.slurm.finish_job(job.id)
    await site.until(shown(site, host, cordoned=True, asked=True), "a reboot is asked for")
    before = await site.kube.get(NODES, host)
    await site.crash()
    # The daemon begins. Neither its Node's health, nor an operator that starts, ends the cordon or asks again.
    await site.kube.merge_patch(NODES, host, {"metadata": {"annotations": {KEY: None}}})
    await say(site, host, "False")
    await site.start()
    await site.until(lambda: told(site, "HealthBudgetReached", "False"), "the operator has looked at it")
    await site.apply(2, health={**health, "clearSeconds": 1, "replace": {"policy": "Reboot"}})
    await site.until(lambda: seen_by_operator(site), "and again")
    after = await site.kube.get(NODES, host)
    mark = labels.ANNOTATION_NODE_MACHINE
    assert after["metadata"]["annotations"][mark] == before["metadata"]["annotations"][mark]
    assert await shown(site, host, cordoned=True, asked=False)()
    assert reason(site, "a-0")

    await boot(site, host, "second")
    await site.until(shown(site, host, cordoned=False, asked=False), "the Node is given back")
    await site.until(lambda: not reason(site, "a-0") + reason(site, "a-1"), "its nodes take jobs")
    assert mark not in (await site.kube.get(NODES, host))["metadata"].get("annotations", {})
    assert [one["tries"] for one in (await site.nodeset())["status"]["replacements"]] == [1]


async def seen_by_operator(site: Site) -> bool:
    """Whether the status is that of the spec."""
    found = await site.nodeset()
    return bool(found["status"].get("observedGeneration") == found["metadata"]["generation"])


async def test_a_machine_of_cluster_api_is_deleted_and_without_permission_nothing_is(
    site: Site, machines: Machines
) -> None:
    await site.kube.create(CUSTOMRESOURCEDEFINITIONS, CRD)
    namespace = site.namespace
    annotations = {"cluster.x-k8s.io/machine": "md-0", "cluster.x-k8s.io/cluster-namespace": namespace}
    (host,) = machines.hosts = [await site.add_host("bad", annotations=annotations)]
    await boot(site, host, "first")
    kind = {"apiVersion": MACHINE.api_version, "kind": MACHINE.kind}

    async def created() -> bool:
        try:
            await site.kube.create(MACHINE, {**kind, "metadata": {"name": "md-0"}, "spec": {}}, namespace)
        except errors.NotFound:
            return False
        return True

    await site.until(created, "the kind is served")
    await site.kube.patch_status(MACHINE, "md-0", {"nodeRef": {"name": host}}, namespace)
    replace = {"policy": "DeleteMachine"}
    await site.apply(1, health={"nodeConditions": [{**RULE, "forSeconds": 0}], "replace": replace})
    await site.until(lambda: site.ready(1), "the node is ready")
    await say(site, host, "True")
    await site.until(lambda: told(site, "ReplacementFailed", "True ReplacementRefused", "nodeLife"), "it is refused")
    assert await shown(site, host, cordoned=False, asked=False)()

    await allow(site)

    async def deleted() -> bool:
        try:
            await site.kube.get(MACHINE, "md-0", namespace)
        except errors.NotFound:
            return True
        return False

    await site.until(deleted, "the Machine is deleted")
    assert (await site.nodeset())["status"]["replacements"][0]["tries"] == 1
