"""A pod shows its SlurmJob in words of Kubernetes, and never comes back from its end."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from slinky_api.v1alpha1.common import Condition
from slinky_api.v1alpha1.slurmjob.kind import SlurmJobStatus
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.writes.status_writer import patch_between
from slinky_operator.virtual_nodes.pods.projection import Frame, of_job
from tests.support.memory_kube import merge

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
FINISHED = (Condition(type="Finished", status="True", reason="X", message=""),)


def pod(status: Object | None = None) -> Object:
    return {"spec": {"containers": [{"name": "main", "image": "a"}]}, "status": status or {"phase": "Pending"}}


def shown(job: SlurmJobStatus, before: Object | None = None, *, is_node_ready: bool = True) -> Any:
    return of_job(Frame(pod(before), NOW, "10.0.0.1", is_node_ready), job)


def ended(state: str, **fields: Any) -> SlurmJobStatus:
    return SlurmJobStatus(state=state, job_id=7, end_time=NOW, start_time=NOW, conditions=FINISHED, **fields)


@pytest.mark.parametrize(
    ("job", "code", "reason"),
    [
        (ended("Succeeded", reason="Completed", exit_code=0), 0, "Completed"),
        (ended("Failed", reason="NonZeroExitCode", exit_code=42), 42, "Error"),
        (ended("Failed", reason="Signaled", signal=9), 137, "Signaled"),
        (ended("Failed", reason="OutOfMemory", exit_code=0, signal=0), 1, "OOMKilled"),
        (ended("Failed", reason="Timeout"), 143, "Timeout"),
        (ended("Failed", reason="Cancelled"), 143, "Cancelled"),
        (ended("Unknown", reason="EndNotSeen"), 1, "EndNotSeen"),
    ],
)
def test_an_end_has_the_exit_code_and_a_reason(job: SlurmJobStatus, code: int, reason: str) -> None:
    status = shown(job)
    end = status["containerStatuses"][0]["state"]["terminated"]
    assert (end["exitCode"], end["reason"], end["containerID"]) == (code, reason, "slurm://7")
    assert status["phase"] == ("Succeeded" if code == 0 else "Failed")


@pytest.mark.parametrize("before", ["Running", "Pending"])
def test_a_job_whose_cluster_is_gone_has_no_end_so_that_no_other_pod_is_made_beside_it(before: str) -> None:
    first = shown(SlurmJobStatus(state=before, reason=before, job_id=7, start_time=NOW))
    finished = (Condition(type="Finished", status="True", reason="ClusterGone", message=""),)
    job = SlurmJobStatus(state="Unknown", reason="ClusterGone", job_id=7, summary="it may run on", conditions=finished)
    status = shown(job, first)
    (container,) = status["containerStatuses"]
    assert status["phase"] == before
    assert container["state"] == {"waiting": {"reason": "ClusterGone", "message": "it may run on"}}
    assert container["containerID"] == "slurm://7"
    assert {one["type"]: one["status"] for one in status["conditions"]}["Ready"] == "False"
    assert patch_between(status, shown(job, status)) == {}


def test_a_job_that_has_not_left_its_nodes_has_not_ended() -> None:
    status = shown(SlurmJobStatus(state="Ending", reason="Completing", job_id=7, start_time=NOW))
    assert "running" in status["containerStatuses"][0]["state"]


def test_a_requeue_is_a_restart_with_its_last_state() -> None:
    before = shown(SlurmJobStatus(state="Running", reason="Running", job_id=7, start_time=NOW))
    status = shown(SlurmJobStatus(state="Pending", reason="Requeued", job_id=7, restarts=1), before)
    (container,) = status["containerStatuses"]
    assert (status["phase"], container["restartCount"]) == ("Running", 1)
    assert container["state"]["waiting"]["reason"] == "Requeued"
    assert container["lastState"]["terminated"]["reason"] == "Requeued"
    again = shown(SlurmJobStatus(state="Pending", reason="Requeued", job_id=7, restarts=1), status)
    assert patch_between(status, again) == {}


def test_conditions_of_others_stay() -> None:
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = shown(SlurmJobStatus(state="Running", job_id=7), {"phase": "Pending", "conditions": [scheduled]})
    assert scheduled in status["conditions"]


def test_ready_is_left_to_the_controller_of_a_node_that_is_not_ready() -> None:
    job = SlurmJobStatus(state="Running", reason="Running", job_id=7, start_time=NOW)
    before = shown(job)
    unready = [{**one, "status": "False"} if one["type"] == "Ready" else one for one in before["conditions"]]
    status = shown(job, {**before, "conditions": unready}, is_node_ready=False)
    assert {one["type"]: one["status"] for one in status["conditions"]}["Ready"] == "False"


@pytest.mark.parametrize("seed", range(200))
def test_what_is_shown_is_shown_once_and_restarts_never_go_back(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - random cases
    status: Object = {"phase": "Pending"}
    restarts = 0
    for _ in range(rng.randrange(1, 12)):
        restarts += rng.random() < 0.3
        state = rng.choice(["", "Waiting", "Pending", "Running", "Suspended", "Ending", "Unknown"])
        job = SlurmJobStatus(state=state, reason=rng.choice(["", "Queued", "Held"]), job_id=7, restarts=restarts)
        wanted = shown(job, status)
        status = merge(status, patch_between(status, wanted))
        assert patch_between(status, shown(job, status)) == {}
        (container,) = status["containerStatuses"]
        assert container["restartCount"] == restarts
        assert "terminated" not in container["state"]
    status = merge(status, patch_between(status, shown(ended("Succeeded"), status)))
    assert status["phase"] == "Succeeded"
    assert list(status["containerStatuses"][0]["state"]) == ["terminated"]


@pytest.mark.parametrize(
    "job",
    [
        SlurmJobStatus(state="Pending", reason="Queued", job_id=7),
        SlurmJobStatus(state="Running", reason="Running", job_id=7, start_time=NOW),
        ended("Failed", reason="NonZeroExitCode", exit_code=3),
    ],
)
def test_a_container_is_written_as_the_api_server_stores_it(job: SlurmJobStatus) -> None:
    """It adds an empty last state, and leaves out empty messages; lists are compared whole."""
    (container,) = shown(job)["containerStatuses"]
    (state,) = container["state"].values()
    assert container["lastState"] == {}
    assert "" not in state.values()
