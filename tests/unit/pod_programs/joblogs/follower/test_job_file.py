"""What the operator writes is what a follower reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slinky_operator.pod_programs.joblogs.follower.job_file import (
    MAX_BYTES,
    InvalidJobFile,
    Job,
    JobState,
    Place,
    read,
    text,
)

JOB = Job(
    "7_3",
    JobState.RUNNING,
    2,
    "compute-0",
    streams={"stdout": Place("http://10.0.0.1:6881", "a.b"), "stderr": Place(file="/home/a/7.err")},
)


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_text(text(JOB))
    assert read(path) == JOB


@pytest.mark.parametrize(("code", "signal", "status"), [(0, 0, 0), (3, 0, 3), (0, 9, 137), (1, 15, 143), (255, 0, 255)])
def test_a_job_ends_like_a_process(code: int, signal: int, status: int) -> None:
    assert Job("7", JobState.ENDED, exit_code=code, signal=signal).status == status


@pytest.mark.parametrize(
    "change",
    [{"state": "Gone"}, {"exitCode": 256}, {"exitCode": -1}, {"signal": "9"}, {"attempt": True}, {"streams": []}],
)
def test_something_else_is_no_job(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "job.json"
    path.write_text(json.dumps({**json.loads(text(JOB)), **change}))
    with pytest.raises(InvalidJobFile):
        read(path)


@pytest.mark.parametrize("content", ["", "[]", "{}", "[" * 5000, " " * (MAX_BYTES + 1)])
def test_no_content_is_more_than_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "job.json"
    path.write_text(content)
    with pytest.raises(InvalidJobFile):
        read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidJobFile, match=r"job\.json: No such file"):
        read(tmp_path / "job.json")


def test_a_token_is_not_in_what_is_logged() -> None:
    assert "secret" not in repr(Place("http://a", "secret"))
