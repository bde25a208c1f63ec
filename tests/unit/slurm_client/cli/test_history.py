"""slurm-rest history: jobs that slurmctld has forgotten, filters, times, and how much is shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click
import pytest

from slurm_client.cli.history import Moment

if TYPE_CHECKING:
    from slurm_client.testing import FakeSlurmrestd
    from tests.unit.slurm_client.cli.conftest import Command


@pytest.fixture(autouse=True)
def ended(fake_slurm: FakeSlurmrestd) -> list[int]:
    """Two jobs that ended and are forgotten, and their ids."""
    fake_slurm.add_node("w-0", cpus=2)
    ids = []
    for name, user, state in (("good", "alice", "COMPLETED"), ("bad\x1b[2K", "bob", "TIMEOUT")):
        job = fake_slurm.add_job(nodes=["w-0"], name=name, user=user)
        fake_slurm.finish_job(job.id, state)
        fake_slurm.forget_job(job.id)
        ids.append(int(job.id))
    return ids


def test_forgotten_jobs_are_shown(command: Command, ended: list[int]) -> None:
    assert command("jobs", "--all").lines[1:] == []
    head, good, bad = command("history").lines
    assert head.split() == [
        "ID",
        "NAME",
        "USER",
        "ACCOUNT",
        "PARTITION",
        "STATE",
        "BEGAN",
        "RAN",
        "LIMIT",
        "EXIT",
        "NODES",
    ]
    assert good.split()[:3] == [str(ended[0]), "good", "alice"]
    assert "COMPLETED" in good
    assert "TIMEOUT" in bad
    assert "\x1b" not in bad
    assert next(record["name"] for record in json.loads(command("history", "--json").out)) == "good"


def test_they_are_chosen_by_filters_and_ids(command: Command, ended: list[int]) -> None:
    assert [line.split()[0] for line in command("history", "--user", "bob").lines[1:]] == [str(ended[1])]
    assert [line.split()[0] for line in command("history", "--state", "timeout").lines[1:]] == [str(ended[1])]
    assert [line.split()[0] for line in command("history", str(ended[0])).lines[1:]] == [str(ended[0])]
    assert command("history", "--until", "2001-01-01", "--since", "2000-12-31").lines[1:] == []
    assert command("history", "4711").code == 5


def test_what_is_left_out_is_said(command: Command) -> None:
    some = command("history", "--limit", "1")
    assert len(some.lines) == 2
    assert some.err.startswith("There are more")
    assert command("history", "--limit", "2").err == ""


@pytest.mark.parametrize("value", ["yesterday", "7", "99999w", "2026-13-01", ""])
def test_what_is_no_time_is_refused(command: Command, value: str) -> None:
    refused = command("history", "--since", value)
    assert (refused.code, refused.out) == (2, "")


def test_times_are_ago_or_iso() -> None:
    read = Moment()
    here: click.Parameter | None = None
    assert read.convert("2026-01-31T12:00:00.5+02:00", here, None) == datetime(2026, 1, 31, 10, tzinfo=UTC)
    now = datetime.now(UTC)
    assert timedelta(days=14) <= now - read.convert("2w", here, None) < timedelta(days=15)
