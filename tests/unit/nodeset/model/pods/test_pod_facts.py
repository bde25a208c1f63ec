"""What is read from a pod's object."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from slinky_operator.nodeset.model.pods import pod_facts
from slinky_operator.nodeset.model.pods.pod_facts import Slurmd
from tests.unit.nodeset.builders import NOW


def status(phase: str, state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"phase": phase, "containerStatuses": [{"name": "slurmd", "state": state, **more}]}


@pytest.mark.parametrize(
    ("told", "deleting", "slurmd"),
    [
        ({}, False, Slurmd.NEVER),
        (status("Pending", {"waiting": {"reason": "ContainerCreating"}}), False, Slurmd.NEVER),
        (status("Running", {"running": {"startedAt": "2026-01-01T00:00:00Z"}}), False, Slurmd.RUNNING),
        (status("Running", {"running": {"startedAt": "2026-01-01T00:00:00Z"}}), True, Slurmd.RUNNING),
        (status("Running", {"waiting": {"reason": "CrashLoopBackOff"}}, restartCount=3), False, Slurmd.BETWEEN),
        (status("Running", {"terminated": {"exitCode": 1}}), False, Slurmd.BETWEEN),
        (status("Running", {"terminated": {"exitCode": 1}}), True, Slurmd.ENDED),
        (status("Failed", {"terminated": {"exitCode": 1}}), False, Slurmd.ENDED),
        # Called Failed by others than its kubelet, which is out of reach.
        (status("Failed", {"running": {}}), False, Slurmd.RUNNING),
        ({"phase": "Failed", "reason": "Evicted"}, False, Slurmd.ENDED),
    ],
)
def test_what_a_kubelet_has_said_of_slurmd(told: dict[str, Any], deleting: bool, slurmd: Slurmd) -> None:
    metadata = {"name": "a-0", "uid": "u"} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {})

    assert pod_facts.read({"metadata": metadata, "status": told}, "a").slurmd is slurmd


ENDED = NOW - timedelta(seconds=3)


@pytest.mark.parametrize("state", ["state", "lastState"])
def test_the_last_end_of_a_container_is_read(state: str) -> None:
    ended = {"terminated": {"finishedAt": "2026-01-01T11:59:57Z", "exitCode": 137}}
    status = {
        "containerStatuses": [
            {"name": "sidecar", "lastState": {"terminated": {"finishedAt": "2026-01-01T11:00:00Z"}}},
            {"name": "slurmd", "restartCount": 1, "state": {"running": {}}, state: ended},
        ]
    }

    assert pod_facts.read({"metadata": {"name": "a-0", "uid": "u"}, "status": status}, "a").last_ended_at == ENDED


@pytest.mark.parametrize(
    ("containers", "volume", "claim"),
    [
        (["job-logs"], {"persistentVolumeClaim": {"claimName": "out-0"}}, "out-0"),
        (["job-logs"], {}, ""),
        (["other"], {"persistentVolumeClaim": {"claimName": "out-0"}}, None),
        ([], {}, None),
    ],
)
def test_what_the_job_log_server_looks_at(containers: list[str], volume: dict[str, Any], claim: str | None) -> None:
    spec = {
        "initContainers": [{"name": name} for name in containers],
        "volumes": [{"name": "other"}, {"name": "job-output", **volume}],
    }
    found = pod_facts.read({"metadata": {"name": "a-0", "uid": "u"}, "spec": spec}, "a")
    assert found.output_claim == claim


def test_why_a_pod_was_evicted() -> None:
    said = "The node was low on resource: ephemeral-storage.\n" + "x" * 999
    evicted = {"phase": "Failed", "reason": "Evicted", "message": said}
    found = pod_facts.read({"metadata": {"name": "a-0", "uid": "u"}, "status": evicted}, "a")
    assert found.eviction.startswith("The node was low on resource: ephemeral-storage. x")
    assert len(found.eviction) == pod_facts.LONGEST_EVICTION
    for other in ({**evicted, "phase": "Running"}, {**evicted, "reason": "NodeLost"}):
        assert not pod_facts.read({"metadata": {"name": "a-0", "uid": "u"}, "status": other}, "a").eviction
