"""The judge finds what is wrong, and nothing in what is right; what Slurm itself does is no finding."""

from __future__ import annotations

import dataclasses

import pytest

from tests.campaign.faults import MARIADB_KILLED, SLURMCTLD_KILLED
from tests.campaign.verdict import AROUND, FORGOTTEN, judge
from tests.campaign.witness import OBJECT, Asked, Happened, Line, Record, Seen

START, END = 1000.0, 1030.0


def line(what: str, at: float, task: str = "-", restarts: int = 0) -> Line:
    return Line(what, "7", task, restarts, "a-0", at)


def world(
    *lines: Line, kind: str = "long", state: str = "COMPLETED", job: str = "7", happened: tuple[Happened, ...] = ()
) -> Seen:
    records = (Record("7", "m", state, "0:0", START, END, "a-0"),) if state else ()
    return Seen(asked=(Asked("m", kind, START - 1, job),), lines={"m": lines}, records=records, happened=happened)


RIGHT = world(line("start", START), line("end", END))


def kinds(seen: Seen) -> list[str]:
    return [one.what for one in judge(seen)]


def test_a_job_that_ran_once_and_is_recorded_so_is_no_finding() -> None:
    assert judge(RIGHT) == []


def test_a_job_that_was_refused_is_no_finding() -> None:
    assert judge(world(state="", job="")) == []


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (world(line("start", START), state="NODE_FAIL"), ["killed", "recorded otherwise"]),
        (world(line("start", START)), ["killed"]),
        (world(line("start", START), line("start", START + 9, restarts=1), line("end", END)), ["ran twice"]),
        (world(line("start", START), line("end", END), line("start", END + 1), line("end", END + 2)), ["ran twice"]),
        (world(state=""), ["lost", "not recorded"]),
        (world(state="PENDING"), ["lost", "recorded otherwise"]),
        (world(line("start", START), line("end", END), state="FAILED"), ["recorded otherwise"]),
        (world(line("start", START), line("end", END), state=""), ["not recorded"]),
        # The answer to sbatch was lost: the job is there all the same.
        (world(line("start", START), job=""), ["killed"]),
        (world(line("start", START, "1"), line("end", END, "1"), kind="array"), ["lost"]),
        (
            world(*(line(what, at, task) for task in "123" for what, at in (("start", START), ("end", END))),
                  line("start", END + 1, "2"), kind="array"),
            ["ran twice"],
        ),
        (world(line("start", START), line("start", START + 5), kind="cancelled", state="CANCELLED"), ["ran twice"]),
        (world(line("start", START), kind="cancelled", state="NODE_FAIL"), ["recorded otherwise"]),
    ],
)  # fmt: skip
def test_a_wrong_world_is_found(seen: Seen, expected: list[str]) -> None:
    assert kinds(seen) == expected


def test_a_slurmjob_is_submitted_once_and_lost_where_kubernetes_has_it_and_slurm_never_had() -> None:
    twice = world(line("start", START), line("end", END), kind="SlurmJob", job=OBJECT)
    again = Record("8", "m", "COMPLETED", "0:0", START, END, "a-0")
    assert judge(twice) == []
    assert kinds(dataclasses.replace(twice, records=(*twice.records, again))) == ["submitted twice"]
    assert kinds(world(state="", kind="SlurmJob", job=OBJECT)) == ["lost", "not recorded"]


def test_what_the_campaign_cancelled_is_no_finding() -> None:
    assert judge(world(line("start", START), kind="cancelled", state="CANCELLED")) == []
    assert judge(world(kind="cancelled", state="CANCELLED")) == []


@pytest.mark.parametrize("at", [START + 1, START + FORGOTTEN, START - AROUND, END + FORGOTTEN])
def test_what_slurmctld_forgets_when_it_is_killed_is_no_finding(at: float) -> None:
    killed = (Happened(at, at, SLURMCTLD_KILLED, ""),)
    wrong = (line("start", START), line("start", START + 9, restarts=1), line("end", END))
    assert judge(world(*wrong, state="FAILED", happened=killed)) == []


@pytest.mark.parametrize("at", [START + FORGOTTEN + 2, END + FORGOTTEN + 2])
def test_a_kill_of_slurmctld_at_another_time_excuses_nothing(at: float) -> None:
    killed = (Happened(at, at, SLURMCTLD_KILLED, ""),)
    seen = world(line("start", START - 1), line("end", END), state="FAILED", happened=killed)
    assert kinds(dataclasses.replace(seen, lines={"m": seen.lines["m"][:1]}))[:1] == ["killed"]


@pytest.mark.parametrize("what", ["slurmctld frozen", "slurmctld ended", "operator killed", "API server killed"])
def test_no_other_fault_excuses_a_lost_job(what: str) -> None:
    happened = (Happened(START + 1, START + 2, what, ""),)
    assert kinds(world(line("start", START), state="NODE_FAIL", happened=happened)) == ["killed", "recorded otherwise"]


def test_a_kill_of_mariadb_excuses_a_record_and_no_job() -> None:
    killed = (Happened(START + 1, START + 1, MARIADB_KILLED, ""),)
    assert judge(world(line("start", START), line("end", END), state="RUNNING", happened=killed)) == []
    assert kinds(world(line("start", START), state="RUNNING", happened=killed)) == ["killed"]


def test_what_is_wrong_with_objects_costs_and_secrets_is_found() -> None:
    seen = dataclasses.replace(
        RIGHT, unsettled=("Cluster: not ready",), orphans=("pod a-7: is there",), costs=("operator: 1 core",),
        leaks=("Events: has slurm-auth-jwt/jwt.key",),
    )  # fmt: skip
    assert [(one.what, one.about, one.why) for one in judge(seen)] == [
        ("not settled", "Cluster", "not ready"),
        ("orphan", "pod a-7", "is there"),
        ("cost", "operator", "1 core"),
        ("secret told", "Events", "has slurm-auth-jwt/jwt.key"),
    ]
