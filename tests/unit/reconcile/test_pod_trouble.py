"""Why a daemon does not start is reported as Kubernetes shows it, with the image, the claim, or its own last output."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.cluster.actions import asks
from slinky_operator.cluster.parts.slurmctld.claim_question import Claim, ClaimQuestion
from slinky_operator.slurm.connection.contact import Trouble
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import World, subject

LONG_AGO = "2025-01-01T00:00:00Z"
MOMENT_AGO = "2025-12-31T23:59:30Z"
IMAGE = "localhost/slinky/nowhere:1"
PULL = "failed to pull and unpack image: not found"
FATAL = "slurmctld: error: Parsing error at unrecognized key: Bogus\nslurmctld: fatal: Unable to process configuration"


def down(**status: Any) -> World:
    """A Cluster whose slurmctld does not answer, with this status of its pod."""
    world = settled()
    assert world.controller_pod is not None
    about = {"creationTimestamp": LONG_AGO, "namespace": "here"}
    world.controller_pod = {"metadata": {**world.controller_pod["metadata"], **about}, "status": status}
    world.trouble(Trouble.CONTROLLER_DOWN, "Unable to contact slurm controller (connect failure)")
    world.step()
    return world


def container(state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "slurmctld", "image": IMAGE, "ready": False, "state": state, **more}]}


@pytest.mark.parametrize(
    "waiting",
    [
        {"reason": "ErrImagePull", "message": PULL},
        {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{IMAGE}": ErrImagePull: {PULL}'},
    ],
)
def test_an_image_that_cannot_be_pulled_is_named_with_the_reason(waiting: dict[str, str]) -> None:
    world = down(**container({"waiting": waiting}))
    words = f"slurmctld's pod slurm-controller-0 does not start: slurmctld: ImagePullBackOff: image {IMAGE}: {PULL}"
    up = world.condition("ControllerUp")
    assert up["message"] == f"{words}; Unable to contact slurm controller (connect failure)"
    ready = world.condition("Ready")
    assert ready["message"].startswith(words)
    assert ready["reason"] == "ControllerDown"
    assert world.raw["status"]["summary"] == "slurmctld: ImagePullBackOff"


def test_a_pod_without_a_node_shows_the_schedulers_message() -> None:
    said = "0/2 nodes are available: 2 Insufficient memory."
    world = down(conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": said}])
    assert f"not scheduled: {said}" in world.condition("ControllerUp")["message"]
    assert world.raw["status"]["summary"] == "slurmctld: Unschedulable"


def test_a_claim_without_a_volume_leads_to_the_storage_class() -> None:
    said = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
    world = down(conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": said}])
    advice = "its claim has no volume, kubectl describe pvc says why: if there is no default StorageClass, create one"
    assert f"not scheduled: {said}; {advice}" in world.condition("ControllerUp")["message"]


def test_a_daemon_that_ends_again_and_again_says_the_same_between_two_ends() -> None:
    ended = {"exitCode": 1, "reason": "Error", "message": FATAL}
    states = [
        container({"waiting": {"reason": "CrashLoopBackOff"}}, lastState={"terminated": ended}, restartCount=4),
        container({"terminated": ended}, restartCount=4),
        container({"running": {"startedAt": MOMENT_AGO}}, lastState={"terminated": ended}, restartCount=5),
    ]
    (said,) = {down(**one).condition("ControllerUp")["message"] for one in states}
    assert "slurmctld has ended: exit code 1: error: Parsing error at unrecognized key: Bogus / fatal: Unable" in said


@pytest.mark.parametrize(("since", "started"), [(LONG_AGO, True), (LONG_AGO, False), (MOMENT_AGO, True), (None, False)])
def test_a_daemon_that_has_come_up_since_is_not_said_to_end(since: str | None, *, started: bool) -> None:
    ended = {"exitCode": 1, "reason": "Error", "message": FATAL}
    state = {"running": {"startedAt": since} if since else {}}
    world = down(**container(state, lastState={"terminated": ended}, restartCount=2, started=started))
    assert "has ended" not in world.condition("ControllerUp")["message"]
    assert "CrashLoopBackOff" not in world.raw["status"]["summary"]


def test_a_daemon_that_says_nothing_is_left_with_where_to_look() -> None:
    ended = {"exitCode": 137, "reason": "OOMKilled"}
    world = down(**container({"waiting": {"reason": "CrashLoopBackOff"}}, lastState={"terminated": ended}))
    said = world.condition("Ready")["message"]
    assert "exit code 137 (OOMKilled): kubectl -n here logs slurm-controller-0 -c slurmctld --previous" in said


def test_a_pod_whose_containers_are_not_created_for_long_says_where_the_cause_is() -> None:
    world = down(**container({"waiting": {"reason": "ContainerCreating"}}))
    assert "kubectl -n here describe pod slurm-controller-0" in world.condition("ControllerUp")["message"]


def test_a_new_pod_is_given_time() -> None:
    world = down(conditions=[{"type": "PodScheduled", "status": "False", "message": "no"}])
    assert world.controller_pod is not None
    world.controller_pod["metadata"]["creationTimestamp"] = "2025-12-31T23:59:50Z"
    world.step()
    assert "does not start" not in world.condition("ControllerUp")["message"]


def test_an_evicted_pod_is_told_only_while_slurm_does_not_answer() -> None:
    evicted = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
    world = down(**evicted)
    assert "does not start: Evicted: The node was low" in world.condition("Ready")["message"]
    world = settled()
    assert world.controller_pod is not None
    world.controller_pod["metadata"]["creationTimestamp"] = LONG_AGO
    world.controller_pod["status"] = {**world.controller_pod["status"], **evicted}
    world.step()
    assert world.condition("Degraded")["status"] == "False"
    assert world.raw["status"]["summary"] == "Running"


def without_pod() -> World:
    world = down()
    world.controller_pod = None
    world.children["StatefulSet", "slurm-controller"]["metadata"]["creationTimestamp"] = LONG_AGO
    return world


def test_without_a_pod_its_claim_is_looked_at_and_one_that_is_being_deleted_is_told() -> None:
    world = without_pod()
    (asked,) = (subject(one) for one in world.plan().actions if asks(one, ClaimQuestion))
    assert asked.name == "state-slurm-controller-0"
    world.step()
    assert "describe statefulset slurm-controller" in world.condition("ControllerUp")["message"]
    world.memory.answers.note(ClaimQuestion, Claim(asked.name, world.now, LONG_AGO))
    assert not any(asks(one, ClaimQuestion) for one in world.step().actions)
    said = world.condition("ControllerUp")["message"]
    assert f"its claim {asked.name} has been marked for deletion at {LONG_AGO}" in said
    assert f"kubectl -n here describe pvc {asked.name}" in said
    assert world.raw["status"]["summary"] == "slurmctld: ClaimTerminating"
    assert "ClaimTerminating" not in world.condition("Degraded")["reason"]


def test_a_pod_that_is_being_deleted_is_told_only_while_slurm_does_not_answer() -> None:
    world = down()
    assert world.controller_pod is not None
    about = {**world.controller_pod["metadata"], "deletionTimestamp": LONG_AGO}
    world.ending, world.controller_pod = {"metadata": about, "spec": {"nodeName": "node-1"}}, None
    world.step()
    assert "pod slurm-controller-0 on node-1 is being deleted" in world.condition("Ready")["message"]
    world = settled()
    world.ending, world.controller_pod = {"metadata": about}, None
    world.step()
    assert world.condition("Degraded")["status"] == "False"
    assert world.raw["status"]["summary"] == "Running"
