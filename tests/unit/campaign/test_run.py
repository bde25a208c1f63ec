"""What follows a submission comes so long after its answer, however late that is."""

from __future__ import annotations

import threading
import time
from typing import Any, cast

import pytest

from tests.campaign import run
from tests.campaign.lanes import jobs
from tests.campaign.lanes.jobs import DELETED, JobKind
from tests.campaign.plan import JOBS, Plan, Step
from tests.campaign.run import Round
from tests.campaign.site.site import Site
from tests.campaign.witness import Asked


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ("7", ["scancel 7", "scontrol delete reservationname=m-1"]),
        # It was refused, and its reservation is there.
        ("", ["scontrol delete reservationname=m-1"]),
    ],
)
def test_what_follows_a_submission_waits_for_it(monkeypatch: pytest.MonkeyPatch, job: str, expected: list[str]) -> None:
    kind = JobKind(then={0.1: ("scancel", "{job}"), 0.2: DELETED})
    monkeypatch.setitem(cast("dict[str, JobKind]", jobs.KINDS), "late", kind)
    said = list[tuple[float, str]]()

    def in_slurm(_: object, *argv: str) -> str:
        said.append((time.time(), " ".join(argv)))
        return ""

    monkeypatch.setattr(run, "in_slurm", in_slurm)
    site: Any = type("Site", (), {"slurm": None})
    one = Round(cast("Site", site), Plan(1, 1, (Step(1, JOBS, 0, "late", {}),)), "m-")
    answered = time.time() + 0.4
    answer = threading.Timer(0.4, lambda: one._asked.append(Asked("m-1", "late", 0, job, until=answered)))
    answer.start()
    one._follow()
    answer.join()
    # On a busy machine both are due at once.
    assert sorted(words for _, words in said) == sorted(expected)
    assert all(at >= answered + 0.1 for at, _ in said)


def test_a_job_is_not_cancelled_for_having_the_number_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slurmctld that was killed before it had saved a job gives its number again."""
    said = list[str]()
    monkeypatch.setattr(run, "in_slurm", lambda _, *argv: said.append(" ".join(argv)))
    site: Any = type("Site", (), {"slurm": None})
    one = Round(cast("Site", site), Plan(1, 1, ()), "m-")
    one._asked += [Asked("m-9", "cancelled", 0, "35"), Asked("m-17", "in a reservation", 0, "35")]
    one._cancel_again()
    assert said == ["scancel --name=m-9"]
