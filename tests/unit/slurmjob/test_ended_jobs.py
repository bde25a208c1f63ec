"""Little is remembered of SlurmJobs that have ended, whatever their owners wrote, and it goes with their Cluster."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.kube.objects import Object
from slinky_operator.slurmjob import ended_jobs
from slinky_operator.slurmjob.ended_jobs import EndedJobs
from slinky_operator.slurmjob.model.slurm_records.marks import Mark
from slurm_client.models import Job, JobState

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONG = "x" * 200_000


class Recorder:
    def __init__(self) -> None:
        self.told: list[Object] = []

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.told.append(obj)

    normal = warning


def deleted(uid: str = "u", **status: Any) -> Object:
    """A SlurmJob that is being deleted, with much that nobody reads any more."""
    known = {
        "user": "alice",
        "jobId": 7,
        "submission": {"attempt": 0, "name": LONG},
        "conditions": [{"type": "LogReady", "status": "True", "message": LONG}],
    }
    about = {
        "name": "hello",
        "namespace": "team",
        "uid": uid,
        "deletionTimestamp": "2026-01-01T12:00:00Z",
        "annotations": {"note": LONG},
        "labels": {"a": "b" * 63},
        "managedFields": [{"manager": LONG}],
    }
    return {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "SlurmJob",
        "metadata": about,
        "spec": {"script": LONG, "external": {"note": LONG}},
        "status": {**known, **status},
    }


def back(ended: EndedJobs, uid: str = "u") -> Object | None:
    record = Job(id=7, user="alice", extra=Mark(uid, 0).text, state=JobState("RUNNING"))
    return ended.owner("c", record)


def test_little_is_kept_of_a_slurmjob_with_long_texts_and_its_job_is_known_when_it_is_back() -> None:
    recorder = Recorder()
    ended = EndedJobs(lambda _: (), recorder)
    assert ended.note("c", deleted(), NOW)

    found = back(ended)
    assert found is not None
    assert len(json.dumps(found)) < 1000
    ended.tell(found, 7)
    assert recorder.told[0]["metadata"]["name"] == "hello"


def test_the_annotation_that_cancels_is_kept() -> None:
    obj = deleted(conditions=[{"type": "Finished", "status": "True", "message": LONG}])
    obj["spec"] = {"script": LONG}
    obj["metadata"]["annotations"][labels.ANNOTATION_CANCEL] = "true"
    ended = EndedJobs(lambda _: (), Recorder())

    assert ended.note("c", obj, NOW)
    assert back(ended) is not None


def test_one_that_was_never_submitted_is_not_remembered() -> None:
    ended = EndedJobs(lambda _: (), Recorder())

    assert not ended.note("c", deleted(submission=None, jobId=None), NOW)
    assert not ended.is_waiting("c")


def test_a_namespace_that_deletes_many_makes_the_operator_forget_none_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ended_jobs, "MOST", 10)
    ended = EndedJobs(lambda _: (), Recorder())
    _ = ended.note("c", deleted("one"), NOW)
    for number in range(20):
        flood = deleted(f"flood-{number}")
        flood["metadata"]["namespace"] = "other"
        _ = ended.note("c", flood, NOW)

    assert back(ended, "one") is not None
    assert [number for number in range(20) if back(ended, f"flood-{number}") is not None] == list(range(11, 20))
    # A list of that time says nothing of them yet, one of a minute later does.
    ended.looked("c", NOW)
    assert back(ended, "one") is not None
    ended.looked("c", NOW + timedelta(minutes=1))
    assert not ended.is_waiting("c")


def test_a_cluster_that_is_deleted_takes_its_jobs_with_it() -> None:
    ended = EndedJobs(lambda _: (), Recorder())
    _ = ended.note("c", deleted(), NOW)
    ended.looked("other", NOW)

    ended.forget("c")
    ended.forget("other")
    assert not ended.is_waiting("c")
    assert back(ended) is None
