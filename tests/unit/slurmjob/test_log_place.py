"""The output of a SlurmJob that no pod shows: its place is in the status, also when Slurm has forgotten the job."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.slurmjob.kind import JobLogPlace, JobLogStatus
from slinky_operator.kube.resources import PODS, SECRETS
from slinky_operator.slurm import naming
from slinky_operator.slurmjob.pods import log_facts, log_plan
from slinky_operator.slurmjob.pods.log_facts import End
from slurm_client.models import Job, JobState
from tests.unit.slurmjob.log_worlds import GID, UID, LogWorld
from tests.unit.slurmjob.worlds import job_world

NO_POD = {"logs": {"pod": False}}


@pytest.fixture
async def logs() -> AsyncIterator[LogWorld]:
    async with job_world() as world:
        yield LogWorld(world)


def place(logs: LogWorld) -> dict[str, Any]:
    found: dict[str, Any] = logs.world.status()["logs"]["place"]
    return found


async def test_the_status_says_where_the_output_is_and_there_is_no_pod(logs: LogWorld) -> None:
    number = await logs.start(**NO_POD)
    (job,) = logs.world.in_slurm()
    name = logs.world.status()["logs"]["name"]
    path = f"{naming.JOB_OUTPUT_FOLDER}/{name}-{number}.out"
    assert place(logs) == {
        "job": str(number),
        "node": job.batch_host,
        "uid": UID,
        "gid": GID,
        "path": path,
        "starts": 0,
    }
    assert logs.condition == ("True", "LogsShown", f"the output is {path} on node {job.batch_host}")
    assert logs.find(PODS) is None
    assert logs.find(SECRETS) is None


async def test_both_streams_are_in_one_file(logs: LogWorld) -> None:
    await logs.start(**NO_POD)
    (job,) = logs.world.in_slurm()
    assert job.standard_error_expanded in {"", job.standard_output_expanded}


async def test_it_stays_after_the_end_and_after_a_restart_of_the_operator(logs: LogWorld) -> None:
    number = await logs.start(**NO_POD)
    before = place(logs)
    logs.world.slurm.world.exit_job(number, 3)
    await logs.world.until(lambda: logs.world.condition("Finished")[0] == "True")
    await logs.world.kill()
    await logs.world.step()
    assert place(logs) == before
    assert logs.world.status()["logs"]["isComplete"] is True


def test_without_a_record_of_slurm_nothing_is_known() -> None:
    assert log_plan.without_pod(JobLogStatus(), None, None).condition[:2] == ("Unknown", Reason.JOB_NOT_STARTED)
    ended = log_plan.without_pod(JobLogStatus(), None, End())
    assert ended.condition[:2] == ("False", Reason.JOB_NOT_STARTED)
    assert ended.is_complete


@pytest.mark.parametrize(("path", "words"), [("", "writes no output"), ("/home/alice/x", "/home/alice/x on node n")])
def test_a_file_elsewhere_is_out_of_reach(path: str, words: str) -> None:
    known = JobLogStatus(place=JobLogPlace(job="1", node="n", path=path))
    status, reason, message = log_plan.without_pod(known, None, None).condition
    assert (status, reason) == ("False", Reason.OUTPUT_OUT_OF_REACH)
    assert words in message


@pytest.mark.parametrize(
    ("field", "longest", "shown"),
    [
        ("batch_host", log_facts.LONGEST_NAME, "node"),
        ("standard_output_expanded", log_facts.LONGEST_PATH, "stdout"),
        ("standard_error_expanded", log_facts.LONGEST_PATH, "stderr"),
    ],
)
def test_what_is_too_long_for_a_file_or_a_node_is_left_out(field: str, longest: int, shown: str) -> None:
    def found(text: str) -> dict[str, str]:
        values: dict[str, Any] = {"batch_host": "a-0", field: text}
        facts = log_facts.of([Job(id=1, state=JobState("RUNNING"), nodes=("a-0",), **values)], None)
        assert facts is not None
        return {"node": facts.node, **dict(facts.files)}

    assert found("x" * longest)[shown] == "x" * longest
    assert found("x" * (longest + 1)).get(shown, "") == ""
