"""What a NodeSet reports about nodes and pods in trouble, on a real API server, also over a restart of the operator."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import EVENTS, PODS
from slurm_client.models.node import NodeState
from tests.integration.nodeset.conftest import Site, up
from tests.integration.nodeset.machines import Machines

DOWN = NodeState.from_words(["DOWN", "NOT_RESPONDING", "DYNAMIC_NORM"])


async def warnings(site: Site, reason: str) -> list[tuple[str, int]]:
    events = (await site.kube.list(EVENTS, site.namespace)).items
    return [(one["message"], one["count"]) for one in events if one["reason"] == reason and one["type"] == "Warning"]


def transitions(nodeset: Object) -> dict[str, str]:
    return {one["type"]: one["lastTransitionTime"] for one in nodeset["status"]["conditions"]}


def fail(site: Site, name: str) -> None:
    """Slurm gives up a node."""
    since = datetime(2026, 1, 1, 11, 30, tzinfo=UTC)
    about: dict[str, Any] = {"reason": "Not responding", "reason_set_by": "slurm", "reason_changed_at": since}
    site.slurm.update_node(name, state=DOWN, **about)


async def test_a_node_that_is_down_is_told_once_and_not_again_by_the_next_operator(
    site: Site, machines: Machines
) -> None:
    await up(site, 2)
    fail(site, "a-0")

    async def degraded(*names: str) -> bool:
        condition = await site.condition("Degraded")
        return condition.get("reason") == "NodeDown" and all(name in condition["message"] for name in names)

    async def told(count: int) -> bool:
        return len(await warnings(site, "NodeDown")) == count

    await site.until(lambda: degraded("a-0 ("), "the condition names the node")
    await site.until(lambda: told(1), "and an Event does")
    assert "Not responding, set by slurm since 2026-01-01T11:30:00Z" in (await warnings(site, "NodeDown"))[0][0]
    before = await site.nodeset()
    assert before["status"]["summary"] == "1 of 2 ready; 1 node is down: a-0 (Not responding)"

    await site.crash()
    await site.start()
    fail(site, "a-1")
    await site.until(lambda: degraded("a-0 (", "a-1 ("), "the next operator has seen the second one go down")
    await site.until(lambda: told(2), "which another Event tells")
    assert [count for _, count in await warnings(site, "NodeDown")] == [1, 1]
    after = transitions(await site.nodeset())
    same = transitions(before)
    # That fewer nodes are left than an update may leave is new.
    assert {kind: time for kind, time in after.items() if kind != "Available"} == {
        kind: time for kind, time in same.items() if kind != "Available"
    }


async def test_no_condition_changes_its_time_when_the_operator_starts_again(site: Site, machines: Machines) -> None:
    await up(site, 2)
    before = transitions(await site.nodeset())
    seen: list[Object] = []

    await site.crash()
    await site.start()
    site.nodesets.add_handler(lambda old, new: seen.append(new) if new is not None else None)
    await site.apply(3)
    await site.until(lambda: site.ready(3), "the next operator has been at work")

    reachable = {
        (one["status"], one["lastTransitionTime"])
        for nodeset in seen
        for one in (nodeset.get("status") or {}).get("conditions") or ()
        if one["type"] == "SlurmReachable"
    }
    assert reachable == {("True", before["SlurmReachable"])}


async def test_a_bad_image_is_told_with_the_kubelets_words_in_one_event(site: Site, machines: Machines) -> None:
    await up(site, 1)
    machines.starting = False
    await site.apply(2, image="nosuch:1")

    async def bound(name: str) -> bool:
        return bool((await site.kube.get(PODS, name, site.namespace))["spec"].get("nodeName"))

    async def degraded() -> bool:
        return (await site.condition("Degraded")).get("reason") == "ImagePullBackOff"

    await site.until(lambda: "a-1" in {pod["metadata"]["name"] for pod in site.pods.store}, "there is a pod")
    await site.until(lambda: bound("a-1"), "and it has a Node")
    for word, words in (
        ("ErrImagePull", "not found"),
        ("ImagePullBackOff", 'Back-off pulling image "nosuch:1": ErrImagePull: not found'),
    ):
        pod = await site.kube.get(PODS, "a-1", site.namespace)
        await machines.report(pod, "Pending", {"waiting": {"reason": word, "message": words}}, ready=False)
        await site.until(degraded, "the condition says so")

    message = (await site.condition("Degraded"))["message"]
    assert message == "pod a-1: container slurmd cannot get image nosuch:1 (ImagePullBackOff): not found"
    told = [(message, 1)]

    async def events() -> bool:
        return await warnings(site, "ImagePullBackOff") == told

    await site.until(events, "an Event has the same words")


@pytest.mark.parametrize(
    "lost",
    [
        (labels.LABEL_NODESET_UID,),
        (labels.LABEL_CLUSTER_NAME,),
        (labels.LABEL_NODESET_UID, labels.LABEL_NODESET_NAME, labels.LABEL_CLUSTER_NAME, labels.LABEL_DAEMON),
    ],
)
async def test_a_pod_that_has_lost_its_labels_is_told_with_the_command_that_gives_them_back(
    site: Site, machines: Machines, lost: tuple[str, ...]
) -> None:
    await up(site, 2)
    before = await site.kube.get(PODS, "a-1", site.namespace)
    await site.kube.merge_patch(PODS, "a-1", {"metadata": {"labels": dict.fromkeys(lost)}}, site.namespace)

    async def told() -> bool:
        return (await site.condition("Degraded")).get("reason") == "LabelsLost"

    await site.until(told, "the condition says so")
    message = (await site.condition("Degraded"))["message"]
    assert message.startswith("pod a-1 has lost its label")
    given = dict(word.split("=") for word in message.partition(" --overwrite ")[2].split())
    assert given == {label: before["metadata"]["labels"][label] for label in lost}
    assert (await site.condition("NameConflict"))["status"] == "False"
    assert "a-1" in site.slurm.nodes

    await site.kube.merge_patch(PODS, "a-1", {"metadata": {"labels": given}}, site.namespace)
    await site.until(lambda: site.ready(2), "the command puts it right")
    after = await site.kube.get(PODS, "a-1", site.namespace)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]

    async def over() -> bool:
        return bool((await site.condition("Degraded"))["status"] == "False")

    await site.until(over, "and nothing is amiss")
    # The caches show it again: the operator can take it away.
    await site.apply(1)
    await site.until(lambda: site.ready(1), "it can be scaled in")
