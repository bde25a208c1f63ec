"""Why a pod does not run, read from what the scheduler and the kubelet have written on it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slinky_api.conditions import PodCondition
from slinky_operator.nodeset.model.pods import pod_facts
from slinky_operator.nodeset.model.pods.hindrance import BACK_OFF, GRACE, LONGEST, Hindrance

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PULL = "failed to resolve reference: not found"


def a_pod(**status: Any) -> Hindrance | None:
    containers = [{"name": "slurmd", "image": "site/slurmd:1"}, {"name": "tail", "image": "site/tail:2"}]
    metadata = {"name": "a-0", "uid": "u", "namespace": "ns"}
    return pod_facts.read({"metadata": metadata, "spec": {"containers": containers}, "status": status}, "a").hindrance


def waiting(reason: str, message: str = "", name: str = "slurmd", **rest: Any) -> Hindrance | None:
    state = {"waiting": {"reason": reason, "message": message}}
    return a_pod(containerStatuses=[{"name": name, "state": state, **rest}])


def told(found: Hindrance | None) -> tuple[str, str]:
    assert found is not None
    return found.reason.value, found.text


def test_the_scheduler_is_quoted_once_it_has_had_its_time() -> None:
    few = "0/2 nodes are available: 2 Insufficient cpu"
    words = f"{few}. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": words,
        "lastTransitionTime": "2026-01-01T12:00:00Z",
    }
    found = a_pod(conditions=[condition])

    assert told(found) == ("Unschedulable", f"not scheduled: {words}")
    assert found is not None
    assert found.brief == f"not scheduled: {few}"
    assert (found.is_told(NOW), found.left(NOW)) == (False, GRACE.total_seconds())
    assert (found.is_told(NOW + GRACE), found.left(NOW + GRACE)) == (True, None)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("ErrImagePull", PULL),
        ("ImagePullBackOff", f'Back-off pulling image "site/slurmd:1": ErrImagePull: {PULL}'),
    ],
)
def test_an_image_that_cannot_be_pulled_reads_the_same_between_two_tries(word: str, message: str) -> None:
    assert told(waiting(word, message)) == (
        "ImagePullBackOff",
        f"container slurmd cannot get image site/slurmd:1 (ImagePullBackOff): {PULL}",
    )


def test_a_container_beside_slurmd_is_named_too() -> None:
    assert told(waiting("InvalidImageName", "bad", name="tail")) == (
        "ImagePullBackOff",
        "container tail cannot get image site/tail:2 (InvalidImageName): bad",
    )


def test_a_container_that_cannot_be_created_is_told_with_the_kubelets_reason() -> None:
    assert told(waiting("CreateContainerConfigError", 'secret "x" not found')) == (
        "ContainerNotCreated",
        'container slurmd cannot be created (CreateContainerConfigError): secret "x" not found',
    )


def test_a_crash_quotes_what_slurmd_has_said_last() -> None:
    said = "[2026-11-27T22:15:03] error: Waiting for gres.conf file /dev/nvidia0\n" + (
        "[2026-11-27T22:15:22] fatal: can't stat gres.conf file /dev/nvidia0: No such file or directory\n" * 2
    )
    ended = {"exitCode": 1, "reason": "Error", "message": said}
    found = told(waiting("CrashLoopBackOff", "back-off", restartCount=2, lastState={"terminated": ended}))
    assert found is not None
    assert found[1].endswith(
        "last with exit code 1: fatal: can't stat gres.conf file /dev/nvidia0: No such file or directory"
    )


def test_a_crash_is_told_without_its_count() -> None:
    ended = {"exitCode": 137, "reason": "OOMKilled"}
    texts = {
        told(waiting("CrashLoopBackOff", f"back-off {n}m", restartCount=n, lastState={"terminated": ended}))
        for n in (2, 3)
    }
    assert texts == {
        (
            "CrashLoopBackOff",
            (
                "container slurmd of image site/slurmd:1 exits repeatedly (CrashLoopBackOff), "
                "last with exit code 137 (OOMKilled)"
            ),
        )
    }


CRASHED = {
    "exitCode": 1,
    "reason": "Error",
    "startedAt": "2026-01-01T11:58:00Z",
    "finishedAt": "2026-01-01T11:58:05Z",
}
RUNS = {"running": {"startedAt": "2026-01-01T12:00:00Z"}}


def crashing(state: dict[str, Any], *, before: dict[str, Any] | None = CRASHED, **rest: Any) -> dict[str, Any]:
    shown = {"name": "tail", "state": state, "restartCount": 2, "ready": "running" in state, **rest}
    return shown | ({"lastState": {"terminated": before}} if before is not None else {})


def test_a_crash_reads_the_same_while_the_container_waits_runs_and_has_just_ended() -> None:
    waits = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}}
    for name in ("slurmd", "tail"):
        shown = [crashing(state, name=name) for state in (waits, RUNS, {"terminated": CRASHED})]
        texts = {told(a_pod(containerStatuses=[one])) for one in shown}
        assert len(texts) == 1
        assert texts.pop()[0] == "CrashLoopBackOff"


def test_a_container_that_has_run_longer_than_the_back_off_crashes_no_more() -> None:
    found = a_pod(containerStatuses=[crashing(RUNS)])
    assert found is not None

    assert (found.is_told(NOW), found.left(NOW)) == (True, BACK_OFF.total_seconds())
    soon = NOW + timedelta(minutes=9)
    assert (found.is_told(soon), found.left(soon), found.is_over(soon)) == (True, 60, False)
    later = NOW + BACK_OFF
    assert (found.is_told(later), found.left(later), found.is_over(later)) == (False, None, True)


@pytest.mark.parametrize(
    "shown",
    [
        crashing(RUNS, restartCount=1),
        crashing(RUNS, before=None),
        crashing(RUNS, before=CRASHED | {"startedAt": "2026-01-01T11:00:00Z"}),
        crashing({"terminated": CRASHED | {"startedAt": "2026-01-01T11:00:00Z"}}),
        crashing({"terminated": CRASHED}, restartCount=1),
        crashing({"terminated": {"exitCode": 0, "reason": "Completed"}}, ready=True),
        crashing({"running": {}}),
    ],
    ids=[
        "restarted once",
        "never ended",
        "ran for an hour before",
        "ran for an hour",
        "ended twice",
        "is an init container that is done",
        "nobody knows since when it runs",
    ],
)
def test_these_do_not_crash_again_and_again(shown: dict[str, Any]) -> None:
    assert a_pod(containerStatuses=[shown]) is None


def test_a_container_that_never_began_ended_at_once() -> None:
    begin = CRASHED | {"reason": "StartError", "exitCode": 128, "startedAt": "1970-01-01T00:00:00Z"}

    assert told(a_pod(containerStatuses=[crashing({"terminated": begin})]))[0] == "CrashLoopBackOff"


@pytest.mark.parametrize(("ready", "crashes"), [(True, False), (False, True)])
def test_a_probe_tells_that_a_container_works_again(ready: bool, crashes: bool) -> None:
    containers = [{"name": "tail", "image": "site/tail:2", "readinessProbe": {"exec": {"command": ["true"]}}}]
    obj = {
        "metadata": {"name": "a-0", "uid": "u", "namespace": "ns"},
        "spec": {"containers": containers},
        "status": {"containerStatuses": [crashing(RUNS, ready=ready)]},
    }

    assert (pod_facts.read(obj, "a").hindrance is not None) == crashes


@pytest.mark.parametrize(
    ("since", "crashes"), [("2026-01-01T12:00:03Z", False), ("2026-01-01T11:00:00Z", True), (None, True)]
)
def test_a_slurmd_works_that_has_registered_for_the_first_time(since: str | None, crashes: bool) -> None:
    registered = {"type": PodCondition.REGISTERED.value, "status": "True", "lastTransitionTime": since}
    found = a_pod(conditions=[registered], containerStatuses=[crashing(RUNS, name="slurmd")])

    assert (found is not None) == crashes


@pytest.mark.parametrize("word", ["ContainerCreating", "PodInitializing", ""])
def test_a_pod_on_its_way_is_not_hindered(word: str) -> None:
    assert waiting(word) is None
    assert a_pod(conditions=[{"type": "PodScheduled", "status": "True"}]) is None


def test_what_is_quoted_is_one_line_and_bounded() -> None:
    _, text = told(waiting("ErrImagePull", "words\n" * 1000))
    assert "\n" not in text
    assert len(text) < LONGEST + 100


def test_only_a_pod_without_a_node_is_given_time() -> None:
    found = waiting("ErrImagePull", PULL)
    assert found is not None
    assert found.is_told(NOW - timedelta(days=1))
